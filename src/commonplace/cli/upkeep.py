"""The data itself: status, doctor, backup, compact, reindex."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.cli import FAILURE, show
from commonplace.cli.support import options
from commonplace.cli.support.output import emit, fancy, line, note, plural, row, size
from commonplace.cli.support.progress import Bar
from commonplace.cli.support.session import Session

PANEL = "The data"


def register(app: typer.Typer) -> None:
    for function in (status, doctor, backup, compact, reindex):
        app.command(function.__name__, rich_help_panel=PANEL)(function)


def status(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Show where the data is and what needs attention.

    \b
    Example:
      commonplace status
      commonplace status --json --data ./memories
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.status())
        wanted = run.memory.config.embedder
    if as_json:
        emit(found)
        return
    embedder, index = found.get("embedder"), found.get("index") or {}
    show.fields(
        [
            ("data", found.get("data")),
            ("database", found.get("database")),
            ("size", size(found["size_bytes"]) if found.get("size_bytes") is not None else None),
            ("memories", f"{found['memories']:,}"),
            ("agents", ", ".join(f"{name} ({count:,})" for name, count in found["agents"].items())),
            ("embedder", f"{embedder['name']}, {embedder['dimension']} dimensions" if embedder else "none (keywords)"),
            ("index", f"{plural(index['files'], 'file')}, {size(index['bytes'])}" if index.get("files") else None),
            ("audit", plural(found["audit_entries"], "entry")),
            ("redaction", _redaction(found.get("redaction"))),
            ("version", found["version"]),
        ]
    )
    show.remarks([*needs(found), *(_model_problems() if wanted == "minilm" else [])])


def _redaction(found: dict[str, Any] | None) -> str | None:
    if found is None:
        return None
    words = {
        "redact": "secrets are replaced",
        "reject": "what holds secrets is refused",
        "off": "off: secrets are kept",
    }
    registered = f", {found['registered']} registered by value" if found["registered"] else ""
    return words[found["mode"]] + registered


def needs(found: dict[str, Any]) -> list[str]:
    """What a status says should be done, a sentence each."""
    said = [found["note"]] if found.get("note") else []
    if found.get("embedder") and found.get("without_vectors"):
        said.append(f"{plural(found['without_vectors'], 'memory')} found by keywords only; run `commonplace reindex`")
    if found.get("pending_reviews"):
        said.append(
            f"{plural(found['pending_reviews'], 'change')} waiting for approval; run `commonplace reviews list`"
        )
    return said


def _model_problems() -> list[str]:
    from commonplace.embedders import model_files

    return model_files.verify()


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Rebuild what can be rebuilt, or only look.")
    ] = True,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Check everything and repair what can be repaired.

    \b
    Example:
      commonplace doctor
      commonplace doctor --no-repair --json
    """
    with Session(data, agent, existing=True) as run, Bar("checking") as progress:
        checks = [dict(check) for check in run(run.memory.doctor(repair=repair, progress=progress))]
    wrong = [check for check in checks if not check["ok"] and not check["repaired"]]
    if as_json:
        emit({"ok": not wrong, "checks": checks})
    else:
        if fancy():
            show.table(["check", "result", "detail"], [[c["check"], _verdict(c), c["detail"]] for c in checks])
        else:
            for c in checks:
                row([c["check"], _verdict(c), c["detail"]])
        note("everything is in order" if not wrong else f"{plural(len(wrong), 'check')} failed")
    if wrong:
        raise typer.Exit(FAILURE)


def _verdict(check: dict[str, Any]) -> str:
    return "repaired" if check["repaired"] else "ok" if check["ok"] else "WRONG"


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Copy everything into one file while others go on.

    \b
    Example:
      commonplace backup ~/commonplace-2026-03-01.db
    """
    with Session(data, agent, existing=True) as run, Bar("copying") as progress:
        made = run(run.memory.backup(file.expanduser(), progress=progress))
    if as_json:
        emit(made)
    else:
        line(f"backed up to {made['path']} ({size(made['bytes'])})")


def compact(as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None) -> None:
    """Give back disk space; leave no byte of what was erased.

    \b
    Example:
      commonplace compact
    """
    with Session(data, agent, existing=True) as run, Bar("compacting") as progress:
        done = run(run.memory.compact(progress=progress))
    if as_json:
        emit(done)
        return
    line(f"{size(done['before_bytes'])} → {size(done['after_bytes'])}")
    if done.get("erased_purged"):
        line(f"purged what was left of {plural(done['erased_purged'], 'erased memory')}")


def reindex(
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="SPEC",
            help="Change to this embedder: minilm, hashing, openai:…",
            autocompletion=options.offering("minilm", "hashing", "openai", "sentence-transformers", "static"),
        ),
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Embed what has no vector yet, or everything anew with another embedder.

    \b
    Example:
      commonplace reindex
      commonplace reindex --embedder minilm
    """
    with Session(data, agent, existing=True) as run, Bar("embedding") as progress:
        done = run(run.memory.reindex(embedder, progress=progress))
        notes = run.heard.notes
    if as_json:
        emit(done)
        return
    resumed = " (went on where it had stopped)" if done.get("resumed") else ""
    line(f"reindexed {plural(done['reindexed'], 'memory')} with {done['embedder']}{resumed}")
    show.remarks(notes)
