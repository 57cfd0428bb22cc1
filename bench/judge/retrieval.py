"""Every question asked of its space, through the engine's own finding."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from bench.judge.spaces import Question, Space
from bench.quality.embedding import RememberedEmbedder
from commonplace.embedders.base import Embedder
from commonplace.engine import BatchItem
from commonplace.engine.engine import Engine
from commonplace.engine.recall.ranking import RankedCandidate
from commonplace.engine.recall.search import SearchOutcome, search
from commonplace.engine.types import Draft
from commonplace.plugins import open_store
from commonplace.stores.base import Reach
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal, system_clock

K = 10
ALICE = Principal()


@dataclass(slots=True)
class Case:
    space: str
    question: Question
    found: SearchOutcome

    @property
    def ranked(self) -> list[RankedCandidate]:
        return self.found.ranked


def label(found: RankedCandidate) -> str:
    """The id the data knows a memory by."""
    return found.memory.aliases[0]


def cases(spaces: Sequence[Space], embedder: Embedder, splits: Sequence[str], *, tokens: bool = True) -> list[Case]:
    """As found in a store that keeps the vectors of tokens, or in one that keeps none."""
    remembered = RememberedEmbedder(embedder, tokens=tokens)
    try:
        return asyncio.run(_cases(spaces, remembered, splits))
    finally:
        remembered.close()


async def fill(engine: Engine, space: Space) -> None:
    receipts = await engine.remember_many(ALICE, [BatchItem(draft) for draft in drafts(space)])
    for receipt in receipts:
        if isinstance(receipt, Fault):
            raise receipt


def drafts(space: Space) -> list[Draft]:
    return [
        Draft(
            space.name,
            memory.type,
            memory.content,
            speaker=memory.speaker,
            event_time=memory.event_time,
            session_id=memory.session_id,
            tags=memory.tags,
            supersedes=memory.supersedes,
            aliases=[memory.id],
        )
        for memory in space.memories
    ]


async def _cases(spaces: Sequence[Space], embedder: Embedder, splits: Sequence[str]) -> list[Case]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        engine = await Engine.open(open_store(f"sqlite://{folder}/bench.db", system_clock), embedder)
        for number, space in enumerate(spaces, 1):
            await fill(engine, space)
            reach = Reach(ALICE.tenant, (space.name,), now=system_clock())
            for question in space.questions:
                if question.split in splits:
                    found.append(Case(space.name, question, await search(engine._core, reach, question.text, K)))
            if sys.stderr.isatty():
                print(f"\rasking: space {number} of {len(spaces)} ", end="", file=sys.stderr, flush=True)
        await engine.close()
    return found
