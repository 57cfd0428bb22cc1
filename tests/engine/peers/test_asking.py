"""Questions in words: what does not answer them is neither shown nor counted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from commonplace import Memory
from commonplace.embedders import model_files
from commonplace.engine.peers.asking import FAINT, PeerQuery, least_relevance
from commonplace.engine.types import Hit
from commonplace.wire import record

LOCAL = record.Principal()
ABOUT = [
    "Pruning as identity: what you forget defines you",
    "Salience decides what a pruning pass retains",
    "Alice is allergic to peanuts",
    "The deployment to staging runs every Tuesday at 9",
    "The quarterly report is due on the 15th of March",
    "The cat is called Miso",
]


def hit(relevance: float | None) -> Hit:
    return Hit(record.Memory("i", "t", "a", "semantic", "x"), 1.0, "s", relevance)


@pytest.mark.parametrize(
    ("relevances", "least"),
    [
        ([], 0.0),
        ([0.5], 0.5 * FAINT),
        ([0.02, 0.9, 0.5], 0.9 * FAINT),
        ([None, None], 0.0),
        ([0.9, None], 0.0),
        ([0.0], 0.0),
    ],
)
def test_what_a_hit_must_have_beside_the_others(relevances: list[float | None], least: float) -> None:
    assert least_relevance([hit(each) for each in relevances]) == pytest.approx(least)


def test_what_lies_far_behind_the_best_is_left_out(tmp_path: Path) -> None:
    async def ask(limit: int) -> tuple[set[str], int]:
        async with Memory("alice", data=tmp_path, embedder="minilm") as memory:
            engine = await memory.engine()
            requester = await engine.peers.requester(
                LOCAL, authenticated=True, agent="alice", claimed="alice", proved=None
            )
            query = PeerQuery((), "what do you know about pruning?")
            found = await engine.peers.ask(requester, query, limit=limit, show=10)
            return {match.memory.content for match in found.matches}, found.total

    async def fill() -> None:
        async with Memory("alice", data=tmp_path, embedder="minilm") as memory:
            for text in ABOUT:
                await memory.remember(text)

    model_files.build()
    asyncio.run(fill())
    assert asyncio.run(ask(10)) == (set(ABOUT[:2]), 2)
    shown, total = asyncio.run(ask(1))
    assert (len(shown), total) == (1, 2), "what was cut by the limit is counted, what does not answer is not"
