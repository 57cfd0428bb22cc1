"""*Audit*: who did what and when; that nobody has changed it; and a copy to take away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commonplace.engine import AUDIT_OPERATIONS, AuditEntry, read_evidence
from commonplace.ui.memories import day_start
from commonplace.ui.page import Answer, Download, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Conflict, Fault
from commonplace.wire.times import DAY_MS

PAGE = 100
_EXPORTED = 1000  # entries that are read at once
_UNDOABLE = ("forget", "expire", "merge")  # operations that an undo of their memories takes back


async def show_audit(call: PageRequest) -> Answer:
    query, which = call.query, _which(call.query)
    cursor = query.get("cursor") or None
    entries, more = await call.engine.ledger.page(call.who, limit=PAGE, cursor=cursor, newest_first=True, **which)
    kept = {name: query.get(name) for name in ("agent", "operation", "since", "until")}
    values = {
        "entries": [{"entry": entry, "parts": [_told(part.payload) for part in entry.parts],
                     "memories": [part.memory_id for part in entry.parts if part.memory_id]} for entry in entries],
        **{name: value or "" for name, value in kept.items()},
        "following": call.link("audit", **kept, cursor=more) if more else None,
        "export": call.link("audit/export", **kept), "verification": _verifications(call).get(call.who.tenant),
        "may_verify": call.who.uses_all_agents, "may_write": call.may("writer"), "undoable": _UNDOABLE,
        "operations": AUDIT_OPERATIONS,
    }  # fmt: skip
    return TemplatePage("audit_rows.html" if call.fragment else "audit.html", values)


def _which(query: Mapping[str, str]) -> Any:
    until = day_start("until", query.get("until", ""))
    return {
        "agent_id": query.get("agent", "").strip() or None,
        "operation": query.get("operation", "").strip() or None,
        "since": day_start("since", query.get("since", "")),
        "until": None if until is None else until + DAY_MS - 1,
    }


def _told(payload: bytes | None) -> str:
    return "(erased)" if payload is None else payload.decode("utf-8", "replace")


async def export(call: PageRequest) -> Answer:
    """One JSON document a line, oldest first."""
    which = _which(call.query)
    first, cursor = await call.engine.ledger.page(call.who, limit=_EXPORTED, **which)

    async def chunks() -> AsyncIterator[bytes]:
        entries, more = first, cursor
        while True:
            yield b"".join(_line(entry) for entry in entries)
            if more is None:
                return
            entries, more = await call.engine.ledger.page(call.who, limit=_EXPORTED, cursor=more, **which)

    return Download("audit.jsonl", "application/x-ndjson", chunks())


def _line(entry: AuditEntry) -> bytes:
    head = ("n", "at", "seq", "operation", "agent_id", "principal", "payload_hash", "previous", "hash")
    document: dict[str, Any] = {name: getattr(entry, name) for name in head}
    document["parts"] = [
        {"memory_id": part.memory_id, "payload": None if part.payload is None else json.loads(part.payload),
         "salt": None if part.salt is None else part.salt.hex(), "hash": part.hash}
        for part in entry.parts
    ]  # fmt: skip
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


# heads and proofs


async def show_proofs(call: PageRequest) -> Answer:
    """Where heads are signed, proofs made, and the ledger compared with what was kept elsewhere."""
    query, heads = call.query, call.engine.ledger.heads
    values: dict[str, Any] = {
        "key": heads.key(call.who), "proof": None, "consistency": None, "problem": None,
        "may_verify": call.who.uses_all_agents,
        "since_size": query.get("from", "").strip(),  # `from` is a word of the templates' language
        **{name: query.get(name, "").strip() for name in ("entry", "size", "to")},
    }  # fmt: skip
    try:
        if (entry := call.whole("entry", values["entry"])) is not None:
            values["proof"] = _pretty(await heads.proof(call.who, entry, call.whole("size", values["size"])))
        if (first := call.whole("from", values["since_size"])) is not None:
            found = await heads.consistency(call.who, first, call.whole("to", values["to"]))
            values["consistency"] = _pretty(found)
    except Fault as fault:
        if fault.code != "validation_error":
            raise
        values["problem"] = fault.summary
    return TemplatePage("audit_proofs.html", values, 400 if values["problem"] else 200)


def _pretty(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1)


async def sign_head(call: PageRequest) -> Answer:
    """A file to keep elsewhere."""
    head = await call.engine.ledger.heads.head(call.who)

    async def chunks() -> AsyncIterator[bytes]:
        yield json.dumps(head).encode() + b"\n"

    return Download(f"head-{head['size']}.json", "application/json", chunks())


async def export_headers(call: PageRequest) -> Answer:
    """As `commonplace audit export` writes it: nothing of any memory, and a signed head at the end."""
    return Download("ledger.jsonl", "application/x-ndjson", call.engine.ledger.export_lines(call.who))


# verifying, in a task of its own: a long ledger takes longer than a request may


@dataclass(slots=True)
class Verification:
    """One walk over a tenant's ledger, and what came of it."""

    begun: int
    evidence: Sequence[dict[str, Any]] = ()  # heads and exported entries that it must still be the ledger of
    key: str | None = None
    done: int = 0
    of: int = 0
    task: asyncio.Task[None] | None = None
    finished: int | None = None
    entries: int = 0
    head: str = ""
    first_bad: int | None = None
    problem: str | None = None

    @property
    def percent(self) -> int:
        return round(100 * self.done / self.of) if self.of else 0


def _verifications(call: PageRequest) -> dict[str, Verification]:
    found: dict[str, Verification] = call.kept.setdefault("verifications", {})
    return found


async def verify(call: PageRequest) -> Answer:
    """Begun here and done beside; the page that one is led to tells how far it is."""
    call.engine.ledger.require_verify(call.who)
    known, text = _verifications(call), call.text("evidence").strip()
    evidence = read_evidence(text.splitlines(keepends=True), "what was pasted") if text else ()
    running = known.get(call.who.tenant)
    if running is None or running.finished is not None:
        made = Verification(call.engine.clock(), evidence, call.value("key") or None)
        known[call.who.tenant] = made
        made.task = asyncio.create_task(_verify(call, made))
    elif evidence:  # what is being looked at is not what was asked
        raise Conflict("the ledger is being verified already; try again when that is done")
    return Redirect(call.link("audit"))


async def _verify(call: PageRequest, made: Verification) -> None:
    def progress(done: int, of: int) -> None:
        made.done, made.of = done, of

    try:
        found = await call.engine.ledger.verify(call.who, progress, evidence=made.evidence, key=made.key)
        made.entries, made.head, made.first_bad, made.problem = (
            found.entries,
            found.head,
            found.first_bad,
            found.problem,
        )
    except Fault as fault:
        made.problem = fault.summary
    except Exception as error:
        made.problem = f"it could not be checked ({type(error).__name__})"
    made.finished = call.engine.clock()


ROUTES = (
    PageRoute("GET", "audit", show_audit, "page_audit"),
    PageRoute("GET", "audit/export", export, "page_audit_export"),
    PageRoute("GET", "audit/proofs", show_proofs, "page_audit_proofs"),
    PageRoute("GET", "audit/head", sign_head, "page_audit_head"),
    PageRoute("GET", "audit/ledger", export_headers, "page_audit_ledger"),
    PageRoute("POST", "audit/verify", verify, "page_audit_verify"),
)
