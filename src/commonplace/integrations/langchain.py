"""LangChain's chat history and retriever over a memory.

    from commonplace.integrations.langchain import CommonplaceChatMessageHistory, CommonplaceRetriever

A message is one episodic memory of its session and comes back as it was. The retriever finds whatever the agent knows,
by whichever protocol it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview
from commonplace.integrations.conversation import Conversation, Message
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Fault
from commonplace.wire.models import RecallHit
from commonplace.wire.times import iso

with framework("langchain-core", "1.0", extra="langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.exceptions import LangChainException
    from langchain_core.messages import BaseMessage, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from pydantic import PrivateAttr

_NAME = "langchain"
#: Of a hit, what a document says about itself; the memory's own metadata stands beside it.
_SHOWN = ("type", "score", "relevance", "confidence", "source", "user_id")


class CommonplaceChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; with a `Memory` or `RemoteMemory` only the async methods work.
        session_id: Which conversation.
        user_id: The person the messages are about; of others' messages under the same id nothing is seen. Without one,
            those of no person.
        agent_id: Another agent than the memory's own.
    """

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        session_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        self._access = MemoryAccess(memory, _error, agent_id, user_id)
        self._conversation = Conversation(self._access, _NAME, session_id)

    @property
    def messages(self) -> list[BaseMessage]:
        return _messages(self._access.wait(self._conversation.messages()))

    async def aget_messages(self) -> list[BaseMessage]:
        return _messages(await self._access.run(self._conversation.messages()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._access.wait(self._conversation.add([_message(each) for each in messages]))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._access.run(self._conversation.add([_message(each) for each in messages]))

    def clear(self) -> None:
        self._access.wait(self._conversation.clear())

    async def aclear(self) -> None:
        await self._access.run(self._conversation.clear())

    def close(self) -> None:
        self._access.close()


class CommonplaceRetriever(BaseRetriever):
    """What the agent knows, as documents; the parameters are those of `recall`.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; with a `Memory` or `RemoteMemory` only the async methods work.
        k: How many documents at most; `invoke(query, k=3)` says so for one question.
        user_id: Only what is about this person; without one, about anyone.
        agent_id: Another agent than the memory's own.
        types: Only these types of memory.
        filter: Conditions on metadata and fields.
        min_score: The least relevance; by default what a good answer has.
        name: What LangChain calls it in its traces, with `tags` and `metadata` beside.
    """

    k: int = 5
    user_id: str | None = None
    agent_id: str | None = None
    types: list[str] | None = None
    filter: dict[str, Any] | None = None
    min_score: float | None = None
    _access: MemoryAccess = PrivateAttr()

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        k: int = 5,
        user_id: str | None = None,
        agent_id: str | None = None,
        types: list[str] | None = None,
        filter: dict[str, Any] | None = None,
        min_score: float | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            k=k, user_id=user_id, agent_id=agent_id, types=types, filter=filter, min_score=min_score, name=name,
            tags=tags, metadata=metadata,
        )  # fmt: skip
        self._access = MemoryAccess(memory, _error, agent_id, user_id)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._access.wait(self._documents(query, k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await self._access.run(self._documents(query, k))

    async def _documents(self, query: str, k: int | None) -> list[Document]:
        wanted = self.k if k is None else k
        found = await self._access.memory.recall(
            query, k=wanted, types=self.types, filter=self.filter, min_score=self.min_score, **self._access.scope
        )
        return [_document(hit) for hit in found]

    def close(self) -> None:
        self._access.close()


def _error(refusal: Fault | PendingReview) -> LangChainException:
    return LangChainException(str(refusal))


def _messages(documents: list[dict[str, Any]]) -> list[BaseMessage]:
    found: list[BaseMessage] = messages_from_dict(documents)
    return found


def _message(message: BaseMessage) -> Message:
    # As messages_from_dict reads it, in JSON's own types: a datetime within would come back as a number.
    document = {"type": message.type, "data": message.model_dump(mode="json")}
    return Message(_text(message), message.name or message.type, document)


def _text(message: BaseMessage) -> str:
    """What recall finds a message by: its text, or what it does instead of saying something."""
    if text := str(message.text).strip():
        return text
    calls = [f"{call['name']} {call['args']}" for call in getattr(message, "tool_calls", ())]
    return f"calls {', '.join(calls)}" if calls else f"{message.type} message without text"


def _document(hit: RecallHit) -> Document:
    said = {name: value for name in _SHOWN if (value := getattr(hit, name)) is not None}
    if hit.created_at is not None:
        said["created_at"] = iso(hit.created_at)
    return Document(page_content=str(hit.content), id=hit.id, metadata={**(hit.metadata or {}), **said})
