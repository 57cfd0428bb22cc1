"""From the embedded store to PostgreSQL and back, on a real server: the same in all three."""

from __future__ import annotations

from pathlib import Path

import pytest
from filled_store import fill_store
from postgres_databases import empty_database

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.store_digest import TenantPlan, digest, plan_tenants
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, open_subject

pytestmark = pytest.mark.process


def test_there_and_back(tmp_path: Path) -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(SqliteStore(tmp_path / "a.db", clock), clock) as (first, wait):
        wait(fill_store(first))
        plans = wait(_planned(first.store))
        with open_subject(PostgresStore(url, clock), clock) as (second, run):
            run(Migration(WHO, first.store, second.store, HashingEmbedder()).run())
            assert run(second.engine.ledger.verify(WHO)).problem is None
            with open_subject(SqliteStore(tmp_path / "b.db", clock), clock) as (third, go):
                run(Migration(WHO, second.store, third.store, HashingEmbedder()).run())
                assert go(third.engine.ledger.verify(WHO)).problem is None
                for plan in plans:
                    expected = wait(digest(first.store, plan))
                    assert run(digest(second.store, plan)) == expected
                    assert go(digest(third.store, plan)) == expected
            assert run(second.recall("peanuts cashews"))[0].recalls == 3


async def _planned(store: SqliteStore) -> list[TenantPlan]:
    return [plan async for plan in plan_tenants(store)]
