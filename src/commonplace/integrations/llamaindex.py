"""LlamaIndex's memory over this one: a conversation that lasts, and a block that brings in what is known.

    from commonplace.integrations.llamaindex import CommonplaceMemory, CommonplaceMemoryBlock

A message is one episodic memory of its session and comes back as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview
from commonplace.integrations.conversation import Conversation, Message
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Fault

with framework("llama-index-core", "0.14.15", extra="llamaindex"):
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemory, BaseMemoryBlock

_NAME = "llamaindex"


class CommonplaceMemory(BaseMemory):
    """The messages of one session, for `agent.run(…, memory=memory)` and chat engines.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; with a `Memory` or `RemoteMemory` only the async methods work.
        session_id: Which conversation.
        user_id: The person it is with; of others' messages under the same id nothing is seen. Without one, those of no
            person.
        agent_id: Another agent than the memory's own.
        limit: How many messages `get` gives at most, the latest; all of them where nothing is said.
    """

    session_id: str
    user_id: str | None = None
    agent_id: str | None = None
    limit: int | None = None
    _access: MemoryAccess = PrivateAttr()
    _conversation: Conversation = PrivateAttr()

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        session_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(session_id=session_id, user_id=user_id, agent_id=agent_id, limit=limit)
        self._access = MemoryAccess(memory, _error, agent_id, user_id)
        self._conversation = Conversation(self._access, _NAME, session_id)

    @classmethod
    def class_name(cls) -> str:
        return "CommonplaceMemory"

    @classmethod
    def from_defaults(
        cls,
        memory: AnyMemory | None = None,
        *,
        session_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
        chat_history: list[ChatMessage] | None = None,
        llm: Any = None,
    ) -> CommonplaceMemory:
        """As the constructor; `chat_history` is what the session begins with. Chat engines hand over their `llm`, too,
        which is not asked."""
        made = cls(memory, session_id=session_id, user_id=user_id, agent_id=agent_id, limit=limit)
        if chat_history is not None:
            made.set(chat_history)
        return made

    def get(self, input: Any = None, **more: Any) -> list[ChatMessage]:
        return _messages(self._access.wait(self._conversation.messages(self.limit)))

    async def aget(self, input: Any = None, **more: Any) -> list[ChatMessage]:
        return _messages(await self._access.run(self._conversation.messages(self.limit)))

    def get_all(self) -> list[ChatMessage]:
        return _messages(self._access.wait(self._conversation.messages()))

    async def aget_all(self) -> list[ChatMessage]:
        return _messages(await self._access.run(self._conversation.messages()))

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        self._access.wait(self._conversation.add(_drafts(messages)))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        await self._access.run(self._conversation.add(_drafts(messages)))

    def set(self, messages: list[ChatMessage]) -> None:
        self._access.wait(self._conversation.replace(_drafts(messages)))

    async def aset(self, messages: list[ChatMessage]) -> None:
        await self._access.run(self._conversation.replace(_drafts(messages)))

    def reset(self) -> None:
        self._access.wait(self._conversation.clear())

    async def areset(self) -> None:
        await self._access.run(self._conversation.clear())

    def close(self) -> None:
        self._access.close()


class CommonplaceMemoryBlock(BaseMemoryBlock[str]):
    """What the agent knows that answers the last message, for `Memory.from_defaults(memory_blocks=[…])`. What
    LlamaIndex's own memory lets go of is kept, each message as one episodic memory.

    Args:
        memory: Any memory of ours.
        k: How many memories are brought in at most.
        user_id: Only what is about this person; without one, about anyone.
        agent_id: Another agent than the memory's own.
        min_score: The least relevance; by default what a good answer has.
        name: What LlamaIndex calls the block; `description`, `priority` and `accept_short_term_memory` are as for every
            block of its.
    """

    name: str = "commonplace"
    k: int = 5
    user_id: str | None = None
    agent_id: str | None = None
    min_score: float | None = None
    _access: MemoryAccess = PrivateAttr()

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        k: int = 5,
        user_id: str | None = None,
        agent_id: str | None = None,
        min_score: float | None = None,
        name: str = "commonplace",
        description: str | None = None,
        priority: int = 0,
        accept_short_term_memory: bool = True,
    ) -> None:
        super().__init__(
            k=k, user_id=user_id, agent_id=agent_id, min_score=min_score, name=name, description=description,
            priority=priority, accept_short_term_memory=accept_short_term_memory,
        )  # fmt: skip
        self._access = MemoryAccess(memory, _error, agent_id, user_id)

    async def _aget(self, messages: list[ChatMessage] | None = None, **more: Any) -> str:
        asked = next((m.content for m in reversed(messages or []) if m.role == MessageRole.USER and m.content), None)
        return await self._access.run(self._known(asked)) if asked else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str, list[ChatMessage]] = {}
        for message in messages:
            by_session.setdefault(str(message.additional_kwargs.get("session_id", self.name)), []).append(message)
        for session, those in by_session.items():
            await self._access.run(Conversation(self._access, _NAME, session).add(_drafts(those)))

    async def _known(self, asked: str) -> str:
        found = await self._access.memory.recall(asked, k=self.k, min_score=self.min_score, **self._access.scope)
        return "\n".join(f"- {hit.content}" for hit in found)

    def close(self) -> None:
        self._access.close()


def _error(refusal: Fault | PendingReview) -> ValueError:
    # LlamaIndex has no exception of its own for memory: its stores raise ValueError.
    return ValueError(str(refusal))


def _messages(documents: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    return [ChatMessage.model_validate(document) for document in documents]


def _drafts(messages: Sequence[ChatMessage]) -> list[Message]:
    return [Message(_text(each), each.role.value, each.model_dump(mode="json")) for each in messages]


def _text(message: ChatMessage) -> str:
    """What recall finds a message by: its text, or what it does instead of saying something."""
    if text := (message.content or "").strip():
        return text
    calls = [block.tool_name for block in message.blocks if hasattr(block, "tool_name")]
    return f"calls {', '.join(calls)}" if calls else f"{message.role.value} message without text"
