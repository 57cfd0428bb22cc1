"""Two stores have the same digest exactly where they hold the same."""

from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from filled_store import fill_store

from commonplace.engine.core import SYSTEM
from commonplace.engine.lifecycle.scheduler import LEASE, LIFECYCLE
from commonplace.engine.transfer import store_digest
from commonplace.engine.transfer.migration_marks import MIGRATION
from commonplace.engine.transfer.store_digest import digest, plan_tenants
from commonplace.stores.base import Record
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO, Subject, open_subject

Change = Callable[[Subject], Awaitable[Any]]


def put(tenant: str, record: Record) -> Change:
    return lambda s: s.store.transact(tenant, lambda tx: tx.put_record(record))


async def erase_payloads(s: Subject) -> None:
    """What entries say of a memory, and nothing else of it."""
    id = (await s.get("a1")).id
    await s.store.transact("local", lambda tx: tx._erase_audit_parts(id))  # type: ignore[attr-defined]


async def demote(s: Subject) -> None:
    id = (await s.get("a1")).id
    await s.store.transact("local", lambda tx: tx.demote([id], 0.25))


CHANGES: dict[str, tuple[Change, set[str]]] = {
    "nothing": (lambda s: s.list(), set()),
    "a demotion": (demote, {"memories"}),
    "a record": (put("local", Record("palace", "agent", {"identity": "another"})), {"records"}),
    "payloads": (erase_payloads, {"ledger"}),
    "a lease": (put(SYSTEM, Record(LIFECYCLE, LEASE, {"until": 5})), set()),
    "the notes of a migration": (put("local", Record(MIGRATION, "progress", {"seq": 1})), set()),
    "a statement": (
        lambda s: s.engine.graph.assert_fact(WHO, "mute", subject="Oslo", predicate="is_in", object="Europe"),
        {"statements", "ledger"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_tells_which_part_has_changed(subject: Subject, run: Any, change: str) -> None:
    async def digests() -> dict[tuple[str, str], str]:
        plans = [plan async for plan in plan_tenants(subject.store)]
        found = [(plan.tenant, await digest(subject.store, plan)) for plan in plans]
        return {(tenant, part): value for tenant, parts in found for part, value in parts.items()}

    run(fill_store(subject))
    make, parts = CHANGES[change]
    before = run(digests())
    run(make(subject))
    after = run(digests())
    assert {part for (tenant, part), value in after.items() if before[tenant, part] != value} == parts


def test_what_there_is_to_carry_is_counted_by_tenant(subject: Subject, run: Any) -> None:
    async def plans() -> dict[str, dict[str, int]]:
        return {plan.tenant: dict(plan.counts) async for plan in plan_tenants(subject.store)}

    run(fill_store(subject))
    found = run(plans())
    assert list(found) == [SYSTEM, "local", "other"]
    assert (found["local"]["memory"], found["local"]["statement"], found["other"]["memory"]) == (5, 1, 1)


def test_what_there_is_to_carry_is_not_held_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_digest, "PAGE", 4)
    clock, each, memories = FakeClock(), 250_000, 40
    with open_subject(SqliteStore(tmp_path / "source.db", clock), clock) as (subject, run):
        for n in range(memories):
            run(subject.remember(f"{n} ".ljust(each, "x")))

        async def count() -> int:
            return sum([plan.counts["memory"] async for plan in plan_tenants(subject.store)])

        tracemalloc.start()
        try:
            assert run(count()) == memories
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < each * memories / 2
