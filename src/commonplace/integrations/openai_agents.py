"""A session of the OpenAI Agents SDK over a memory.

    from commonplace.integrations.openai_agents import CommonplaceSession

An item of a conversation is one episodic memory and comes back as it was, so that a run can go on where another ended.
"""

from __future__ import annotations

import json
from typing import Any

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview
from commonplace.integrations.conversation import Conversation, Message
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Fault

with framework("openai-agents", "0.24", extra="openai-agents"):
    from agents import SessionABC, SessionSettings, TResponseInputItem
    from agents.exceptions import AgentsException

_NAME = "openai_agents"


class CommonplaceSession(SessionABC):
    """The items of one session, for `Runner.run(…, session=session)` and `run_sync`.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; within one event loop also a `Memory` or `RemoteMemory`.
        session_id: Which conversation.
        user_id: The person it is with; of others' items under the same id nothing is seen. Without one, those of no
            person.
        agent_id: Another agent than the memory's own.
        session_settings: As every session has them, such as how many items a run begins with.
    """

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        session_id: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._access = MemoryAccess(memory, _error, agent_id, user_id)
        self._conversation = Conversation(self._access, _NAME, session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        wanted = self.session_settings.limit if limit is None else limit
        found: list[Any] = await self._access.run(self._conversation.messages(wanted))
        return found

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._access.run(self._conversation.add([_message(dict(item)) for item in items]))

    async def pop_item(self) -> TResponseInputItem | None:
        found: Any = await self._access.run(self._conversation.pop())
        return found

    async def clear_session(self) -> None:
        await self._access.run(self._conversation.clear())

    def close(self) -> None:
        self._access.close()


def _error(refusal: Fault | PendingReview) -> AgentsException:
    return AgentsException(str(refusal))


def _message(item: dict[str, Any]) -> Message:
    # In JSON's own types: a run may hand over objects of the client library within an item.
    document: dict[str, Any] = json.loads(json.dumps(item, default=_plain))
    kind = str(document.get("type", "message"))
    return Message(_text(document, kind), str(document.get("role") or kind), document)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if hasattr(value, "model_dump") else str(value)


def _text(item: dict[str, Any], kind: str) -> str:
    """What recall finds an item by: what is said in it, or what it does instead."""
    said = _said(item.get("content")) or _said(item.get("output")) or _said(item.get("summary"))
    if said:
        return said
    if "name" in item:
        return f"calls {item['name']} {item.get('arguments') or item.get('input') or ''}".rstrip()
    return f"{kind} without text"


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
