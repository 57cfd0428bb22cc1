"""Who makes room for whom, and what has taken too long, decided by a clock that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from commonplace.config import LimitsConfig
from commonplace.serve.connection_guard import ConnectionGuard, GuardedConnection, Stage


class Wire:
    """As much of a transport as the guard uses."""

    def __init__(self) -> None:
        self.written = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True

    @property
    def status(self) -> int:
        return int(self.written[9:12] or 0)


class State:
    default_headers: tuple[Any, ...] = ()


class Parser:
    """As much of uvicorn's protocol as the guard wraps."""

    def connection_made(self, transport: Wire) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None: ...

    def data_received(self, data: bytes) -> None: ...


class Hall:
    """A guard with small limits, and connections at given stages."""

    def __init__(self, **limits: int) -> None:
        self.now = 0.0
        self.guard = ConnectionGuard(LimitsConfig(**limits), lambda: self.now)
        shared = self.guard

        class Connection(GuardedConnection, Parser):
            guard = shared
            cycle = None
            server_state = State

        self._kind = Connection

    def enter(self, address: str, stage: Stage = Stage.SILENT) -> Any:
        connection = self._kind()
        connection.client = (address, 1)
        connection.connection_made(Wire())
        connection.stage = stage
        return connection


def in_loop(test: Callable[[], None]) -> None:
    async def run() -> None:
        test()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("stages", "victim"),
    [
        ([Stage.IDLE, Stage.SILENT, Stage.SILENT], 1),
        ([Stage.IDLE, Stage.HEAD, Stage.IDLE], 1),
        ([Stage.ANSWERING, Stage.IDLE, Stage.IDLE], 1),
        ([Stage.ANSWERING, Stage.ANSWERING, Stage.ANSWERING], None),
    ],
)
@pytest.mark.parametrize("limit", ["connections", "connections_per_address"])
def test_the_least_begun_and_longest_waiting_makes_room(stages: list[Stage], victim: int | None, limit: str) -> None:
    def test() -> None:
        hall = Hall(**{limit: len(stages)})
        there = []
        for stage in stages:
            there.append(hall.enter("10.0.0.1", stage))
            hall.now += 1
        newcomer = hall.enter("10.0.0.1")
        assert [c.transport.aborted for c in there] == [i == victim for i in range(len(stages))]
        assert newcomer.transport.status == (503 if victim is None else 0)
        if victim is None:
            assert b"retry-after: 1\r\n" in newcomer.transport.written
            newcomer.connection_lost(None)
        assert len(hall.guard) == len(stages)

    in_loop(test)


def test_one_address_does_not_take_from_another() -> None:
    def test() -> None:
        hall = Hall(connections=10, connections_per_address=2)
        quiet = hall.enter("10.0.0.1")
        crowd = [hall.enter("10.0.0.2") for _ in range(5)]
        assert not quiet.transport.aborted
        assert [c.transport.aborted for c in crowd] == [True, True, True, False, False]

    in_loop(test)


@pytest.mark.parametrize(
    ("stage", "limit", "status"),
    [
        (Stage.SILENT, "first_byte_seconds", 0),
        (Stage.HEAD, "header_seconds", 408),
        (Stage.BODY, "request_seconds", 0),  # answered already: only what is left of its body was awaited
        (Stage.ANSWERING, "", None),
        (Stage.IDLE, "", None),  # uvicorn's own
    ],
)
def test_each_stage_has_its_time(stage: Stage, limit: str, status: int | None) -> None:
    def test() -> None:
        hall = Hall(first_byte_seconds=3, header_seconds=5, request_seconds=7)
        one = hall.enter("10.0.0.1", stage)
        hall.now = getattr(hall.guard.limits, limit) if limit else 1000
        hall.guard.sweep()
        assert (one.transport.written, one.transport.aborted) == (b"", False)
        hall.now += 0.1
        hall.guard.sweep()
        assert one.transport.aborted is (status == 0)
        assert one.transport.status == (status or 0)

    in_loop(test)


def test_who_takes_nothing_of_an_answer_is_cut_off() -> None:
    def test() -> None:
        hall = Hall(request_seconds=7)
        one = hall.enter("10.0.0.1", Stage.ANSWERING)
        one.blocked_since = hall.now
        hall.now = 7.1
        hall.guard.sweep()
        assert one.transport.aborted

    in_loop(test)
