"""What contracts are written with: a store under the real engine, opened in an empty folder for each test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commonplace.conformance.subject import START as START, WHO as WHO, FakeClock as FakeClock, Subject as Subject
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.stores.base import Primary
from commonplace.wire.times import DAY_MS as DAY_MS


@contextmanager
def open_subject(store: Primary, clock: FakeClock) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """A subject over this store, and the way to await one thing after another where a test is not async."""
    with asyncio.Runner() as runner:
        subject = Subject(runner.run(Engine.open(store, HashingEmbedder(), clock=clock)), store, clock)
        try:
            yield subject, runner.run
        finally:
            runner.run(subject.engine.close())


Scenario = Callable[[Any, Subject], Coroutine[Any, Any, None]]


def scenario(*needs: str) -> Callable[[Scenario], Callable[[Any, Path], None]]:
    """A test that opens the store in an empty folder, runs the scenario, and closes it.

    It is skipped where the store does not declare the capabilities that it needs.
    """

    def decorate(run: Scenario) -> Callable[[Any, Path], None]:
        def test(self: Contract, tmp_path: Path) -> None:
            with self.opened(tmp_path, *needs) as (subject, wait):
                wait(run(self, subject))

        test.__name__, test.__doc__ = run.__name__, run.__doc__
        return test

    return decorate


class Contract:
    """How a scenario gets its store."""

    durable = False

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Primary:
        """The store to test, made in this folder; called again with the same folder when it is reopened."""
        raise NotImplementedError

    @contextmanager
    def opened(
        self, tmp_path: Path, *needs: str, clock: FakeClock | None = None
    ) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
        """As `open_subject`, over the store to test."""
        clock = clock or FakeClock()
        with open_subject(self.open_store(tmp_path, clock), clock) as (subject, wait):
            for capability in needs:
                if capability not in subject.store.capabilities:
                    pytest.skip(f"{subject.store.name} does not declare {capability}")
            yield subject, wait
