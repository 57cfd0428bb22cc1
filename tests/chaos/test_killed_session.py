"""A conversation whose process is killed: its notes are there, in their window, and are consolidated by another."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory
from commonplace.testing.subject import FakeClock
from commonplace.wire.record import Principal, system_clock

TALK = """
import asyncio, sys
from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory

async def talk():
    memory = Memory("assistant", data=sys.argv[1], embedder=open_embedder("hashing"))
    session = memory.session("s1", user_id="alice")
    while True:
        for text, keep in (("Alice is allergic to peanuts", True), ("Alice laughed", False)):
            print((await session.remember(text, keep=keep)).id, flush=True)
        await asyncio.Event().wait()

asyncio.run(talk())
"""


def test_what_a_session_noted_outlives_kill_nine_and_is_consolidated(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", TALK, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ids = [process.stdout.readline().strip() for _ in range(2)]
        process.kill()
        assert process.wait() == -signal.SIGKILL
    clock = FakeClock(system_clock())

    async def go_on() -> None:
        async with Memory("assistant", data=tmp_path, embedder=open_embedder("hashing"), clock=clock) as memory:
            session = memory.session("s1", user_id="alice")
            assert {note["id"] for note in (await session.window())["memories"]} == set(ids)
            assert (await session.recall("peanuts")).results[0].id == ids[0]
            clock.advance(600_000)
            engine = await memory.engine()
            assert (await engine.lifecycle.run(Principal(), "consolidate")).counts["promoted"] == 1
            assert [note["id"] for note in (await session.window())["memories"]] == [ids[1]]

    asyncio.run(go_on())
