"""LanceDB, embedded; its filter is a `where` before the search. No index is built: that is its default, and exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, Hit, Row, Vector


class Adapter(BaseAdapter):
    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        import lancedb
        import pyarrow as pa

        self._embed = embed
        words = [(name, pa.string()) for name in ("label", "text", "agent_id", "user_id")]
        self._schema = pa.schema([*words, ("vector", pa.list_(pa.float32(), dimension))])
        self._table = lancedb.connect(str(folder)).create_table("memories", schema=self._schema, exist_ok=True)

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        for group in rows:
            self._table.add([self._document(row) for row in group])
        # One file instead of one for every call, and those of before not kept for a week.
        self._table.optimize(cleanup_older_than=timedelta(0))

    def remember(self, row: Row) -> None:
        self._table.add([self._document(row)])

    def _document(self, row: Row) -> dict[str, Any]:
        vector = self._embed(row.text) if row.vector is None else row.vector
        return {"label": row.label, "text": row.text, "agent_id": row.agent, "user_id": row.user, "vector": vector}

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        where = f"agent_id = '{agent}'" + (f" AND user_id = '{user}'" if user else "")
        asked = self._table.search(self._embed(question) if vector is None else vector)
        found = asked.distance_type("cosine").where(where, prefilter=True).limit(k)
        hits = found.select(["label", "text", "agent_id", "user_id", "_distance"]).to_list()
        return [Hit(hit["label"], -hit["_distance"]) for hit in hits]

    def close(self) -> None:
        pass
