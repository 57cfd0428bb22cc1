"""A real store with labelled spaces in it, one agent each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.quality.datasets import Question, Space
from commonplace.engine import BatchItem
from commonplace.engine.core import Core
from commonplace.engine.engine import Engine
from commonplace.stores.base import Reach
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.errors import Fault
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from commonplace.embedders.base import Embedder
    from commonplace.judges.base import Judge

WHO = Principal()
_TOGETHER = 32  # written in one unit of work, so that the order of a conversation is the order of its rows


class Stocked:
    def __init__(self) -> None:
        self.now = 0
        self.engine: Engine

    @property
    def core(self) -> Core:
        return self.engine._core

    def reach(self, space: Space, question: Question) -> Reach:
        self.now = space.now
        where = () if question.user_id is None else (Condition(("user_id",), "eq", question.user_id),)
        return Reach(WHO.tenant, (space.name,), where, now=space.now)


@asynccontextmanager
async def stocked(
    spaces: Sequence[Space], embedder: Embedder | None, judge: Judge | None = None
) -> AsyncIterator[Stocked]:
    """Memories carry their label as an alias, which `supersedes` may name as well as an id."""
    with tempfile.TemporaryDirectory(prefix="commonplace-bench-") as folder:
        held = Stocked()
        store = SqliteStore(Path(folder) / "quality.db", lambda: held.now)
        held.engine = await Engine.open(store, embedder, clock=lambda: held.now)
        held.core.judge = judge
        try:
            for space in spaces:
                held.now = space.now
                drafts = [replace(d, agent_id=space.name, aliases=[id]) for id, d in space.memories.items()]
                for start in range(0, len(drafts), _TOGETHER):
                    done = await held.engine.remember_many(
                        WHO, [BatchItem(d) for d in drafts[start : start + _TOGETHER]]
                    )
                    for outcome in done:
                        if isinstance(outcome, Fault):
                            raise outcome
            yield held
        finally:
            await held.engine.close()


def label(memory: Memory) -> str:
    return memory.aliases[0]
