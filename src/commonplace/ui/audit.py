"""*Audit*: who did what and when; that nobody has changed it; and a copy to take away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from commonplace.engine import AuditEntry
from commonplace.ui.memories import day_start
from commonplace.ui.page import Answer, Download, PageRequest, PageRoute, Redirect, TemplatePage
from commonplace.wire.errors import Fault
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


# verifying, in a task of its own: a long ledger takes longer than a request may


@dataclass(slots=True)
class Verification:
    """One walk over a tenant's ledger, and what came of it."""

    begun: int
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
    known = _verifications(call)
    running = known.get(call.who.tenant)
    if running is None or running.finished is not None:
        call.engine.ledger.require_verify(call.who)
        made = known[call.who.tenant] = Verification(call.engine.clock())
        made.task = asyncio.create_task(_verify(call, made))
    return Redirect(call.link("audit"))


async def _verify(call: PageRequest, made: Verification) -> None:
    def progress(done: int, of: int) -> None:
        made.done, made.of = done, of

    try:
        found = await call.engine.ledger.verify(call.who, progress)
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
    PageRoute("POST", "audit/verify", verify, "page_audit_verify"),
)
