"""How long a deep recall takes in a palace of many drawers, measured as a client would."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

import pytest
from trusty_process import prefill, run_trusty

from commonplace.engine.types import Draft

DRAWERS = 20_000
TARGET_SECONDS = 0.15
WORDS = (
    "gateway", "token", "deploy", "server", "release", "branch", "cache", "index", "vector", "query", "review",
    "meeting", "lunch", "plan", "test", "build",
)  # fmt: skip


@pytest.mark.slow
def test_a_deep_recall_among_many_drawers_is_fast(tmp_path: Path) -> None:
    chance = random.Random(7)
    drafts = [
        Draft("big", "semantic", f"{' '.join(chance.choices(WORDS, k=20))} {i}", importance=chance.random())
        for i in range(DRAWERS)
    ]
    for start in range(0, DRAWERS, 1000):
        prefill(tmp_path, *drafts[start : start + 1000])
    with run_trusty(tmp_path, "--palace", "big") as client:
        client.call("memory_recall_deep", query="what was deployed", top_k=20)  # which loads and maps what it needs
        taken = []
        for i in range(15):
            started = time.perf_counter()
            assert (
                len(client.call("memory_recall_deep", query=f"which release broke the cache {i}", top_k=20)["results"])
                == 20
            )
            taken.append(time.perf_counter() - started)
    # The best of them: how busy the machine is otherwise is not what is asked.
    assert min(taken) < TARGET_SECONDS, statistics.median(taken)
