"""LlamaIndex's memory over this one, with LlamaIndex itself: as its own chat buffer behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapter_cases import NOT_KEPT, REJECTS, SECRET, STAGES

from commonplace.blocking import BlockingMemory

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make test-integrations")
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory as LlamaMemory

from commonplace.integrations.llamaindex import CommonplaceMemory, CommonplaceMemoryBlock

MESSAGES = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(role="user", content="How is the weather in Lisbon?"),
    ChatMessage(
        role="assistant",
        blocks=[ToolCallBlock(tool_call_id="call_Ab12Cd34Ef56", tool_name="weather", tool_kwargs={"city": "Lisbon"})],
    ),
    ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": "call_Ab12Cd34Ef56"}),
    ChatMessage(role="assistant", blocks=[TextBlock(text="It is"), TextBlock(text="sunny.")]),
    ChatMessage(role="user", content="yes"),
    ChatMessage(role="user", content="yes"),
]


@pytest.fixture(params=["ours", "theirs"])
def conversation(request: pytest.FixtureRequest, memory: BlockingMemory) -> Any:
    """The same tests pass with the buffer that LlamaIndex ships, so they say what a memory has to do."""
    if request.param == "theirs":
        return ChatMemoryBuffer(token_limit=10_000, tokenizer_fn=str.split)
    return CommonplaceMemory(memory, session_id="monday")


def test_messages_come_back_in_order_and_as_they_were(conversation: Any) -> None:
    assert conversation.get() == []
    conversation.put(MESSAGES[0])
    conversation.put_messages(MESSAGES[1:])
    assert conversation.get() == MESSAGES
    assert conversation.get_all() == MESSAGES
    conversation.set(MESSAGES[1:3])
    assert conversation.get_all() == MESSAGES[1:3]
    conversation.reset()
    assert conversation.get_all() == []


def test_the_async_methods_do_the_same(conversation: Any) -> None:
    async def use() -> None:
        await conversation.aput(MESSAGES[0])
        await conversation.aput_messages(MESSAGES[1:])
        assert await conversation.aget() == MESSAGES
        assert await conversation.aget_all() == MESSAGES
        await conversation.aset(MESSAGES[:1])
        assert await conversation.aget_all() == MESSAGES[:1]
        await conversation.areset()
        assert await conversation.aget_all() == []

    asyncio.run(use())


def test_a_limit_gives_the_latest_and_a_history_begins_a_session(memory: BlockingMemory) -> None:
    made = CommonplaceMemory.from_defaults(memory, session_id="monday", chat_history=MESSAGES, limit=2)
    assert made.get() == MESSAGES[-2:]
    assert made.get_all() == MESSAGES


def test_sessions_people_and_agents_stay_apart(memory: BlockingMemory) -> None:
    everyone: list[dict[str, Any]] = [
        {"session_id": "tuesday"}, {"user_id": "alice"}, {"user_id": "bob"}, {"agent_id": "other"},
    ]  # fmt: skip
    for number, whose in enumerate(everyone):
        CommonplaceMemory(memory, **{"session_id": "monday", **whose}).put(ChatMessage(content=f"message {number}"))
    for number, whose in enumerate(everyone):
        found = CommonplaceMemory(memory, **{"session_id": "monday", **whose}).get_all()
        assert [message.content for message in found] == [f"message {number}"]
    CommonplaceMemory(memory, session_id="monday", user_id="alice").reset()
    assert len(CommonplaceMemory(memory, session_id="monday", user_id="bob").get_all()) == 1


def test_an_async_memory_serves_the_async_methods(async_memory: Any) -> None:
    async def use() -> None:
        async with async_memory as opened:
            conversation = CommonplaceMemory(opened, session_id="monday")
            await conversation.aput_messages(MESSAGES)
            assert await conversation.aget() == MESSAGES
            with pytest.raises(TypeError, match="SyncMemory"):
                conversation.get()

    asyncio.run(use())


def test_messages_are_memories_like_any_other(memory: BlockingMemory) -> None:
    CommonplaceMemory(memory, session_id="monday", user_id="alice").put_messages(MESSAGES)
    hit = memory.recall("weather in Lisbon", min_score=0, k=1).results[0]
    assert (hit.content, hit.type, hit.user_id) == ("How is the weather in Lisbon?", "episodic", "alice")
    found = memory.list(filter={"session_id": "monday"})["memories"]
    assert [(each["metadata"]["speaker"], each["content"]) for each in reversed(found)][2:5] == [
        ("assistant", "calls weather"), ("tool", "sunny"), ("assistant", "It is\nsunny."),
    ]  # fmt: skip


def test_a_chat_engine_goes_on_where_it_was(memory: BlockingMemory) -> None:
    """LlamaIndex itself, with its own model for tests: two engines over one session."""

    def engine() -> SimpleChatEngine:
        return SimpleChatEngine(
            llm=MockLLM(), memory=CommonplaceMemory(memory, session_id="monday"), prefix_messages=[]
        )

    engine().chat("I am Alice.")
    again = engine()
    asyncio.run(again.achat("Who am I?"))
    assert [m.content for m in again.chat_history if m.role == "user"] == ["I am Alice.", "Who am I?"]
    assert len(again.chat_history) == 4


def test_a_block_brings_in_what_is_known(memory: BlockingMemory) -> None:
    """LlamaIndex's own memory, with the block in it."""
    memory.remember("Alice is allergic to peanuts", user_id="alice")
    memory.remember("Bob is allergic to peanuts", user_id="bob")
    block = CommonplaceMemoryBlock(memory, user_id="alice", min_score=0)
    theirs = LlamaMemory.from_defaults(session_id="monday", memory_blocks=[block], tokenizer_fn=str.split)

    async def use() -> list[ChatMessage]:
        await theirs.aput(ChatMessage(role="user", content="what is Alice allergic to?"))
        return await theirs.aget()

    shown = asyncio.run(use())
    assert "- Alice is allergic to peanuts" in str(shown[0].content)
    assert "Bob" not in str(shown)
    assert asyncio.run(block.aget([])) == ""


def test_what_their_memory_lets_go_of_is_kept_by_the_block(memory: BlockingMemory) -> None:
    block = CommonplaceMemoryBlock(memory, min_score=0)
    theirs = LlamaMemory.from_defaults(
        session_id="monday", memory_blocks=[block], tokenizer_fn=str.split, token_limit=30, token_flush_size=10
    )

    async def use() -> None:
        for number in range(12):
            await theirs.aput(ChatMessage(role="user", content=f"note {number} about bees and honey"))
            await theirs.aput(ChatMessage(role="assistant", content="noted"))

    asyncio.run(use())
    kept = [each["content"] for each in memory.list()["memories"]]
    assert "note 0 about bees and honey" in kept
    assert memory.list()["memories"][0]["metadata"]["session_id"] == "monday"


def test_a_rule_stages_or_refuses_a_message(governed: BlockingMemory) -> None:
    conversation = CommonplaceMemory(governed, session_id="monday")
    with pytest.raises(ValueError, match="waits for a person's review"):
        conversation.put(ChatMessage(content=f"her {STAGES}"))
    with pytest.raises(ValueError, match="no gossip"):
        asyncio.run(conversation.aput(ChatMessage(content=REJECTS)))
    assert conversation.get_all() == []
    conversation.put(ChatMessage(content=f"my key is {SECRET}"))
    assert SECRET not in str(conversation.get_all())


@pytest.mark.parametrize("what", NOT_KEPT)
def test_a_set_that_is_refused_leaves_the_session_as_it_was(strict: BlockingMemory, what: str) -> None:
    conversation = CommonplaceMemory(strict, session_id="monday")
    conversation.put_messages(MESSAGES)
    before = strict.list()["memories"]
    with pytest.raises(ValueError):
        conversation.set(
            [ChatMessage(content="hello"), ChatMessage(content=NOT_KEPT[what]), ChatMessage(content="you")]
        )
    assert conversation.get_all() == MESSAGES
    with pytest.raises(ValueError):
        asyncio.run(conversation.aset([ChatMessage(content=NOT_KEPT[what])]))
    assert conversation.get_all() == MESSAGES
    assert strict.list()["memories"] == before


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    names = documented("llamaindex.md")
    assert names["messages"][0].content == "I am allergic to peanuts"
    assert "peanuts" in names["known"]
