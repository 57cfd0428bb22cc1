"""Dropping what waits for a store that is configured no more; what is recorded or taken in hand meanwhile stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.outbox.courier import GROUP
from commonplace.engine.outbox.deliveries import Order, is_ahead, is_current, kind_of, order_of
from commonplace.engine.outbox.resync_notices import mark_deliveries_discarded
from commonplace.stores.base import Transaction
from commonplace.stores.optional import Progress
from commonplace.wire.errors import Conflict, NotFound
from commonplace.wire.record import ALL_AGENTS, Principal


async def discard(core: Core, who: Principal, name: str, dry_run: bool, progress: Progress) -> dict[str, Any]:
    """What was dropped, or would be: {store, waiting, deletions}."""
    found = await _look(core, name, refuse_in_hand=not dry_run)
    if dry_run:
        return {"dry_run": True, **found}
    await mark_deliveries_discarded(core.primary, name)
    total, changes, deletions = found["waiting"], 0, 0
    for tenant in await core.primary.tenants():
        orders = {record.key: order_of(record.value) for record in await core.primary.records(tenant, kind_of(name))}
        ids = list(orders)
        for start in range(0, len(ids), GROUP):
            group = {id: orders[id] for id in ids[start : start + GROUP]}
            dropped, gone = await core.transact(tenant, lambda tx, group=group: _drop(tx, who, name, group))  # type: ignore[misc]
            changes, deletions = changes + dropped, deletions + gone
            progress(min(changes, total), total)
    return {"store": name, "waiting": changes, "deletions": deletions}


async def _look(core: Core, name: str, *, refuse_in_hand: bool) -> dict[str, Any]:
    waiting, deletions, now = 0, 0, core.clock()
    for tenant in await core.primary.tenants():
        held = await core.primary.records(tenant, kind_of(name))
        if refuse_in_hand and any(_is_in_hand(record.value, now) for record in held):
            # Whoever has ended leaves no word of it: what it sent may arrive as long as it could have been alive.
            raise Conflict(
                f"a process may be delivering to the store {name}, or one that was has ended within a minute: "
                "end it where it runs, and repeat in a minute"
            )
        ids = [record.key for record in held]
        waiting += len(ids)
        for start in range(0, len(ids), GROUP):
            group = ids[start : start + GROUP]
            current = sum(1 for memory in await core.primary.get(tenant, group) if is_current(memory, now))
            deletions += len(group) - current
    if not waiting:
        raise NotFound(f"nothing waits for a store {name!r}; `commonplace stores` lists those for which it does")
    return {"store": name, "waiting": waiting, "deletions": deletions}


def _drop(tx: Transaction, who: Principal, name: str, orders: Mapping[str, Order]) -> tuple[int, int]:
    """How many were dropped, and how many of them were deletions. One that has changed since it was seen, as by an
    erasure, belongs to a process that has the store."""
    dropped = deletions = 0
    for id, order in orders.items():
        record = tx.record(kind_of(name), id)
        if record is None or order_of(record.value) != order or _is_in_hand(record.value, tx.now):
            continue
        tx.drop_record(kind_of(name), id)
        memory = tx.get(id)
        dropped, deletions = dropped + 1, deletions + (memory is None or not is_current(memory, tx.now))
    if dropped:
        said = {"store": name, "changes": dropped, "deletions": deletions}
        audit.append(tx, who, "discard_deliveries", ALL_AGENTS, [audit.part(None, said)])
    return dropped, deletions


def _is_in_hand(value: Mapping[str, Any], now: int) -> bool:
    return bool(value.get("owner")) and is_ahead(int(value.get("until", 0)), now)
