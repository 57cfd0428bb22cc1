"""Commonplace inside the process. A vector is given by asking once before: the embedder's cache then has it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.systems.base import AGENT, BaseAdapter, Embed, Hit, Row, Vector


class Adapter(BaseAdapter):
    embedder = "its own"

    def __init__(self, clock: Any = None) -> None:
        self._clock = clock

    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        from commonplace.sdk import Memory

        more = {"clock": self._clock} if self._clock else {}
        self._runner = asyncio.Runner()
        self._memory = Memory(AGENT, data=folder, **more)
        self._runner.run(self._memory.engine())

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        for group in rows:
            for outcome in self._runner.run(self._memory.remember_batch([request(row) for row in group])):
                if isinstance(outcome, Exception):
                    raise outcome
        self.settle()

    def remember(self, row: Row) -> None:
        self._runner.run(self._memory.remember(**request(row)))

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        judge = None if self.judge else "off"
        found = self._runner.run(self._memory.recall(question, k=k, user_id=user, judge=judge, agent_id=agent))
        return [Hit((hit.metadata or {}).get("label", ""), hit.score) for hit in found.results]

    def relevance(self, question: str, agent: str) -> float:
        """How well the best memory answers, were nothing cut off."""
        found = self._runner.run(self._memory.recall(question, k=1, min_score=0, agent_id=agent))
        return max((hit.relevance or 0.0 for hit in found.results), default=0.0)

    def settle(self) -> None:
        self._runner.run(self._memory.flush())

    def close(self) -> None:
        self._runner.run(self._memory.close())
        self._runner.close()


def request(row: Row) -> dict[str, Any]:
    """The fields of a remember request."""
    made: dict[str, Any] = {"content": row.text, "agent_id": row.agent, "metadata": {**row.fields, "label": row.label}}
    if row.user is not None:
        made["user_id"] = row.user
    if row.vector is not None:
        made["embedding"] = row.vector.tolist()
    for name in ("type", "confidence"):
        if name in made["metadata"]:
            made[name] = made["metadata"].pop(name)
    return made
