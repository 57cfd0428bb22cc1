"""What happens to reviews, read from the ledger: in order, across processes, and from wherever a reader left off."""

from __future__ import annotations

import json
from typing import Any

from commonplace.engine.core import REVIEW, Core
from commonplace.engine.governance.decisions import as_of_now, may_see
from commonplace.stores.base import AuditEntry, Record, Transaction
from commonplace.wire.record import Principal

WEBHOOK, CURSOR = "webhook", "cursor"
_PAGE = 500
_NAMES = {"approve": "approved", "reject": "rejected", "edit_review": "edited", "expire_review": "expired"}
#: What an event says of a review: that and what it is about, and nothing of what any memory says.
_SHOWN = ("id", "operation", "agent_id", "created_at", "status", "revision", "requested_by", "rule", "dialect")


class ReviewEvents:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def head(self, who: Principal) -> int:
        """The number after which only what is yet to happen comes."""
        return (await self._core.primary.audit_head(who.tenant))[0]

    async def since(self, who: Principal, after: int) -> tuple[list[dict[str, Any]], int]:
        """What happened to reviews that the caller may see after entry `after`: [{n, event, review}], oldest first, and
        the number to go on from."""
        found: list[dict[str, Any]] = []
        if (await self.head(who)) <= after:
            return found, after
        entries = await self._core.primary.audit(who.tenant, after=after, limit=_PAGE)
        for entry in entries:
            name = "staged" if entry.operation.startswith("stage_") else _NAMES.get(entry.operation)
            review = await self._review(who, entry) if name is not None else None
            if review is not None:
                found.append({"n": entry.n, "event": name, "at": entry.at, "review": review})
        return found, entries[-1].n if entries else after

    async def _review(self, who: Principal, entry: AuditEntry) -> dict[str, Any] | None:
        payloads = [json.loads(part.payload) for part in entry.parts if part.payload is not None]
        id = payloads[0].get("review_id") if payloads else None
        record = await self._core.primary.record(who.tenant, REVIEW, id) if isinstance(id, str) else None
        if record is None or not may_see(who, record.value):
            return None
        value = as_of_now(self._core, record.value, self._core.clock())
        return {name: value[name] for name in _SHOWN if value.get(name) is not None}

    # what was told to a webhook

    async def delivered(self, tenant: str) -> dict[str, Any] | None:
        """How far a webhook has been told, and what went wrong last; None before the first time."""
        record = await self._core.primary.record(tenant, WEBHOOK, CURSOR)
        return None if record is None else record.value

    async def note_delivered(self, tenant: str, value: dict[str, Any]) -> None:
        def work(tx: Transaction) -> None:
            tx.put_record(Record(WEBHOOK, CURSOR, value))

        await self._core.transact(tenant, work)

    async def tenants(self) -> list[str]:
        return list(await self._core.primary.tenants())
