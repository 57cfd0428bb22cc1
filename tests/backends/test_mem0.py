"""mem0 itself, on a folder of its own. Skipped, loudly, where it is not installed."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Entry, Store, StoreSettings
from commonplace.stores.mem0 import Mem0Store
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.record import Memory

# Not imported here: it reads at its import whether it may phone home, which the store forbids first.
pytestmark = [
    pytest.mark.skipif(find_spec("mem0") is None, reason="mem0 is not installed: pip install mem0ai==2.2.1"),
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore"),
]


class TestMem0(ReplicaContract):
    durable = True
    writers = 5

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        from commonplace.plugins import open_replica

        return open_replica(f"mem0://{tmp_path}/mem0", clock, StoreSettings(embed=HashingEmbedder().embed))


def test_no_word_of_what_is_erased_is_left_in_its_folder(tmp_path: Path) -> None:
    """mem0 keeps a history of every text, also of those that are deleted; an older version of ours let it."""
    folder = tmp_path / "mem0"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "history.db")) as older, older:
        older.execute("CREATE TABLE texts AS SELECT 'leukaemia, in the history of an earlier version'")
    memory = Memory("0199-a", "local", "agent", "semantic", "Alice has leukaemia", created_at=1)

    async def work() -> None:
        store = Mem0Store(folder, HashingEmbedder().embed)
        await store.put([Entry(memory, None, b"")])
        await store.put([Entry(replace(memory, content="Alice has leukaemia no more"), None, b"")])
        assert await store.delete("local", [memory.id]) == 1
        assert await store.get("local", [memory.id]) == []
        await store.close()

    asyncio.run(work())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if b"leukaemia" in path.read_bytes()] == []
