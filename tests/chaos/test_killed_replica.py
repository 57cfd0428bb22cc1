"""A replica that is killed while it is written to, and one that stops answering: real servers, real signals."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from server_process import run_server

from commonplace import Memory
from commonplace.engine.outbox.resync import digest
from commonplace.plugins import open_replica
from commonplace.stores.base import Reach
from commonplace.stores.mixins import scan_all
from commonplace.testing.subject import FakeClock
from commonplace.wire.record import Memory as Record, Principal, system_clock

pytestmark = [pytest.mark.process, pytest.mark.slow]


async def _held(url: str) -> list[Record]:
    other = open_replica(f"memorywire+{url}", system_clock)
    try:
        return await scan_all(other, Reach("local", ("a",)))
    finally:
        await other.close()


async def _own(memory: Memory) -> list[Record]:
    engine = await memory.engine()
    return (await engine.list(Principal(), ("a",), limit=1000)).memories


def test_a_store_killed_amid_writes_catches_up_and_ends_equal(tmp_path: Path) -> None:
    clock = FakeClock(system_clock())

    async def write(url: str, kill: object) -> None:
        stores = [f"sqlite://{tmp_path}/own.db", f"memorywire+{url}?name=other&timeout=10"]
        async with Memory("a", stores=stores, data=tmp_path / "data", embedder="hashing", clock=clock) as memory:
            for n in range(12):
                if n == 6:
                    kill()  # type: ignore[operator]
                await memory.remember(f"fact number {n}")
            gone = (await memory.list())["memories"][0]["id"]
            await memory.forget(gone, hard_delete=True)
            waiting = (await memory.stores())[1]
            assert 6 <= waiting["waiting"] <= 7

    data = tmp_path / "other"
    with run_server(data) as server:
        asyncio.run(write(server.url, lambda: server.stop(signal.SIGKILL)))
    clock.advance(3_600_000)

    async def catch_up(url: str) -> None:
        stores = [f"sqlite://{tmp_path}/own.db", f"memorywire+{url}?name=other&timeout=10"]
        async with Memory("a", stores=stores, data=tmp_path / "data", embedder="hashing", clock=clock) as memory:
            engine = await memory.engine()
            await engine._core.outbox.run_due()
            assert (await memory.stores())[1]["waiting"] == 0
            assert digest(await _held(url)) == digest(await _own(memory))
            assert len(await _held(url)) == 11
            assert (await memory.resync("other"))["equal"]

    with run_server(data) as server:
        asyncio.run(catch_up(server.url))


def test_a_server_that_stops_answering_is_named_and_not_waited_for(tmp_path: Path) -> None:
    async def ask(url: str, stop: object) -> None:
        stores = [f"sqlite://{tmp_path}/own.db", f"memorywire+{url}?name=other&timeout=0.3"]
        async with Memory("a", stores=stores, data=tmp_path / "data", embedder="hashing") as memory:
            await memory.remember("Alice drinks tea")
            stop()  # type: ignore[operator]
            found = await memory.recall("tea")
            assert [hit.content for hit in found] == ["Alice drinks tea"]
            assert [each.store for each in found.errors or ()] == ["other"]

    with run_server(tmp_path / "other") as server:
        try:
            asyncio.run(ask(server.url, lambda: server.process.send_signal(signal.SIGSTOP)))
        finally:
            server.process.send_signal(signal.SIGCONT)
