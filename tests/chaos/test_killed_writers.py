"""A writer is killed at random points, over and over: nothing acknowledged may be missing afterwards."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory
from commonplace.wire.errors import NotFound

KILLS = 120
MAX_SPINS = 250_000  # turns of an empty loop until the kill: up to about as long as a few writes take


@pytest.mark.slow
def test_kill_nine_loses_nothing(tmp_path: Path) -> None:
    dice = random.Random(20261115)
    data, acks = tmp_path / "data", tmp_path / "acks"
    killer = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("killed_writers.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killer.stdin is not None
    assert killer.stdout is not None
    for kill in range(KILLS):
        killer.stdin.write(f"{data} {acks} {dice.choice((0, 1, 2, 5, 9))} {dice.randrange(MAX_SPINS)} {kill}\n")
        killer.stdin.flush()
        assert killer.stdout.readline().strip().isdigit(), "the process that kills them died"
    killer.stdin.close()
    assert killer.wait() == 0
    killer.stdout.close()

    expected: dict[str, str | None] = {}
    uncertain: set[str] = set()
    for line in acks.read_text().splitlines():
        sign, id, *rest = line.split(" ", 2)
        if sign == "+":
            expected[id] = rest[0]
        elif sign == "?":
            uncertain.add(id)
        else:
            expected[id] = None
            uncertain.discard(id)
    assert len(expected) > KILLS, "too few writes were acknowledged for this to say anything"
    asyncio.run(_compare(data, expected, uncertain))


async def _compare(data: Path, expected: dict[str, str | None], uncertain: set[str]) -> None:
    async with Memory("writer", data=data, embedder=open_embedder("hashing")) as memory:
        present: list[str] = []
        for id, content in expected.items():
            try:
                found = (await memory.get(id))["content"]
                present.append(found)
            except NotFound:
                found = None
            # A write in flight at the kill may have happened: only what was acknowledged is certain.
            if found is None:
                assert content is None or id in uncertain, f"{id} was acknowledged and is gone"
            else:
                assert content is not None, f"{id} was forgotten and is back"
                assert found == content or "changed its mind" in found
        findings = await memory.doctor(repair=False)
        assert [f for f in findings if not f["ok"]] == []
        # What is there is found: the last rows written before each of the last kills have their terms and vectors.
        for content in present[-20:]:
            hits = (await memory.recall(content, k=10)).results
            assert content in [hit.content for hit in hits]
