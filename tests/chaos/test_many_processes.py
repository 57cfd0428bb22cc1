"""Eight processes write to one file: nothing lost, no error, and nobody waits while others go again and again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory

PROCESSES, WRITES = 8, 50


@pytest.mark.slow
def test_eight_processes_write_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script = Path(__file__).with_name("crowd.py")
    crowd = [
        subprocess.Popen(
            [sys.executable, str(script), str(data), str(n), str(WRITES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(PROCESSES)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    kept: set[str] = set()
    turns: list[tuple[int, int]] = []
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in crowd:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        for line in out.splitlines():
            word, *rest = line.split()
            if word == "kept":
                kept.add(rest[0])
            elif word == "turn":
                turns.append((int(rest[0]), int(rest[1])))
    assert len(kept) == PROCESSES * WRITES
    assert asyncio.run(_stored(data)) == kept

    # Overtaken: someone who asked later was served earlier.
    worst = max(sum(a > asked and s < served for a, s in turns) for asked, served in turns)
    assert worst <= 2 * PROCESSES


async def _stored(data: Path) -> set[str]:
    async with Memory("crowd", data=data, embedder=open_embedder("hashing")) as memory:
        found: set[str] = set()
        cursor = None
        while True:
            page = await memory.list(limit=1000, cursor=cursor)
            found |= {m["id"] for m in page["memories"]}
            cursor = page["next_cursor"]
            if cursor is None:
                break
        findings = await memory.doctor(repair=False)
        assert [f for f in findings if not f["ok"]] == []
        assert (await memory.verify_audit())["ok"]
        return found
