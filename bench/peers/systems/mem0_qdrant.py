"""mem0 with its local qdrant and no language model: `infer=False` keeps a text as it is. Our vectors come through the
embedder it is built around; its keyword leg needs a download of its own and stays off where that is not installed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import BaseAdapter, Embed, GivenVector, Hit, Row, Vector


class _Embedding:
    """What mem0 asks of an embedding model."""

    def __init__(self, given: GivenVector) -> None:
        self._given = given

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._given(text).tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Adapter(BaseAdapter):
    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
        from mem0 import Memory

        self._given = GivenVector(embed)
        qdrant = {"path": str(folder / "qdrant"), "embedding_model_dims": dimension, "on_disk": True}
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
                "llm": unused,
                "embedder": unused,
            }
        )
        self._memory.embedding_model = _Embedding(self._given)

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """Through its vector store, with the payload that `add` writes; without the history of each, and without
        waiting for the disk: the store would sync every row on its own."""
        import hashlib
        import uuid
        from datetime import UTC, datetime

        now = datetime.now(UTC).isoformat()
        store = self._memory.vector_store
        database = store.client._client.collections[store.collection_name].storage.storage
        database.execute("PRAGMA synchronous = OFF")
        for group in rows:
            payloads: list[dict[str, Any]] = [
                {
                    **self._scope(row),
                    "label": row.label,
                    "role": "user",
                    "data": row.text,
                    "hash": hashlib.md5(row.text.encode()).hexdigest(),
                    "created_at": now,
                    "updated_at": now,
                    "text_lemmatized": row.text,
                }
                for row in group
            ]
            ids = [str(uuid.uuid4()) for _ in group]
            vectors = [row.vector.tolist() for row in group if row.vector is not None]
            store.insert(vectors=vectors, payloads=payloads, ids=ids)
        database.execute("PRAGMA synchronous = FULL")

    def remember(self, row: Row) -> None:
        self._given.give(row.text, row.vector)
        self._memory.add(row.text, infer=False, metadata={"label": row.label}, **self._scope(row))

    def _scope(self, row: Row) -> dict[str, str]:
        return {"agent_id": row.agent, **({"user_id": row.user} if row.user else {})}

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        self._given.give(question, vector)
        filters = {"agent_id": agent, **({"user_id": user} if user else {})}
        found = self._memory.search(question, top_k=k, filters=filters)["results"]
        return [Hit((hit.get("metadata") or {}).get("label", ""), hit["score"]) for hit in found]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()
