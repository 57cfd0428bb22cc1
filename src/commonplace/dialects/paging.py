"""Pages of memories and of the audit trail, as memorywire shows them."""

from __future__ import annotations

from typing import Any

from commonplace.dialects.memorywire import to_wire
from commonplace.engine import Engine
from commonplace.engine.ledger.audit import to_wire as entry_to_wire
from commonplace.engine.memory import read
from commonplace.wire import filters
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Principal


async def memories(
    engine: Engine, who: Principal, agent_id: str, *, type: str | None = None, tag: str | None = None,
    user_id: str | None = None, filter: dict[str, Any] | None = None, limit: int = 100, cursor: str | None = None,
    as_of: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A page {memories, next_cursor}, newest first."""
    where: Where = filters.parse(filter)
    if type is not None:
        where += (Condition(("type",), "eq", type),)
    if user_id is not None:
        where += (Condition(("user_id",), "eq", user_id),)
    if tag is not None:
        where += (read.tagged(tag),)
    page = await engine.list(who, (agent_id,), where, limit=limit, cursor=cursor, as_of=as_of)
    return {"memories": [to_wire(m) for m in page.memories], "next_cursor": page.next_cursor}


async def audit(
    engine: Engine, who: Principal, *, agent_id: str | None = None, operation: str | None = None,
    since: int | None = None, until: int | None = None, limit: int = 100, cursor: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A page {entries, next_cursor} of the audit trail, oldest first."""
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise ValidationError(
            f"cursor {cursor!r:.80} is not one we gave; pass back next_cursor as it came", field="cursor"
        )
    if not 1 <= limit <= 1000:
        raise ValidationError(f"limit must be a whole number from 1 to 1000, not {limit}", field="limit")
    entries = await engine.audit(
        who, agent_id=agent_id, operation=operation, since=since, until=until, limit=limit + 1, after=int(cursor or 0)
    )
    shown = entries[:limit]
    more = str(shown[-1].n) if len(entries) > limit else None
    return {"entries": [entry_to_wire(entry) for entry in shown], "next_cursor": more}


async def verify_audit(engine: Engine, who: Principal, progress: Any = None) -> dict[str, Any]:
    """{ok, entries, head}, and when it is not ok {first_bad, problem}."""
    found = await engine.verify_audit(who, progress)
    verdict: dict[str, Any] = {"ok": found.first_bad is None, "entries": found.entries, "head": found.head}
    if found.first_bad is not None:
        verdict |= {"first_bad": found.first_bad, "problem": found.problem}
    return verdict
