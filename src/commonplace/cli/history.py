"""`commonplace history`."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.cli.support import options
from commonplace.cli.support.command import Answer, Commands, Session
from commonplace.cli.support.output import Document, body, flattened, heading, line, moment, on_terminal, row, text_of

_OF_EVERY_VERSION = ("version", "updated_at", "content_hash", "recalls", "last_recalled_at")

commands = Commands()


@commands.add("history")
def history(run: Session, id: options.MemoryId) -> Answer:
    """Show every version of a memory and what changed in each.

    \b
    Example:
      commonplace history 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    versions = run(run.memory.history(run.id(id)))
    return Answer({"versions": versions}, lambda: _show(versions))


def _show(versions: Sequence[Document]) -> None:
    before: Document | None = None
    for version in versions:
        number, when = version["version"], moment(version["updated_at"])
        if on_terminal():
            heading(f"version {number}  {when}")
        for name, change in changes(before, version):
            if on_terminal():
                line(f"  {name}: {change}")
            else:
                row([number, when, name, change])
        before = version


def changes(before: Document | None, after: Document) -> list[tuple[str, str]]:
    """What a version changed: field and what became of it, oldest words first."""
    if before is None:
        return [("content", body(after))]
    old, new = flattened(before), flattened(after)
    found = []
    for name in sorted(old.keys() | new.keys(), key=lambda name: (name != "content", name)):
        if name not in _OF_EVERY_VERSION and old.get(name) != new.get(name):
            was, now = (text_of(side[name]) if name in side else "—" for side in (old, new))
            found.append((name, f"{was} → {now}"))
    return found
