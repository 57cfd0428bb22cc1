"""Tools of Pydantic AI over a memory, with Pydantic AI itself and its own models for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapter_cases import REJECTS, SECRET, STAGES

from commonplace.blocking import BlockingMemory
from commonplace.wire.short_ids import shorten_id

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: make test-integrations")
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from commonplace.integrations.pydantic_ai import CommonplaceToolset


def calling(name: str, **arguments: Any) -> FunctionModel:
    """A model that calls one tool and then says `done`."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        return ModelResponse(parts=[TextPart("done")])

    return FunctionModel(respond)


def answer_to(toolset: CommonplaceToolset, name: str, deps: Any = None, **arguments: Any) -> Any:
    """The part that the model is given back."""
    result = Agent(calling(name, **arguments), toolsets=[toolset]).run_sync("go", deps=deps)
    return result.all_messages()[2].parts[0]


def is_retry(part: Any) -> bool:
    """As the model is asked to try again, which versions write down in different ways."""
    return part.part_kind == "retry-prompt" or part.outcome == "retried"


def test_an_agent_remembers_recalls_corrects_and_forgets(memory: BlockingMemory) -> None:
    toolset = CommonplaceToolset(memory, user_id="alice")
    kept = answer_to(toolset, "remember", content="Alice is allergic to peanuts", tags=["food"])
    assert isinstance(kept, ToolReturnPart)
    (hit,) = memory.recall("peanuts", min_score=0, user_id="alice")
    assert kept.content == {"id": shorten_id(hit.id)}
    assert hit.metadata == {"tags": ["food"]}
    found = answer_to(toolset, "recall", query="what is Alice allergic to?", k=1).content
    assert [each["content"] for each in found] == ["Alice is allergic to peanuts"]
    assert found[0].keys() >= {"id", "content", "created_at"}
    answer_to(toolset, "update", id=found[0]["id"], content="Alice is allergic to sesame")
    assert memory.get(hit.id)["content"] == "Alice is allergic to sesame"
    assert answer_to(toolset, "forget", id=found[0]["id"]).content == {"forgotten": [found[0]["id"]]}
    assert memory.list()["memories"] == []


def test_the_model_is_shown_what_each_tool_is_for(memory: BlockingMemory) -> None:
    shown: dict[str, Any] = {}

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown.update({tool.name: tool for tool in info.function_tools})
        return ModelResponse(parts=[TextPart("done")])

    Agent(FunctionModel(respond), toolsets=[CommonplaceToolset(memory)]).run_sync("go")
    assert shown.keys() == {"remember", "recall", "update", "forget"}
    for tool in shown.values():
        assert tool.description
        fields = tool.parameters_json_schema["properties"]
        assert "ctx" not in fields
        assert all(field.get("description") for field in fields.values())


def test_pydantic_ais_own_test_model_can_call_all_of_it(memory: BlockingMemory) -> None:
    agent = Agent(TestModel(call_tools=["remember", "recall"]), toolsets=[CommonplaceToolset(memory)])
    assert agent.run_sync("go").output
    assert len(memory.list()["memories"]) == 1


def test_a_run_says_whose_memory_it_is(memory: BlockingMemory) -> None:
    toolset = CommonplaceToolset(memory, user_id=lambda ctx: ctx.deps, agent_id="other")
    for person in ("alice", "bob"):
        answer_to(toolset, "remember", deps=person, content=f"{person} keeps bees")
    found = answer_to(toolset, "recall", deps="bob", query="who keeps bees?", k=9).content
    assert [each["content"] for each in found] == ["bob keeps bees"]
    assert memory.list()["memories"] == [], "of another agent"
    for name, more in (("forget", {}), ("update", {"content": "nobody"})):
        refused = answer_to(toolset, name, deps="alice", id=found[0]["id"], **more)
        assert is_retry(refused)
        assert "no memory" in str(refused.content)
    assert len(memory.list(agent_id="other")["memories"]) == 2


def test_an_async_memory_serves_as_well(async_memory: Any) -> None:
    async def use() -> None:
        async with async_memory as memory:
            agent = Agent(calling("remember", content="Bob keeps bees"), toolsets=[CommonplaceToolset(memory)])
            await agent.run("go")
            assert len((await memory.list())["memories"]) == 1

    asyncio.run(use())


def test_a_rule_stages_or_refuses_and_the_model_is_told_not_to_repeat_it(governed: BlockingMemory) -> None:
    toolset = CommonplaceToolset(governed)
    staged = answer_to(toolset, "remember", content=f"Alice's {STAGES} is high")
    assert "waits for a person's review" in str(staged.content)
    assert "do not write it again" in str(staged.content)
    refused = answer_to(toolset, "remember", content=f"some {REJECTS}")
    assert "no gossip" in str(refused.content)
    for part in (staged, refused):
        assert part.outcome == "failed"
    assert governed.list()["memories"] == []


def test_a_mistake_is_one_that_the_model_can_mend(memory: BlockingMemory) -> None:
    for name, arguments in (("forget", {"id": "nonsense"}), ("recall", {"query": "x", "k": 0})):
        part = answer_to(CommonplaceToolset(memory), name, **arguments)
        assert is_retry(part), name


def test_a_secret_is_taken_out(memory: BlockingMemory) -> None:
    answer_to(CommonplaceToolset(memory), "remember", content=f"the key is {SECRET}")
    assert SECRET not in str(memory.list())


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    assert "peanuts" in str(documented("pydantic-ai.md")["known"])
