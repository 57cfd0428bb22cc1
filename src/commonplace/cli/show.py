"""The answers, for people: a table on a terminal, one line per record anywhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from commonplace.cli.support.output import fancy, line, minute, moment, note, row

Document = dict[str, Any]


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    if fancy():
        from commonplace.cli import tables

        tables.show(headers, rows)
        return
    for cells in rows:
        row([part for cell in cells for part in (reversed(cell) if isinstance(cell, tuple) else (cell,))])


def memories(found: Sequence[Document]) -> None:
    """Piped: id, time, type, tags and content."""
    if fancy():
        table(
            ["memory", "type", "tags", "written"],
            [[(body(m), m["id"]), m["type"], ", ".join(tags(m)), minute(m["created_at"])] for m in found],
        )
        return
    for m in found:
        row([m["id"], moment(m["created_at"]), m["type"], ",".join(tags(m)), body(m)])


def hits(results: Sequence[Document]) -> None:
    """Piped: id, relevance, type, time and content."""
    # A calibrated relevance says something by itself; the score of fusion only orders.
    how = "relevance" if all("relevance" in h for h in results) else "score"
    if fancy():
        table(
            ["memory", "type", how, "written"],
            [[(body(h), h["id"]), h["type"], float(h[how]), minute(h.get("created_at"))] for h in results],
        )
        return
    for h in results:
        row([h["id"], f"{h[how]:.4f}", h["type"], moment(h.get("created_at")), body(h)])


def fields(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one under the other; what is empty is left out."""
    kept = [(name, value) for name, value in pairs if value not in (None, "", [], {})]
    width = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        line(f"{name:<{width}}  {value}")


def memory(document: Document) -> None:
    """One memory in full: its content, then everything known about it."""
    line(body(document))
    line()
    times = ("created_at", "updated_at", "expires_at", "last_recalled_at")
    known = {name: moment(value) if name in times else value for name, value in document.items()}
    known = {name: value for name, value in known.items() if name not in ("content", "metadata")}
    fields((name, written(value)) for name, value in (known | _spread(document)).items())


def changes(before: Document | None, after: Document) -> list[tuple[str, str]]:
    """What a version changed: field and what became of it, oldest words first."""
    if before is None:
        return [("content", body(after))]
    ignored = {"version", "updated_at", "content_hash", "recalls", "last_recalled_at", "metadata"}
    old = {k: v for k, v in before.items() if k not in ignored} | _spread(before)
    new = {k: v for k, v in after.items() if k not in ignored} | _spread(after)
    found = []
    for name in sorted(old.keys() | new.keys(), key=lambda n: (n != "content", n)):
        if old.get(name) != new.get(name):
            was, now = (written(side[name]) if name in side else "—" for side in (old, new))
            found.append((name, f"{was} → {now}"))
    return found


def body(document: Document) -> str:
    return written(document["content"])


def tags(document: Document) -> list[str]:
    found = (document.get("metadata") or {}).get("tags")
    return [str(tag) for tag in found] if isinstance(found, list) else []


def written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def remarks(notes: Iterable[str | None]) -> None:
    """Each thing worth knowing once, on stderr."""
    for text in dict.fromkeys(text for text in notes if text):
        note(f"note: {text}")


def _spread(document: Document) -> Document:
    return {f"metadata.{name}": value for name, value in (document.get("metadata") or {}).items()}
