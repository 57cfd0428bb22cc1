"""What scenarios are written with: a clock that passes when told to, and a store under the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Draft, Engine, Expire, Forget, ForgetResult, Merge, MergeResult, Query
from commonplace.stores.base import Primary
from commonplace.wire.errors import Fault, NotFound
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS as DAY_MS

START = 1_750_000_000_000
WHO = Principal()


@dataclass(eq=False)
class FakeClock:
    """Milliseconds that pass only when told to; a negative step is a clock that was set back."""

    now: int = START

    def __call__(self) -> int:
        return self.now

    def advance(self, ms: int) -> int:
        self.now += ms
        return self.now


@dataclass(eq=False)
class Subject:
    """A store under an engine, with the shortest way to say each thing."""

    engine: Engine
    store: Primary
    clock: FakeClock

    async def remember(self, content: str, agent: str = "agent", **fields: Any) -> str:
        return (await self.engine.remember(WHO, Draft(agent, fields.pop("type", "semantic"), content, **fields))).id

    async def remember_all(self, drafts: list[Draft]) -> list[str]:
        done = await self.engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])
        return [receipt.id for receipt in done if not isinstance(receipt, Fault)]

    async def recall(self, text: str, agent: str = "agent", **query: Any) -> list[Memory]:
        where = parse(query.pop("filter", None))
        found = await self.engine.recall(WHO, Query((agent,), text, where=where, **query))
        return [hit.memory for hit in found.hits]

    async def get(self, id: str, agent: str = "agent", **options: Any) -> Memory:
        return await self.engine.get(WHO, agent, id, **options)

    async def list(self, agent: str = "agent", filter: dict[str, Any] | None = None, **options: Any) -> list[Memory]:
        return (await self.engine.list(WHO, (agent,), parse(filter), limit=1000, **options)).memories

    async def update(self, id: str, **fields: Any) -> Memory:
        return await self.engine.update_with(WHO, "agent", id, lambda m: replace(m, **fields))

    async def forget(self, *ids: str, agent: str = "agent", **fields: Any) -> ForgetResult:
        return await self.engine.forget(WHO, Forget(agent, ids, **fields))

    async def merge(self, canonical: str, *duplicates: str, strategy: Any = "keep_canonical") -> MergeResult:
        return await self.engine.merge(WHO, Merge("agent", canonical, duplicates, strategy))

    async def expire(self, action: Any = "forget", **policy: Any) -> list[str]:  # type: ignore[valid-type]
        return (await self.engine.expire(WHO, Expire("agent", action=action, **policy))).ids

    async def gone(self, id: str, agent: str = "agent") -> bool:
        try:
            await self.get(id, agent)
        except NotFound:
            return True
        return False


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
