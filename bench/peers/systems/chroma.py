"""Chroma, persistent and in the process; its filter is a `where` on metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, Hit, Row, Vector

_LARGEST = 5000  # rows in one call


class Adapter(BaseAdapter):
    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        import chromadb
        from chromadb.config import Settings

        self._embed = embed
        self._client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._table = self._client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def use_own_embedder(self) -> None:
        """The one a collection has when nothing is said; raises where its model is not there and cannot be fetched."""
        from chromadb.utils.embedding_functions import DefaultEmbeddingFunction

        own = DefaultEmbeddingFunction()
        own(["is the model there?"])
        self._embed = lambda text: own([text])[0]  # type: ignore[assignment,return-value]
        self.embedder = "its own"

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        for group in rows:
            for start in range(0, len(group), _LARGEST):
                self._add(group[start : start + _LARGEST])

    def remember(self, row: Row) -> None:
        self._add([row])

    def _add(self, rows: Sequence[Row]) -> None:
        self._table.add(
            ids=[row.label for row in rows],
            embeddings=[self._embed(row.text) if row.vector is None else row.vector for row in rows],
            documents=[row.text for row in rows],
            metadatas=[{"agent_id": row.agent, **({"user_id": row.user} if row.user else {})} for row in rows],
        )

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        where: Any = {"agent_id": agent}
        if user:
            where = {"$and": [{"agent_id": agent}, {"user_id": user}]}
        found = self._table.query(
            query_embeddings=[self._embed(question) if vector is None else vector],
            n_results=k,
            where=where,
            include=["documents", "metadatas", "distances"],
        )
        return [Hit(label, -far) for label, far in zip(found["ids"][0], found["distances"][0], strict=True)]

    def close(self) -> None:
        self._client.close()
