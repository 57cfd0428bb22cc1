"""The reference package of the memorywire protocol, with its own store over sqlite-vec and FTS5.

It searches the whole table and applies the agent and the user to the best 4 k of each leg.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, GivenVector, Hit, Row, Vector


class Adapter(BaseAdapter):
    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        _sqlite_with_extensions()
        from memorywire.store.sqlite_vec import SqliteVecStore

        self._given = GivenVector(embed)
        self._store = SqliteVecStore(
            str(folder / "memories.db"), embedding_dim=dimension, embedder=lambda text: self._given(text).tolist()
        )
        self._agents: dict[str, Any] = {}
        self._runner = asyncio.Runner()

    def _memory(self, agent: str) -> Any:
        if agent not in self._agents:
            from memorywire import Memory

            self._agents[agent] = Memory(agent, [self._store])
        return self._agents[agent]

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """It has no way to write many at once: one by one, without waiting for the disk."""
        self._store._conn.execute("PRAGMA synchronous = OFF")
        for group in rows:
            for row in group:
                self.remember(row)
        self._store._conn.execute("PRAGMA synchronous = FULL")

    def remember(self, row: Row) -> None:
        self._given.give(row.text, row.vector)
        memory = self._memory(row.agent)
        self._runner.run(memory.remember(row.text, user_id=row.user, metadata={"label": row.label}))

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        self._given.give(question, vector)
        found = self._runner.run(self._memory(agent).recall(question, k=k, user_id=user))
        return [Hit((hit.metadata or {}).get("label", ""), hit.score) for hit in found]

    def close(self) -> None:
        self._store.close()
        self._runner.close()


def _sqlite_with_extensions() -> None:
    import sqlite3

    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3

        sys.modules["sqlite3"] = pysqlite3
