"""How much work a deep recall is in a palace of many drawers: counted, because how long it takes is the machine's."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from store_kinds import STORE

from commonplace.dialects.trusty.operations import Trusty
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Principal

#: A database takes long to fill, and among few the legs of its search find more often the same ones.
FEW, MANY = (1_000, 4_000) if STORE else (500, 10_000)
WORDS = (
    "gateway", "token", "deploy", "server", "release", "branch", "cache", "index", "vector", "query", "review",
    "meeting", "lunch", "plan", "test", "build",
)  # fmt: skip


def calls_of_a_deep_recall(data: Path, drawers: int) -> int:
    """Python functions that are called, in every thread, while a deep recall is answered."""
    chance = random.Random(7)
    drafts = [
        Draft("big", "semantic", f"{' '.join(chance.choices(WORDS, k=20))} {i}", importance=chance.random())
        for i in range(drawers)
    ]
    counting, calls = False, 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        if counting and event == "call":
            calls += 1

    async def recall() -> None:
        nonlocal counting
        engine = await Engine.open(SqliteStore(data / "commonplace.db"), HashingEmbedder())
        try:
            for start in range(0, drawers, 1000):
                await engine.remember_many(Principal(), [BatchItem(draft) for draft in drafts[start : start + 1000]])
            trusty = Trusty(engine, Principal(), "big")
            question = {"query": "which release broke the cache", "top_k": 20}
            await trusty.call("memory_recall_deep", question)  # which loads and maps what it needs
            sys.setprofile(profile)
            counting = True
            found = await trusty.call("memory_recall_deep", {**question, "query": "what was deployed"})
            counting = False
            assert len(found["results"]) == 20
        finally:
            sys.setprofile(None)
            await engine.close()

    threading.setprofile(profile)  # before the store starts its threads
    try:
        asyncio.run(recall())
    finally:
        threading.setprofile(None)
    return calls


@pytest.mark.slow
def test_a_deep_recall_does_no_more_among_many_drawers_than_among_few(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few, many = (calls_of_a_deep_recall(tmp_path / name, n) for name, n in (("few", FEW), ("many", MANY)))
    assert few > 100, "the recall was not seen at work"
    assert many - few < MANY - FEW, "something is done for each drawer"
