"""A framework's messages of one session: each is a memory, found like any other, and given back as it came.

Knows no framework: an adapter says which text a message has, who spoke, and what of it the framework wants back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from commonplace.integrations.access import MemoryAccess, require_done
from commonplace.interface.base import check_ids
from commonplace.wire.canonical import minted_at
from commonplace.wire.errors import Fault, NotFound, Unavailable
from commonplace.wire.models import ForgetResponse
from commonplace.wire.record import MAX_PAGE

_MORE = 16  # than were asked for are read at once: those that waited come first in a list


class Message(NamedTuple):
    text: str  # what recall finds it by
    speaker: str
    document: dict[str, Any]  # as the framework writes it down


class Conversation:
    """One session of one framework; another framework's session of the same name is another one."""

    def __init__(self, access: MemoryAccess, framework: str, session_id: str) -> None:
        if not session_id:
            raise ValueError("a session needs an id, such as a thread's or a user's")
        check_ids(session_id=session_id)
        self._access = access
        self._framework = framework
        self._session_id = session_id
        self._filter = access.own({f"{framework}.session": session_id, "source": framework})

    async def add(self, messages: Sequence[Message]) -> None:
        """Keeps all that may be kept; then raises for the first that may not."""
        await self._access.remember_all([self._draft(message) for message in messages])

    async def replace(self, messages: Sequence[Message]) -> None:
        """These instead of all that are there, or, where one of them may not be kept, all that are there as they were.

        The others are forgotten last: a process that ends halfway leaves both, never neither."""
        old = [memory["id"] async for memory in self._access.list_own(self._filter)]
        new = await self._access.remember_all_or_none([self._draft(message) for message in messages])
        if not old:
            return
        try:
            gone = await self._access.memory.forget(old, agent_id=self._access.agent_id)
        except Fault:
            await self._access.take_back(new)
            raise
        # Where this waits for a person the new ones stay: they are all that is left once it is approved.
        _require_all(gone)

    async def messages(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The latest, as the framework wrote them, the oldest first."""
        found = await self._latest(limit)
        return [self._document(memory) for memory in reversed(found)]

    async def pop(self) -> dict[str, Any] | None:
        """Forgets the latest and gives it; two who do so at once get different ones."""
        while found := await self._latest(1):
            try:
                gone = await self._access.memory.forget(found[0]["id"], agent_id=self._access.agent_id)
            except NotFound:
                continue
            _require_all(gone)
            if gone.forgotten_ids:
                return self._document(found[0])
        return None

    async def clear(self) -> None:
        _require_all(await self._access.memory.forget(filter=self._filter, **self._access.scope))

    async def _latest(self, limit: int | None) -> list[dict[str, Any]]:
        """The memories of the messages that were written last, the last one first.

        A list goes by when something was kept, which is later for what had to wait for a person; an id is given when it
        is written. Nothing is kept before it is written, so the reading ends where all the rest was kept earlier. After
        a clock was set back, ids are ahead of it: by how much, those that did not wait show."""
        found: list[dict[str, Any]] = []
        cursor = None
        while limit is None or limit > 0:
            wanted = MAX_PAGE if limit is None or cursor else min(limit + _MORE, MAX_PAGE)
            page = await self._page(wanted, cursor)
            told = [memory for memory in page["memories"] if self._is_message(memory)]
            found = sorted((*found, *told), key=lambda memory: str(memory["id"]), reverse=True)
            cursor = page.get("next_cursor")
            rest_kept_by = page["memories"][-1]["created_at"] if page["memories"] else None
            if cursor is None:
                break
            if limit is None or rest_kept_by is None or len(found) < limit:
                continue
            ahead = max(0, *(minted_at(each["id"]) - each["created_at"] for each in found))
            if minted_at(found[limit - 1]["id"]) > rest_kept_by + ahead:
                break
        return found[:limit] if limit is None or limit > 0 else []

    async def _page(self, limit: int, cursor: str | None = None) -> dict[str, Any]:
        return await self._access.memory.list(filter=self._filter, limit=limit, cursor=cursor, **self._access.scope)

    def _is_message(self, memory: dict[str, Any]) -> bool:
        """Whether it is what `_draft` makes; anyone may write such metadata, and half of it would break the reading."""
        kept = memory["metadata"][self._framework]
        return kept["session"] == self._session_id and isinstance(kept.get("message"), dict)

    def _document(self, memory: dict[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = memory["metadata"][self._framework]["message"]
        return document

    def _draft(self, message: Message) -> dict[str, Any]:
        kept = {
            "session_id": self._session_id,
            "speaker": message.speaker,
            self._framework: {"session": self._session_id, "message": message.document},
        }
        return {
            "content": message.text,
            "type": "episodic",
            "metadata": kept,
            "source": self._framework,
            **self._access.scope,
        }


def _require_all(gone: ForgetResponse) -> None:
    require_done(gone)
    if gone.remaining_ids:
        raise Unavailable(f"{len(gone.remaining_ids)} messages of this session could not be forgotten; try again")
