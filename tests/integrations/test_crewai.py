"""CrewAI's memory over this one, with CrewAI itself: a crew, its tools and its events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any

import pytest
from adapter_cases import REJECTS, SECRET, STAGES

from commonplace.blocking import BlockingMemory

if find_spec("crewai") is None:  # before anything is set: other tests of this process may trace
    pytest.skip("crewai is not installed: make test-integrations", allow_module_level=True)
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_DISABLE_TRACKING", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
from crewai import Agent, Crew, Task
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import MemorySaveFailedEvent
from crewai.llms.base_llm import BaseLLM
from crewai.memory.storage.backend import StorageBackend

from commonplace.integrations.crewai import CommonplaceMemory, RecordStorage


def contents(found: Any) -> list[str]:
    return [match.record.content for match in found]


def test_a_record_is_kept_found_changed_and_forgotten(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory)
    record = crew.remember(
        "Alice is allergic to peanuts", scope="/health", categories=["food"], metadata={"n": 1}, importance=0.9
    )
    assert record is not None
    (match,) = crew.recall("what is Alice allergic to?", limit=1)
    found = match.record
    assert (found.id, found.content, found.scope) == (record.id, "Alice is allergic to peanuts", "/health")
    assert (found.categories, found.metadata, found.importance) == (["food"], {"n": 1}, 0.9)
    assert abs(found.created_at - record.created_at) < timedelta(minutes=1), "the same kind of time"
    changed = crew.update(record.id, content="Alice is allergic to sesame", categories=["food", "seeds"])
    assert changed.content == "Alice is allergic to sesame"
    assert crew.list_records()[0].categories == ["food", "seeds"]
    assert crew.list_records()[0].scope == "/health"
    assert len(memory.history(record.id)) == 2
    assert crew.forget(record_ids=[record.id]) == 1
    assert crew.list_records() == []
    with pytest.raises(ValueError, match="not found"):
        crew.update(record.id, content="again")


def test_scopes_and_categories(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory)
    for scope, name in (("/a", "one"), ("/a/b", "two"), ("/a/bc", "three"), ("/d", "four"), (None, "five")):
        crew.remember(f"bees {name}", scope=scope, categories=["bees", name])
    assert sorted(contents(crew.recall("bees", scope="/a"))) == ["bees one", "bees three", "bees two"]
    assert contents(crew.recall("bees", scope="/a/b")) == ["bees two"]
    assert len(crew.recall("bees")) == 5
    assert contents(crew.recall("bees", categories=["four", "none"])) == ["bees four"]
    assert len(crew.recall("bees", limit=2)) == 2
    assert crew.list_scopes("/") == ["/a", "/d"]
    assert crew.list_scopes("/a") == ["/a/b", "/a/bc"]
    assert crew.list_categories("/a") == {"bees": 3, "one": 1, "two": 1, "three": 1}
    info = crew.info("/a")
    assert (info.record_count, info.child_scopes) == (3, ["/a/b", "/a/bc"])
    assert "/a/bc (1 records)" in crew.tree()
    assert [r.content for r in crew.list_records("/a", limit=1, offset=1)] == ["bees two"]
    assert crew.forget(scope="/a", categories=["two"]) == 1
    crew.reset("/d")
    assert sorted(r.content for r in crew.list_records()) == ["bees five", "bees one", "bees three"]
    assert contents(crew.scope("/a").recall("bees three", limit=1)) == ["bees three"]


def test_a_root_scope_keeps_crews_apart(memory: BlockingMemory) -> None:
    kitchen, garden = (CommonplaceMemory(memory, root_scope=f"/crew/{name}") for name in ("kitchen", "garden"))
    kitchen.remember("bees in the kitchen", scope="/notes")
    garden.remember("bees in the garden")
    assert contents(kitchen.recall("bees")) == ["bees in the kitchen"]
    assert kitchen.list_records()[0].scope == "/crew/kitchen/notes"
    kitchen.reset()
    assert contents(garden.recall("bees")) == ["bees in the garden"]


def test_what_is_private_is_for_its_source(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory)
    crew.remember("Alice keeps bees", source="alice", private=True)
    crew.remember("Bob keeps bees", source="bob", private=True)
    crew.remember("The neighbour keeps bees")
    assert contents(crew.recall("who keeps bees?")) == ["The neighbour keeps bees"]
    assert sorted(contents(crew.recall("who keeps bees?", source="bob"))) == [
        "Bob keeps bees",
        "The neighbour keeps bees",
    ]
    assert len(crew.recall("who keeps bees?", include_private=True)) == 3


def test_people_and_agents_stay_apart(memory: BlockingMemory) -> None:
    everyone: list[dict[str, Any]] = [{"user_id": "alice"}, {"user_id": "bob"}, {"agent_id": "other"}]
    for number, whose in enumerate(everyone):
        CommonplaceMemory(memory, **whose).remember(f"bees {number}")
    for number, whose in enumerate(everyone):
        assert contents(CommonplaceMemory(memory, **whose).recall("bees")) == [f"bees {number}"]
    CommonplaceMemory(memory, user_id="alice").reset()
    assert contents(CommonplaceMemory(memory, user_id="bob").recall("bees")) == ["bees 1"]


def test_others_memories_are_found_and_never_reset(memory: BlockingMemory) -> None:
    kept = memory.remember("Alice is allergic to peanuts", metadata={"tags": ["food"], "place": "Lisbon"})
    crew = CommonplaceMemory(memory)
    (match,) = crew.recall("peanuts")
    assert (match.record.id, match.record.scope) == (kept.id, "/")
    assert (match.record.categories, match.record.metadata) == (["food"], {"place": "Lisbon"})
    crew.remember("a record")
    crew.reset()
    assert crew.forget() == 0
    assert [each["content"] for each in memory.list()["memories"]] == ["Alice is allergic to peanuts"]


@pytest.mark.parametrize("odd", [
    "yes", 7, [1], {"scope": 5}, {"scope": {"a": 1}}, {"scope": "/a", "scopes": 3, "metadata": [], "private": "no"},
    {"scope": "/a", "source": 7, "metadata": None}, {"private": []},
], ids=repr)  # fmt: skip
def test_what_only_looks_like_a_record_breaks_nothing(memory: BlockingMemory, odd: Any) -> None:
    """Anyone may write such metadata, by any protocol."""
    memory.remember("the neighbour keeps bees", metadata={"crewai": odd, "importance": 1, "tags": ["bees"]})
    crew = CommonplaceMemory(memory)
    kept = crew.remember("Alice keeps bees", scope="/a")
    assert sorted(contents(crew.recall("who keeps bees?"))) == ["Alice keeps bees", "the neighbour keeps bees"]
    assert kept is not None
    assert "Alice keeps bees" in [record.content for record in crew.list_records()]
    assert crew.list_scopes("/") == ["/a"]
    assert crew.info("/").record_count >= 1
    crew.reset()
    assert crew.list_records() == []


def test_it_is_read_only_where_it_is_told_to(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory, read_only=True)
    assert crew.remember("nothing") is None
    assert crew.remember_many(["nothing", "either"]) == []
    assert memory.list()["memories"] == []


async def use(crew: CommonplaceMemory) -> None:
    record = await crew.aremember("Alice keeps bees", scope="/a")
    assert record is not None
    assert len(await crew.aremember_many(["Bob keeps bees", "The neighbour keeps bees"])) == 2
    assert await crew.aextract_memories(" all of it ") == ["all of it"]
    assert contents(await crew.arecall("who keeps bees?", scope="/a")) == ["Alice keeps bees"]


def test_the_async_methods_do_the_same(memory: BlockingMemory) -> None:
    asyncio.run(use(CommonplaceMemory(memory)))


def test_an_async_memory_serves_the_async_methods(async_memory: Any) -> None:
    async def use_async() -> None:
        async with async_memory as opened:
            await use(CommonplaceMemory(opened))
            with pytest.raises(TypeError, match="SyncMemory"):
                CommonplaceMemory(opened).recall("bees")

    asyncio.run(use_async())


def test_more_records_than_fit_into_one_request(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory)
    kept = crew.remember_many([f"hive number {number}" for number in range(1_203)])
    assert len(kept) == 1_203
    crew.remember("the queen")
    assert crew.forget(record_ids=[record.id for record in kept]) == 1_203
    assert [record.content for record in crew.list_records()] == ["the queen"]
    assert crew.forget(record_ids=[]) == 0


def test_what_is_older_is_forgotten(memory: BlockingMemory) -> None:
    crew = CommonplaceMemory(memory)
    crew.remember("the queen")
    assert crew.forget(older_than=datetime.now() - timedelta(days=1)) == 0  # without a zone, as CrewAI has them
    assert crew.forget(older_than=datetime.now(UTC) + timedelta(days=1)) == 1


def test_its_records_are_a_storage_of_crewai(memory: BlockingMemory) -> None:
    storage = CommonplaceMemory(memory)._storage
    assert isinstance(storage, RecordStorage)
    assert isinstance(storage, StorageBackend)
    with pytest.raises(ValueError, match="searched by text"):
        storage.search([0.1, 0.2])


class Script(BaseLLM):
    """A model of CrewAI's own interface that says what is written, and keeps what it was asked."""

    def __init__(self, *answers: str) -> None:
        super().__init__(model="script")
        self._answers, self._asked = list(answers), []

    def call(self, messages: Any, *more: Any, **fields: Any) -> str:
        self._asked.append(str(messages))
        return self._answers.pop(0)

    def supports_function_calling(self) -> bool:
        return False


def test_a_crew_remembers_across_runs(memory: BlockingMemory) -> None:
    """CrewAI itself: what one crew's task came to is given to the task of another."""

    def run(answer: str, description: str) -> str:
        model = Script(f"Thought: I now can give a great answer\nFinal Answer: {answer}")
        cook = Agent(role="cook", goal="cook", backstory="a cook", llm=model, verbose=False)
        task = Task(description=description, expected_output="a sentence", agent=cook)
        Crew(agents=[cook], tasks=[task], memory=CommonplaceMemory(memory), verbose=False).kickoff()
        return "\n".join(model._asked)

    run("Alice is allergic to peanuts", "Find out what Alice must not eat")
    assert any("Alice is allergic to peanuts" in each["content"] for each in memory.list()["memories"])
    assert "allergic to peanuts" in run("Soup", "Choose a dish that Alice is not allergic to: no peanuts")


def test_a_rule_stages_or_refuses_a_record(governed: BlockingMemory) -> None:
    failed: list[str] = []
    crew = CommonplaceMemory(governed)
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(MemorySaveFailedEvent)
        def note(source: Any, event: MemorySaveFailedEvent) -> None:
            failed.append(str(event.error))

        with pytest.raises(ValueError, match="waits for a person's review"):
            crew.remember(f"her {STAGES}")
        with pytest.raises(ValueError, match="no gossip"):
            asyncio.run(crew.aremember_many(["fine", REJECTS]))
        crewai_event_bus.flush()
    assert len(failed) == 2
    assert any("waits for a person's review" in each for each in failed)
    assert [r.content for r in crew.list_records()] == ["fine"]
    crew.remember(f"my key is {SECRET}")
    assert SECRET not in str(crew.list_records())


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    assert contents(documented("crewai.md")["found"]) == ["Alice is allergic to peanuts"]
