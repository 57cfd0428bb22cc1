"""Which memories an expire policy means. Pure."""

from __future__ import annotations

from commonplace.stores.where import Condition, Where
from commonplace.wire.models import ExpirePolicy
from commonplace.wire.record import Memory

DAY_MS = 86_400_000
DEMOTION = 0.25


def conditions(policy: ExpirePolicy, now: int) -> Where:
    """Everything in the policy that a store can filter by; `stale` decides the rest."""
    where: list[Condition] = []
    if policy.older_than_days is not None:
        where.append(Condition(("created_at",), "lt", max(now - policy.older_than_days * DAY_MS, 0)))
    if policy.type is not None:
        where.append(Condition(("type",), "eq", policy.type))
    if policy.confidence_below is not None:
        where.append(Condition(("confidence",), "lt", policy.confidence_below))
    return tuple(where)


def stale(memory: Memory, policy: ExpirePolicy, now: int) -> bool:
    """Not recalled for so long; a memory never recalled counts from its creation."""
    if policy.no_recall_in_days is None:
        return True
    last = memory.last_recalled_at if memory.last_recalled_at is not None else memory.created_at
    return last < now - policy.no_recall_in_days * DAY_MS
