"""PostgreSQL as the primary, on a real server: the contract that every primary passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_databases import database_for, drop_databases

from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock, PrimaryContract, ReplicaContract

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def dropped(tmp_path: Path) -> Iterator[None]:
    yield
    drop_databases(tmp_path)


class TestPostgres(PrimaryContract):
    durable = True
    keeps_tokens = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> PostgresStore:
        return PostgresStore(database_for(tmp_path), clock)


class TestPostgresReplica(ReplicaContract):
    durable = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> PostgresStore:
        return PostgresStore(database_for(tmp_path), clock)
