"""Every adapter as one person's notes: written, read and cleared in the framework's own words.

Each row makes them of a memory and a person. All people write to the same place: one session, one key, one path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

from commonplace.blocking import BlockingMemory

SESSION = "monday"
QUESTION = "who keeps bees?"


@dataclass
class Notes:
    write: Callable[[str], object]
    read: Callable[[], list[str]]
    clear: Callable[[], object]


def anthropic_files(memory: BlockingMemory, person: str | None) -> Notes:
    from anthropic.lib.tools import ToolError

    from commonplace.integrations.anthropic import CommonplaceMemoryTool

    tool, path = CommonplaceMemoryTool(memory, user_id=person), "/memories/notes.md"

    def read() -> list[str]:
        try:
            shown = str(tool.call({"command": "view", "path": path}))
        except ToolError:
            return []
        return [line.split("\t", 1)[1] for line in shown.splitlines()[1:]]

    return Notes(
        lambda text: tool.call({"command": "create", "path": path, "file_text": text}), read, tool.clear_all_memory
    )


def crewai_records(memory: BlockingMemory, person: str | None) -> Notes:
    from commonplace.integrations.crewai import CommonplaceMemory

    crew = CommonplaceMemory(memory, user_id=person)
    return Notes(crew.remember, lambda: [each.content for each in crew.list_records()], crew.reset)


def langchain_history(memory: BlockingMemory, person: str | None) -> Notes:
    from commonplace.integrations.langchain import CommonplaceChatMessageHistory

    history = CommonplaceChatMessageHistory(memory, session_id=SESSION, user_id=person)
    return Notes(history.add_user_message, lambda: [str(each.content) for each in history.messages], history.clear)


def _langgraph(memory: BlockingMemory, person: str | None, read: Callable[[Any], list[Any]]) -> Notes:
    from commonplace.integrations.langgraph import CommonplaceStore

    store, place = CommonplaceStore(memory, user_id=person), (("notes",), "only")
    return Notes(
        lambda text: store.put(*place, {"text": text}),
        lambda: [item.value["text"] for item in read(store) if item is not None],
        lambda: store.delete(*place),
    )


def langgraph_get(memory: BlockingMemory, person: str | None) -> Notes:
    return _langgraph(memory, person, lambda store: [store.get(("notes",), "only")])


def langgraph_search(memory: BlockingMemory, person: str | None) -> Notes:
    return _langgraph(memory, person, lambda store: store.search(()))


def langgraph_question(memory: BlockingMemory, person: str | None) -> Notes:
    return _langgraph(memory, person, lambda store: store.search((), query=QUESTION))


def langgraph_namespaces(memory: BlockingMemory, person: str | None) -> Notes:
    from commonplace.integrations.langgraph import CommonplaceStore

    store = CommonplaceStore(memory, user_id=person)

    def clear() -> None:
        for namespace in store.list_namespaces():
            store.delete(namespace, "only")

    return Notes(
        lambda text: store.put((text,), "only", {"n": 1}), lambda: [each[0] for each in store.list_namespaces()], clear
    )


def llamaindex_memory(memory: BlockingMemory, person: str | None) -> Notes:
    from llama_index.core.base.llms.types import ChatMessage

    from commonplace.integrations.llamaindex import CommonplaceMemory

    chat = CommonplaceMemory(memory, session_id=SESSION, user_id=person)
    return Notes(
        lambda text: chat.put(ChatMessage(content=text)), lambda: [str(m.content) for m in chat.get_all()], chat.reset
    )


def openai_session(memory: BlockingMemory, person: str | None) -> Notes:
    from commonplace.integrations.openai_agents import CommonplaceSession

    session = CommonplaceSession(memory, session_id=SESSION, user_id=person)

    def read() -> list[str]:
        items: list[Any] = asyncio.run(session.get_items())
        return [item["content"] for item in items]

    def clear() -> None:
        while asyncio.run(session.pop_item()) is not None:
            pass
        asyncio.run(session.clear_session())

    return Notes(lambda text: asyncio.run(session.add_items([{"role": "user", "content": text}])), read, clear)


def pydantic_tools(memory: BlockingMemory, person: str | None) -> Notes:
    """A run whose person is found out from its context, in which there may be none."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from commonplace.integrations.pydantic_ai import CommonplaceToolset

    tools = CommonplaceToolset(memory, user_id=lambda ctx: ctx.deps)

    def call(name: str, **arguments: Any) -> Any:
        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            done = len(messages) > 1
            return ModelResponse(parts=[TextPart("done") if done else ToolCallPart(name, arguments)])

        result = Agent(FunctionModel(respond), toolsets=[tools]).run_sync("go", deps=person)
        return result.all_messages()[2].parts[0].content

    def clear() -> None:
        # An id is no secret: of everything that there is, this one may forget what is its own.
        for each in memory.list()["memories"]:
            call("forget", id=each["id"])
            call("update", id=each["id"], content="nothing")

    return Notes(
        lambda text: call("remember", content=text),
        lambda: [each["content"] for each in call("recall", query=QUESTION, k=9)],
        clear,
    )


def rows(**frameworks: tuple[Callable[..., Any], ...]) -> list[Any]:
    """For `parametrize`; those of a framework that is not installed are left out before a memory is opened."""
    return [
        pytest.param(
            row, id=row.__name__,
            marks=pytest.mark.skipif(find_spec(name) is None, reason=f"no {name} here: make test-integrations"),
        )
        for name, those in frameworks.items()
        for row in those
    ]  # fmt: skip


#: What an adapter has put there itself: without a person, it is about no person.
OWN = rows(
    anthropic=(anthropic_files,),
    crewai=(crewai_records,),
    langchain_core=(langchain_history,),
    langgraph=(langgraph_get, langgraph_search, langgraph_question, langgraph_namespaces),
    llama_index=(llamaindex_memory,),
    agents=(openai_session,),
    pydantic_ai=(pydantic_tools,),
)


def crewai_recall(memory: BlockingMemory, person: str | None) -> list[str]:
    from commonplace.integrations.crewai import CommonplaceMemory

    return [match.record.content for match in CommonplaceMemory(memory, user_id=person).recall(QUESTION)]


def langchain_retriever(memory: BlockingMemory, person: str | None) -> list[str]:
    from commonplace.integrations.langchain import CommonplaceRetriever

    return [each.page_content for each in CommonplaceRetriever(memory, user_id=person, min_score=0).invoke(QUESTION)]


def llamaindex_block(memory: BlockingMemory, person: str | None) -> list[str]:
    from llama_index.core.base.llms.types import ChatMessage

    from commonplace.integrations.llamaindex import CommonplaceMemoryBlock

    block = CommonplaceMemoryBlock(memory, user_id=person, min_score=0)
    found = asyncio.run(block.aget([ChatMessage(role="user", content=QUESTION)]))
    return [line.removeprefix("- ") for line in str(found).splitlines()]


def pydantic_recall(memory: BlockingMemory, person: str | None) -> list[str]:
    """A toolset for one person, or for none in particular."""
    from pydantic_ai import RunContext
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    from commonplace.integrations.pydantic_ai import CommonplaceToolset

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    found = asyncio.run(CommonplaceToolset(memory, user_id=person).recall(context, QUESTION, k=9))
    return [each["content"] for each in found]


#: What asks the agent's memory: without a person, whatever the agent knows, as `recall` does.
QUESTIONS = rows(
    crewai=(crewai_recall,),
    langchain_core=(langchain_retriever,),
    llama_index=(llamaindex_block,),
    pydantic_ai=(pydantic_recall,),
)
