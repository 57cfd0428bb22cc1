"""A session of the OpenAI Agents SDK over a memory, with the SDK itself: as its own SQLite session behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adapter_cases import REJECTS, SECRET, STAGES

from commonplace.blocking import BlockingMemory

pytest.importorskip("agents", reason="openai-agents is not installed: make test-integrations")
from agents import Agent, ModelResponse, RunConfig, Runner, SessionSettings, SQLiteSession, Usage, function_tool
from agents.exceptions import AgentsException
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from commonplace.integrations.openai_agents import CommonplaceSession

CALL = "call_Ab12Cd34Ef56Gh78Ij90Kl12"
ITEMS: list[Any] = [
    {"role": "user", "content": "How is the weather in Lisbon?"},
    {"type": "function_call", "call_id": CALL, "name": "weather", "arguments": '{"city":"Lisbon"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": CALL, "output": "sunny"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
     "content": [{"type": "output_text", "text": "It is sunny.", "annotations": []}]},
    {"role": "user", "content": "yes"},
    {"role": "user", "content": "yes"},
]  # fmt: skip


@pytest.fixture(params=["ours", "theirs"])
def session(request: pytest.FixtureRequest, memory: BlockingMemory) -> Iterator[Any]:
    """The same tests pass with the session that the SDK ships, so they say what a session has to do."""
    made: Any = (
        SQLiteSession("monday") if request.param == "theirs" else CommonplaceSession(memory, session_id="monday")
    )
    yield made
    made.close()


def test_items_come_back_in_order_and_as_they_were(session: Any) -> None:
    async def use() -> None:
        assert isinstance(session, Session)
        assert await session.get_items() == []
        await session.add_items([])
        await session.add_items(ITEMS[:2])
        await session.add_items(ITEMS[2:])
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=3) == ITEMS[-3:]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None

    asyncio.run(use())


def test_settings_say_how_much_a_run_begins_with(memory: BlockingMemory) -> None:
    async def use() -> None:
        session = CommonplaceSession(memory, session_id="monday", session_settings=SessionSettings(limit=2))
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS[-2:]
        assert await session.get_items(limit=1) == ITEMS[-1:]

    asyncio.run(use())


def test_of_two_who_pop_at_once_each_gets_another(memory: BlockingMemory) -> None:
    async def use() -> None:
        session = CommonplaceSession(memory, session_id="monday")
        await session.add_items(ITEMS[:4])
        popped: list[Any] = await asyncio.gather(*(session.pop_item() for _ in range(6)))
        assert sorted(map(str, filter(None, popped))) == sorted(map(str, ITEMS[:4]))

    asyncio.run(use())


def test_an_async_memory_serves_as_well(async_memory: Any) -> None:
    async def use() -> None:
        async with async_memory as memory:
            session = CommonplaceSession(memory, session_id="monday")
            await session.add_items(ITEMS)
            assert await session.get_items() == ITEMS

    asyncio.run(use())


def test_sessions_people_and_agents_stay_apart(memory: BlockingMemory) -> None:
    def of(**whose: Any) -> CommonplaceSession:
        return CommonplaceSession(memory, **{"session_id": "monday", **whose})

    async def use() -> None:
        for number, each in enumerate([of(), of(session_id="tuesday"), of(user_id="alice"), of(agent_id="other")]):
            await each.add_items([{"role": "user", "content": f"message {number}"}])
        for whose, number in (({"session_id": "tuesday"}, 1), ({"user_id": "alice"}, 2), ({"agent_id": "other"}, 3)):
            assert await of(**whose).get_items() == [{"role": "user", "content": f"message {number}"}]
        await of(user_id="alice").clear_session()
        assert len(await of().get_items()) == 1

    asyncio.run(use())


def test_items_are_memories_like_any_other(memory: BlockingMemory) -> None:
    asyncio.run(CommonplaceSession(memory, session_id="monday", user_id="alice").add_items(ITEMS))
    hit = memory.recall("How is the weather?", min_score=0, k=1).results[0]
    assert (hit.content, hit.type, hit.user_id) == ("How is the weather in Lisbon?", "episodic", "alice")
    found = memory.list(filter={"session_id": "monday"})["memories"]
    assert [(each["metadata"]["speaker"], each["content"]) for each in reversed(found)][1:5] == [
        ("function_call", 'calls weather {"city":"Lisbon"}'),
        ("function_call_output", "sunny"),
        ("reasoning", "reasoning without text"),
        ("assistant", "It is sunny."),
    ]


class Script(Model):
    """A model of the SDK's own interface that says what is written, and keeps what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs, self.asked = list(outputs), []

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
        self.asked.append(input)
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **more: Any) -> Any:
        raise NotImplementedError


def saying(text: str) -> ResponseOutputMessage:
    said = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[said])


def test_an_agent_goes_on_where_it_was(memory: BlockingMemory) -> None:
    """The SDK itself: two runs, one of them not async, each on an event loop of its own."""

    @function_tool
    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    call = ResponseFunctionToolCall(type="function_call", call_id=CALL, name="weather", arguments='{"city": "Lisbon"}')
    model = Script(call, saying("It is sunny."), saying("You asked about Lisbon."))
    agent = Agent(name="assistant", model=model, tools=[weather])
    quiet = RunConfig(tracing_disabled=True)
    session = CommonplaceSession(memory, session_id="monday")
    Runner.run_sync(agent, "How is the weather in Lisbon?", session=session, run_config=quiet)
    again = CommonplaceSession(memory, session_id="monday")
    result = asyncio.run(Runner.run(agent, "What did I ask?", session=again, run_config=quiet))
    assert result.final_output == "You asked about Lisbon."
    asked = [item.get("content") or item.get("output") or item.get("name") for item in model.asked[2]]
    assert asked[:3] == ["How is the weather in Lisbon?", "weather", "sunny in Lisbon"]
    assert asked[-1] == "What did I ask?"


def test_a_rule_stages_or_refuses_an_item(governed: BlockingMemory) -> None:
    session = CommonplaceSession(governed, session_id="monday")
    agent = Agent(name="assistant", model=Script(saying("Noted.")))
    with pytest.raises(AgentsException, match="waits for a person's review"):
        Runner.run_sync(agent, f"Alice's {STAGES}", session=session, run_config=RunConfig(tracing_disabled=True))
    with pytest.raises(AgentsException, match="no gossip"):
        asyncio.run(session.add_items([{"role": "user", "content": REJECTS}]))
    assert all(REJECTS not in str(item) and STAGES not in str(item) for item in asyncio.run(session.get_items()))


def test_a_secret_is_taken_out(memory: BlockingMemory) -> None:
    session = CommonplaceSession(memory, session_id="monday")
    asyncio.run(session.add_items([{"role": "user", "content": f"my key is {SECRET}"}]))
    (item,) = asyncio.run(session.get_items())
    assert SECRET not in str(item)


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    names = documented("openai-agents.md")
    assert [item["content"] for item in names["conversation"]] == ["I am allergic to peanuts"]
