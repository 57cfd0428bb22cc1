"""PostgreSQL as the primary, on a real server: the contract that every primary passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_databases import database_for

from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock, PrimaryContract

pytestmark = pytest.mark.process


class TestPostgres(PrimaryContract):
    durable = True
    keeps_tokens = True

    def open_store(self, tmp_path: Path, clock: FakeClock) -> PostgresStore:
        return PostgresStore(database_for(tmp_path), clock)
