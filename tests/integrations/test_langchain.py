"""LangChain's history and retriever over a memory, with LangChain itself: as its own in-memory history behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapter_cases import REJECTS, SECRET, STAGES

from commonplace.blocking import BlockingMemory

pytest.importorskip("langchain_core", reason="langchain-core is not installed: make test-integrations")
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.exceptions import LangChainException
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_tests.integration_tests import RetrieversIntegrationTests

from commonplace.integrations.langchain import CommonplaceChatMessageHistory, CommonplaceRetriever

CALL = {
    "name": "weather", "args": {"city": "Lisbon", "days": [1, 2]}, "id": "call_Ab12Cd34Ef56Gh78Ij90Kl12",
    "type": "tool_call",
}  # fmt: skip
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("How is the weather in Lisbon?", name="alice", id="m-1"),
    AIMessage("", tool_calls=[CALL], response_metadata={"model": "m", "tokens": {"in": 3}}),
    ToolMessage("sunny", tool_call_id=CALL["id"], artifact={"raw": [1.5, None]}),
    AIMessage([{"type": "text", "text": "It is sunny."}]),
    HumanMessage("yes"),
    HumanMessage("yes"),
]


@pytest.fixture(params=["ours", "theirs"])
def history(request: pytest.FixtureRequest, memory: BlockingMemory) -> Any:
    """The same tests pass with the history that LangChain ships, so they say what a history has to do."""
    if request.param == "theirs":
        return InMemoryChatMessageHistory()
    return CommonplaceChatMessageHistory(memory, session_id="monday")


def test_messages_come_back_in_order_and_as_they_were(history: Any) -> None:
    assert history.messages == []
    history.add_messages(MESSAGES[:3])
    history.add_message(MESSAGES[3])
    history.add_messages(MESSAGES[4:])
    assert history.messages == MESSAGES
    history.clear()
    assert history.messages == []
    history.clear()  # twice is no mistake


def test_the_async_methods_do_the_same(history: Any) -> None:
    async def use() -> None:
        await history.aadd_messages(MESSAGES)
        assert await history.aget_messages() == MESSAGES
        await history.aclear()
        assert await history.aget_messages() == []

    asyncio.run(use())


def test_an_async_memory_serves_the_async_methods(async_memory: Any) -> None:
    async def use() -> None:
        async with async_memory as memory:
            history = CommonplaceChatMessageHistory(memory, session_id="monday")
            await history.aadd_messages(MESSAGES)
            assert await history.aget_messages() == MESSAGES
            retriever = CommonplaceRetriever(memory, min_score=0, k=1)
            assert len(await retriever.ainvoke("weather in Lisbon")) == 1
            with pytest.raises(TypeError, match="SyncMemory"):
                _ = history.messages

    asyncio.run(use())


def test_sessions_people_and_agents_stay_apart(memory: BlockingMemory) -> None:
    def of(**whose: Any) -> CommonplaceChatMessageHistory:
        return CommonplaceChatMessageHistory(memory, **{"session_id": "monday", **whose})

    every = [of(), of(session_id="tuesday"), of(user_id="alice"), of(user_id="bob"), of(agent_id="other")]
    for number, history in enumerate(every):
        history.add_user_message(f"message {number}")
    assert [m.content for m in of(user_id="alice").messages] == ["message 2"]
    assert [m.content for m in of(agent_id="other").messages] == ["message 4"]
    assert [m.content for m in of(session_id="tuesday").messages] == ["message 1"]
    of(user_id="alice").clear()
    assert [m.content for m in of(user_id="bob").messages] == ["message 3"]
    assert memory.list(agent_id="other")["memories"][0]["agent_id"] == "other"


def test_more_than_a_page_of_messages(memory: BlockingMemory) -> None:
    history = CommonplaceChatMessageHistory(memory, session_id="long")
    history.add_messages([HumanMessage(f"message {number}") for number in range(1_203)])
    assert [m.content for m in history.messages] == [f"message {number}" for number in range(1_203)]


def test_messages_are_memories_like_any_other(memory: BlockingMemory) -> None:
    history = CommonplaceChatMessageHistory(memory, session_id="monday", user_id="alice")
    history.add_messages([HumanMessage("Alice is allergic to peanuts"), MESSAGES[2]])
    hit = memory.recall("peanuts", min_score=0, k=1).results[0]
    assert (hit.content, hit.type, hit.user_id) == ("Alice is allergic to peanuts", "episodic", "alice")
    assert hit.metadata is not None
    assert (hit.metadata["session_id"], hit.metadata["speaker"]) == ("monday", "human")
    contents = {found["content"] for found in memory.list()["memories"]}
    assert "calls weather {'city': 'Lisbon', 'days': [1, 2]}" in contents, "what a message without text does"


def test_a_model_has_a_conversation(memory: BlockingMemory) -> None:
    """LangChain itself: a chain that is given the history of its session, in another run."""
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    chain = prompt | FakeListChatModel(responses=["Hello Alice.", "Your name is Alice."])
    for question in ("I am Alice.", "Who am I?"):
        history = CommonplaceChatMessageHistory(memory, session_id="monday")
        given = {"history": history.messages, "question": question}
        history.add_messages([HumanMessage(question), chain.invoke(given)])
    kept = CommonplaceChatMessageHistory(memory, session_id="monday").messages
    assert [m.content for m in kept] == ["I am Alice.", "Hello Alice.", "Who am I?", "Your name is Alice."]
    assert [type(m) for m in kept[2:]] == [HumanMessage, AIMessage]
    assert str(CommonplaceChatMessageHistory(memory, session_id="monday")).startswith("Human: I am Alice.")


# the retriever


def test_a_retriever_finds_what_any_protocol_wrote(memory: BlockingMemory) -> None:
    kept = memory.remember("Alice is allergic to peanuts", user_id="alice", metadata={"tags": ["food"]})
    memory.remember("Bob is allergic to peanuts", user_id="bob", agent_id="other")
    memory.remember("Alice was in Lisbon", type="episodic", user_id="alice")
    retriever = CommonplaceRetriever(memory, k=5, min_score=0)
    found = retriever.invoke("who is allergic to peanuts?")
    assert isinstance(found[0], Document)
    assert (found[0].page_content, found[0].id) == ("Alice is allergic to peanuts", kept.id)
    assert found[0].metadata["tags"] == ["food"]
    assert found[0].metadata["type"] == "semantic"
    assert found[0].metadata["created_at"].endswith("Z")
    assert [d.id for d in asyncio.run(retriever.ainvoke("peanuts"))] == [d.id for d in retriever.invoke("peanuts")]
    assert len(CommonplaceRetriever(memory, k=1, min_score=0).invoke("Alice")) == 1
    narrow = CommonplaceRetriever(memory, min_score=0, types=["episodic"], user_id="alice")
    assert [d.page_content for d in narrow.invoke("Alice")] == ["Alice was in Lisbon"]
    assert CommonplaceRetriever(memory, min_score=0, filter={"tags": "none"}).invoke("Alice") == []
    others = CommonplaceRetriever(memory, min_score=0, agent_id="other").invoke("peanuts")
    assert [d.page_content for d in others] == ["Bob is allergic to peanuts"]


class TestStandardRetriever(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever, as it publishes them."""

    @pytest.fixture(autouse=True)
    def opened(self, memory: BlockingMemory) -> None:
        memory.remember_batch([f"Alice is allergic to peanuts, says letter {number}" for number in range(5)])
        self.memory = memory

    @property
    def retriever_constructor(self) -> type[CommonplaceRetriever]:
        return CommonplaceRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "min_score": 0}

    @property
    def retriever_query_example(self) -> str:
        return "who is allergic to peanuts?"


def test_a_question_that_is_wrong_is_an_error_of_langchain(memory: BlockingMemory) -> None:
    with pytest.raises(LangChainException, match="k must be"):
        CommonplaceRetriever(memory, k=0).invoke("anything")


# rules, secrets and mistakes


def test_a_rule_stages_or_refuses_a_message(governed: BlockingMemory) -> None:
    history = CommonplaceChatMessageHistory(governed, session_id="monday")
    with pytest.raises(LangChainException, match=r"not kept yet: it waits for a person's review"):
        history.add_user_message(f"Alice's {STAGES} is high")
    with pytest.raises(LangChainException, match="no gossip"):
        asyncio.run(history.aadd_messages([HumanMessage("fine"), AIMessage(f"some {REJECTS}")]))
    assert [m.content for m in history.messages] == ["fine"], "what may be kept is"
    (review,) = governed.reviews()
    governed.approve(review["id"], reviewer="bob")
    assert [m.content for m in history.messages] == [f"Alice's {STAGES} is high", "fine"], "in the order of writing"


def test_a_secret_is_taken_out_of_the_text_and_of_what_comes_back(memory: BlockingMemory) -> None:
    history = CommonplaceChatMessageHistory(memory, session_id="monday")
    history.add_user_message(f"my key is {SECRET}")
    (message,) = history.messages
    assert SECRET not in str(message)
    assert "REDACTED" in str(message.content)


def test_a_closed_memory_says_so(memory: BlockingMemory) -> None:
    history = CommonplaceChatMessageHistory(memory, session_id="monday")
    memory.close()
    with pytest.raises(LangChainException, match="closed"):
        history.add_user_message("hello")


@pytest.mark.parametrize("make", [CommonplaceChatMessageHistory, CommonplaceRetriever])
def test_what_is_no_memory_is_refused_with_a_sentence(make: Any) -> None:
    with pytest.raises(TypeError, match="SyncMemory"):
        make("a folder", **({"session_id": "s"} if make is CommonplaceChatMessageHistory else {}))


def test_a_session_needs_an_id(memory: BlockingMemory) -> None:
    with pytest.raises(ValueError, match="needs an id"):
        CommonplaceChatMessageHistory(memory, session_id="")


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    names = documented("langchain.md")
    assert [m.content for m in names["conversation"]] == ["I am allergic to peanuts", "I will keep that in mind."]
    assert names["found"][0].page_content == "I am allergic to peanuts"
