"""Many write to one file at once: nothing lost, no error, and nobody waits while others go again and again."""

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
    data, events = tmp_path / "data", tmp_path / "events"
    script = Path(__file__).with_name("concurrent_writer.py")
    writers = [
        subprocess.Popen(
            [sys.executable, str(script), str(data), str(n), str(WRITES), str(events)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(PROCESSES)
    ]
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    kept: set[str] = set()
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in writers:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        kept |= {line.removeprefix("kept ") for line in out.splitlines()}
    assert len(kept) == PROCESSES * WRITES
    assert asyncio.run(_stored(data)) == kept

    asked: dict[tuple[str, str], int] = {}
    turns: list[tuple[int, int]] = []
    tickets: list[int] = []
    holder: list[str] | None = None
    for place, line in enumerate(events.read_text().splitlines()):
        event, name, number, *ticket = line.split()
        if event == "asked":
            asked[name, number] = place
        elif event == "released":
            assert holder == [name, number]
            holder = None
        else:
            assert holder is None, f"{name} was served while {holder} was at work"
            holder = [name, number]
            turns.append((asked[name, number], place))
            tickets += map(int, ticket)
    assert len(turns) >= PROCESSES
    assert tickets == sorted(set(tickets)), "someone was served before an earlier ticket"
    # Overtaken: someone who asked later was served earlier.
    worst = max(sum(a > asked and s < served for a, s in turns) for asked, served in turns)
    assert worst <= 2 * PROCESSES


def test_two_stores_of_one_process_write_at_once(tmp_path: Path) -> None:
    async def write(memory: Memory, name: str) -> set[str]:
        return {(await memory.remember(f"store {name} wrote line {n}")).id for n in range(WRITES)}

    async def both() -> set[str]:
        first, second = (Memory("writer", data=tmp_path, embedder=open_embedder("hashing")) for _ in range(2))
        async with first, second:
            kept = await asyncio.gather(write(first, "one"), write(second, "two"))
        return kept[0] | kept[1]

    kept = asyncio.run(both())
    assert len(kept) == 2 * WRITES
    assert asyncio.run(_stored(tmp_path)) == kept


async def _stored(data: Path) -> set[str]:
    async with Memory("writer", data=data, embedder=open_embedder("hashing")) as memory:
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
