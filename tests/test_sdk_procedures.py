"""What the tests of the paper's reference say of its procedures holds of ours: from Python, as memories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, Procedure
from commonplace.wire.errors import Conflict, ValidationError
from commonplace.wire.validate import check

ORDER: dict[str, Any] = {
    "name": "order-lunch",
    "initial": "asking",
    "states": ["asking", "choosing", "ordering", "waiting", "eaten", "dropped"],
    "transitions": [
        {"trigger": "asked", "source": "asking", "dest": "choosing"},
        {"trigger": "chosen", "source": "choosing", "dest": "ordering"},
        {"trigger": "sent", "source": "ordering", "dest": "waiting"},
        {"trigger": "delivered", "source": "waiting", "dest": "eaten"},
        {"trigger": "drop", "source": "*", "dest": "dropped"},
    ],
    "metadata": {"version": "1.0.0", "agent": "lunch"},
}
WAY = ("asked", "chosen", "sent", "delivered")

Story = Callable[[Memory], Awaitable[None]]


@pytest.fixture
def tell(tmp_path: Path) -> Callable[[Story], None]:
    def run(story: Story) -> None:
        async def told() -> None:
            async with Memory("alice", data=tmp_path, embedder="hashing") as memory:
                await story(memory)

        asyncio.run(told())

    return run


async def kept(memory: Memory, machine: dict[str, Any] = ORDER) -> Procedure:
    return Procedure(memory, (await memory.remember(machine, type="procedural")).id)


async def document(memory: Memory, procedure: Procedure) -> dict[str, Any]:
    content = (await memory.get(procedure.id))["content"]
    found: dict[str, Any] = json.loads(content) if isinstance(content, str) else content
    return found


def test_a_procedure_comes_back_as_it_was_kept_and_fits_the_published_schema(tell: Any) -> None:
    async def story(memory: Memory) -> None:
        back = await document(memory, await kept(memory))
        assert back == ORDER
        check("memorywire/types/fsm", back)
        as_text = Procedure(memory, (await memory.remember(json.dumps(ORDER), type="procedural")).id)
        assert await document(memory, as_text) == ORDER

    tell(story)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"transitions": [{"trigger": "go", "source": "asking", "dest": "nowhere"}]}, "content.transitions[0].dest"),
        ({"transitions": [{"trigger": "go", "source": "nowhere", "dest": "eaten"}]}, "content.transitions[0].source"),
        ({"transitions": [{"trigger": "go", "source": "asking", "dest": d} for d in ("eaten", "dropped")]},
         "content.transitions[1].trigger"),
        ({"initial": "nowhere"}, "content.initial"),
        ({"name": None}, "content.name"),
        *(({"transitions": [{"trigger": "go", "source": "asking", "dest": "eaten", callback: "os.system"}]},
           f"content.transitions[0].{callback}") for callback in ("before", "after", "prepare", "on_enter", "on_exit")),
        ({"transitions": [{"trigger": "go", "source": "asking", "dest": "eaten", "conditions": "os.system"}]},
         "content.transitions[0].conditions"),
        ({"transitions": [{"trigger": "go", "source": "asking", "dest": "eaten", "unless": ["ok", "shutil.rmtree"]}]},
         "content.transitions[0].unless"),
    ],
)  # fmt: skip
def test_what_is_not_sound_is_refused_by_the_key_that_is_wrong(tell: Any, change: dict[str, Any], key: str) -> None:
    async def story(memory: Memory) -> None:
        with pytest.raises(ValidationError) as refused:
            await kept(memory, {**ORDER, **change})
        assert refused.value.details["field"] == key
        assert (await memory.list())["memories"] == []

    tell(story)


@pytest.mark.parametrize("content", ["[]", '["not", "a", "mapping"]', '{"states": ["a"], "transitions": []}'])
def test_what_is_no_machine_or_has_no_name_is_refused(tell: Any, content: str) -> None:
    async def story(memory: Memory) -> None:
        with pytest.raises(ValidationError):
            await memory.remember(content, type="procedural")

    tell(story)


def test_a_trigger_moves_it_and_the_snapshot_differs_in_where_it_stands_alone(tell: Any) -> None:
    async def story(memory: Memory) -> None:
        lunch = await kept(memory)
        assert await lunch.state() == "asking", "without `current` it stands where it starts"
        assert [await lunch.fire(trigger) for trigger in WAY[:2]] == ["choosing", "ordering"]
        assert await document(memory, lunch) == {**ORDER, "current": "ordering"}

    tell(story)


@pytest.mark.parametrize("trigger", ["sent", "does_not_exist"])
def test_what_is_not_possible_from_here_is_an_error_and_moves_nothing(tell: Any, trigger: str) -> None:
    async def story(memory: Memory) -> None:
        lunch = await kept(memory)
        with pytest.raises(Conflict):
            await lunch.fire(trigger)
        assert await lunch.state() == "asking"
        assert (await lunch.show())["version"] == 1

    tell(story)


@pytest.mark.parametrize("before", [WAY[:0], WAY[:2], WAY])
def test_what_leads_on_from_everywhere_does(tell: Any, before: tuple[str, ...]) -> None:
    async def story(memory: Memory) -> None:
        lunch = await kept(memory)
        for trigger in before:
            await lunch.fire(trigger)
        assert await lunch.fire("drop") == "dropped"

    tell(story)


def test_replaying_triggers_from_the_start_leads_to_the_same_state_again(tell: Any) -> None:
    async def story(memory: Memory) -> None:
        lunch = await kept(memory)
        await lunch.fire("drop")
        for _ in range(2):
            assert await lunch.reset() == "asking"
            assert [await lunch.fire(trigger) for trigger in WAY][-1] == "eaten"

    tell(story)


def test_what_is_possible_is_what_its_state_has_a_transition_for(tell: Any) -> None:
    async def story(memory: Memory) -> None:
        lunch = await kept(memory)
        assert sorted(await lunch.possible()) == ["asked", "drop"]
        await lunch.fire("asked")
        assert sorted(await lunch.possible()) == ["chosen", "drop"]

    tell(story)


def test_a_guard_is_a_bare_name_and_asked_of_the_caller(tell: Any) -> None:
    async def story(memory: Memory) -> None:
        guarded = [{"trigger": "go", "source": "asking", "dest": "eaten", "conditions": "is_hungry"}]
        lunch = await kept(memory, {**ORDER, "transitions": guarded})
        assert await lunch.fire("go", is_hungry=True) == "eaten"

    tell(story)


@pytest.mark.parametrize(
    ("machine", "type", "sentence"),
    [
        (ORDER, "semantic", "content must be text; only a procedure may be an object"),
        ({**ORDER, "metadata": {"at": object()}}, "procedural", "content must be JSON"),
    ],
)
def test_an_object_that_is_no_procedure_is_refused(tell: Any, machine: Any, type: str, sentence: str) -> None:
    async def story(memory: Memory) -> None:
        with pytest.raises(ValidationError, match=sentence):
            await memory.remember(machine, type=type)

    tell(story)
