"""A store with something of everything in it, another that is empty, and the way from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transfer_scenarios import WHO

from commonplace.stores.memory import InMemory
from commonplace.testing.subject import FakeClock, Subject, open_subject


@pytest.fixture
def subject(over: tuple[Subject, Any]) -> Subject:
    return over[0]


@pytest.fixture
def run(over: tuple[Subject, Any]) -> Any:
    return over[1]


@pytest.fixture
def elsewhere() -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """Another store, whose clock is a day ahead, with something of its own in it."""
    clock = FakeClock()
    clock.advance(86_400_000)
    with open_subject(InMemory(clock), clock) as (other, wait):
        wait(other.remember("Bob keeps bees", agent="bob"))
        yield other, wait


@pytest.fixture
def filled(subject: Subject, run: Any) -> Subject:
    """Versions, an alias, a merge, an archived and a forgotten memory, statements, a palace, an erased memory."""

    async def fill() -> None:
        first = await subject.remember(
            "Alice is allergic to peanuts", user_id="alice", tags=["food"], metadata={"stars": 3, "über": "naïve ☃"},
            importance=0.9, source="chat", session_id="s1", speaker="Alice", event_time=-5, title="Allergy",
            aliases=["allergy-1"], provenance={"dialect": "amp"}, confidence=0.5,
        )  # fmt: skip
        subject.clock.advance(1000)
        await subject.update(first, content="Alice is allergic to peanuts and cashews", tags=["food", "health"])
        subject.clock.advance(1000)
        canonical = await subject.remember("Alice lives in Bergen", entity_name="Alice")
        await subject.merge(canonical, await subject.remember("Alice's home is Bergen"))
        await subject.remember("old news", type="episodic")
        await subject.forget(await subject.remember("forgotten for good"))
        await subject.forget(await subject.remember("erased for good"), hard_delete=True)
        await subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object="Oslo")
        subject.clock.advance(1000)
        await subject.engine.graph.assert_fact(
            WHO, "agent", subject="Alice", predicate="lives_in", object="Bergen", provenance=canonical
        )
        await subject.engine.graph.assert_fact(WHO, "mute", subject="Oslo", predicate="is_in", object="Norway")
        await subject.engine.palaces.create(WHO, "library", "where the books are")
        await subject.engine.palaces.set_identity(WHO, "agent", "I help Alice.")
        await subject.recall("peanuts")
        await subject.recall("peanuts")
        await subject.engine.flush()
        subject.clock.advance(1000)

    run(fill())
    return subject


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    def save(data: bytes, name: str = "export.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return save
