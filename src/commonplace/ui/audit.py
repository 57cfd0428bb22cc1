"""*Audit*: who did what and when, and a copy to take away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from commonplace.engine import AUDIT_OPERATIONS, AuditEntry
from commonplace.ui.audit_proofs import verifications
from commonplace.ui.memories import day_start
from commonplace.ui.page import Answer, Download, PageRequest, PageRoute, TemplatePage
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
        "export": call.link("audit/export", **kept), "verification": verifications(call).get(call.who.tenant),
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


ROUTES = (
    PageRoute("GET", "audit", show_audit, "page_audit"),
    PageRoute("GET", "audit/export", export, "page_audit_export"),
)
