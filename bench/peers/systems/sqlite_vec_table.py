"""sqlite-vec without anything around it: one table of vectors, partitioned by agent, with the text beside them.

Every write is a transaction that is on the disk when it returns, as Commonplace's is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.peers.systems.base import BaseAdapter, Embed, Hit, Row, Vector


class Adapter(BaseAdapter):
    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        import apsw
        import sqlite_vec

        self._embed = embed
        self._db = apsw.Connection(str(folder / "vectors.db"))
        self._db.enable_load_extension(True)
        self._db.load_extension(sqlite_vec.loadable_path())
        self._db.enable_load_extension(False)
        self._db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS memories USING vec0(agent_id TEXT PARTITION KEY, user_id TEXT, "
            f"embedding float[{dimension}] distance_metric=cosine, +label TEXT, +text TEXT)"
        )

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        for group in rows:
            with self._db:
                for row in group:
                    self._insert(row)

    def remember(self, row: Row) -> None:
        with self._db:
            self._insert(row)

    def _insert(self, row: Row) -> None:
        vector = self._embed(row.text) if row.vector is None else row.vector
        self._db.execute(
            "INSERT INTO memories(agent_id, user_id, embedding, label, text) VALUES(?, ?, ?, ?, ?)",
            (row.agent, row.user or "", vector.tobytes(), row.label, row.text),
        )

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        wanted = self._embed(question) if vector is None else vector
        sql = "SELECT label, distance, text FROM memories WHERE embedding MATCH ? AND k = ? AND agent_id = ?"
        given: tuple[object, ...] = (wanted.tobytes(), k, agent)
        if user:
            sql, given = f"{sql} AND user_id = ?", (*given, user)
        return [Hit(label, -distance) for label, distance, _ in self._db.execute(sql, given)]

    def close(self) -> None:
        self._db.close()
