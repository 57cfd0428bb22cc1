"""`commonplace status`."""

from __future__ import annotations

from contextlib import suppress

from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session
from commonplace.cli.support.output import Document, label, moment, plural, size
from commonplace.wire.errors import Fault

_REDACTION = {
    "redact": "secrets are replaced",
    "reject": "what holds secrets is refused",
    "off": "off: secrets are kept",
}

commands = Commands()


@commands.add("status", unused=WHOLE_STORE)
def status(run: Session) -> Answer:
    """Show where the data is and what needs attention.

    \b
    Example:
      commonplace status
      commonplace status --json --data ./memories
    """
    found = run(run.memory.status())
    remarks = _needed(found)
    if not run.as_json and (embedder := found.get("embedder")):
        remarks += _model_problems(embedder["name"], remarks)
    return Answer(found, _fields(found), remarks)


def _model_problems(name: str, said: list[str]) -> list[str]:
    """One sentence at most: what it says to do mends every file, and a note that says the same is enough."""
    from commonplace.embedders.base import LocalModel
    from commonplace.embedders.registry import open_embedder

    with suppress(Fault):  # an embedder of a package that is gone; the note says so
        made_by = open_embedder(name)
        if isinstance(made_by, LocalModel) and not any("model build" in each for each in said):
            return made_by.problems()[:1]
    return []


def _fields(found: Document) -> Document:
    embedder, index, redaction = found.get("embedder"), found.get("index") or {}, found.get("redaction")
    registered = f", {redaction['registered']} registered by value" if redaction and redaction["registered"] else ""
    if redaction and redaction.get("hidden_agents"):
        registered += f"; {plural(redaction['hidden_agents'], 'agent')} not shown: the name holds a secret"
    return {
        "data": found.get("data"),
        "database": found.get("database"),
        "size": size(found["size_bytes"]) if found.get("size_bytes") is not None else None,
        "memories": f"{found['memories']:,}",
        "agents": ", ".join(f"{label(name)} ({count:,})" for name, count in found["agents"].items()),
        "embedder": f"{embedder['name']}, {embedder['dimension']} dimensions" if embedder else "none (keywords)",
        "second embedder": _second(found.get("second_embedder")),
        "index": f"{plural(index['files'], 'file')}, {size(index['bytes'])}" if index.get("files") else None,
        "audit": plural(found["audit_entries"], "entry"),
        "redaction": _REDACTION[redaction["mode"]] + registered if redaction else None,
        "version": found["version"],
    }


def _second(found: Document | None) -> str | None:
    if found is None:
        return None
    return f"{found['name']}, {found['dimension']} dimensions{'' if found['ready'] else ', not complete yet'}"


def _needed(found: Document) -> list[str]:
    """What a status says should be done, a sentence each."""
    said = [found["note"]] if found.get("note") else []
    if count := found.get("pending_reviews"):
        said.append(f"{plural(count, 'change')} waiting for approval; run `commonplace review list`")
    if "error" in (webhook := found.get("webhook") or {}):
        since = f" since {moment(webhook['failing_since'])}"
        said.append(f"the webhook fails{since}, {plural(webhook['attempts'], 'attempt')}: {webhook['error']}")
    if failed := found.get("audit_export"):
        said.append(f"the ledger was not exported at {moment(failed['at'])}: {failed['error']}")
    if unwritten := found.get("unwritten_recalls"):
        since = f" since {moment(unwritten['failing_since'])}"
        waiting = plural(unwritten["waiting"], "recall")
        said.append(f"{waiting} cannot be written to the ledger{since}, and is tried again: {unwritten['error']}")
    for store in found.get("stores", ()):
        if store["waiting"] and (store["failing"] or store["status"] == "down"):  # else it is being delivered
            waits = f"{plural(store['waiting'], 'change')} for the store {store['name']} "
            said.append(waits + f"{'waits' if store['waiting'] == 1 else 'wait'}; `commonplace stores` says why")
    if found.get("suggestion"):
        said.append(found["suggestion"])
    return said
