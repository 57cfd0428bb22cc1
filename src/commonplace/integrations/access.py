"""How an adapter calls a memory: from code that waits and from code that awaits, with refusals as the framework's own
errors. Knows no framework, and loads no engine unless it has to open a memory itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from commonplace.blocking import BlockingMemory
from commonplace.interface import MemoryInterface
from commonplace.interface.base import T, check_ids
from commonplace.wire.errors import Conflict, Fault
from commonplace.wire.models import RememberResponse
from commonplace.wire.record import MAX_PAGE

AnyMemory = BlockingMemory | MemoryInterface
#: As a condition: what is about no person.
NO_PERSON: dict[str, Any] = {"user_id": {"$exists": False}}


class PendingReview(Exception):
    """A write that waits for a person. A framework has no word for that, so it is told as an error: whoever believed it
    done would go on without it."""

    def __init__(self, review_id: str | None, approval_url: str | None = None) -> None:
        where = approval_url or f"`commonplace review show {review_id}`"
        self.summary = f"this is not kept yet: it waits for a person's review ({where}); do not write it again"
        super().__init__(self.summary)


def require_done(answer: Any) -> None:
    """Raises where a write was staged instead of done; takes a response of any writing operation."""
    said = answer if isinstance(answer, dict) else vars(answer)
    if said.get("pending_approval"):
        raise PendingReview(said.get("review_id"), said.get("approval_url"))


def _ids(outcomes: Sequence[RememberResponse | Fault]) -> list[str]:
    """Of a batch; raises for the first that was refused or staged."""
    for outcome in outcomes:
        if isinstance(outcome, Fault):
            raise outcome
        require_done(outcome)
    return [outcome.id for outcome in outcomes if not isinstance(outcome, Fault)]


class MemoryAccess:
    """One memory for one adapter, which writes what it does once, as coroutines over `memory`: `wait` carries one out
    for callers that are not async, `run` for those that are.

    Without a memory the default data folder is opened. `error` makes the framework's exception of a refusal.
    """

    def __init__(
        self,
        memory: AnyMemory | None,
        error: Callable[[Fault | PendingReview], Exception],
        agent_id: str | None = None,
        user_id: str | None = None,
    ) -> None:
        check_ids(agent_id=agent_id, user_id=user_id)
        self._is_own = memory is None
        if memory is None:
            from commonplace.sdk import SyncMemory

            memory = SyncMemory()
        if not isinstance(memory, BlockingMemory | MemoryInterface):
            raise TypeError(f"give it a SyncMemory, a SyncRemoteMemory, a Memory or a RemoteMemory, not {memory!r:.80}")
        self._blocking = memory if isinstance(memory, BlockingMemory) else None
        self.memory = memory.async_memory if isinstance(memory, BlockingMemory) else memory
        self.agent_id = agent_id or memory.agent_id
        self.user_id = user_id
        self._error = error
        self._keys_used: dict[str, int] = {}  # by this process, where it was more than one for a place

    @property
    def scope(self) -> dict[str, Any]:
        """Whose memories: for the methods that take a user."""
        return {"agent_id": self.agent_id, "user_id": self.user_id}

    def own(self, filter: dict[str, Any]) -> dict[str, Any]:
        """The filter for what an adapter has put there itself: without a person, what is about no person.

        A memory takes no person for everyone, and one session, file or key would be that of all of them.
        """
        return filter if self.user_id is not None else {**filter, **NO_PERSON}

    async def list_own(self, filter: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """What the adapter has put there that matches, page by page as it is needed."""
        cursor, whole = None, self.own(filter)
        while True:
            page = await self.memory.list(filter=whole, limit=MAX_PAGE, cursor=cursor, **self.scope)
            for memory in page["memories"]:
                yield memory
            if (cursor := page.get("next_cursor")) is None:
                return

    async def find_own(self, filter: dict[str, Any]) -> dict[str, Any] | None:
        page = await self.memory.list(filter=self.own(filter), limit=1, **self.scope)
        return page["memories"][0] if page["memories"] else None

    async def remember_all(self, drafts: Sequence[dict[str, Any]]) -> list[str]:
        """Keeps all that may be kept, and gives their ids; or raises for the first that may not."""
        return _ids([each async for chunk in self._remember(drafts) for each in chunk])

    async def remember_all_or_none(self, drafts: Sequence[dict[str, Any]]) -> list[str]:
        """Keeps all of them, and gives their ids; or takes back those it kept, and raises for the first that may not be
        kept. What waits for a person goes on waiting."""
        outcomes: list[RememberResponse | Fault] = []
        try:
            async for chunk in self._remember(drafts):
                outcomes += chunk
                _ids(outcomes)  # raises before more is written that would be taken back
        except (Fault, PendingReview):
            kept = [each for each in outcomes if not isinstance(each, Fault)]
            await self.take_back([each.id for each in kept if not each.pending_approval])
            raise
        return _ids(outcomes)

    async def take_back(self, ids: Sequence[str]) -> None:
        """Forgets what was written by an operation that was refused in the end; the caller raises that refusal, and
        this adds none of its own."""
        if ids:
            with suppress(Fault):
                reason = "part of a write that was refused"
                await self.memory.forget(list(ids), reason=reason, agent_id=self.agent_id)

    async def _remember(self, drafts: Sequence[dict[str, Any]]) -> AsyncIterator[Sequence[RememberResponse | Fault]]:
        for start in range(0, len(drafts), MAX_PAGE):
            yield await self.memory.remember_batch(drafts[start : start + MAX_PAGE])

    async def create_once(
        self, place: str, draft: dict[str, Any], find: Callable[[], Awaitable[dict[str, Any] | None]]
    ) -> RememberResponse | None:
        """Keeps what a framework has under a name of its own; None where another process was quicker. `draft` must not
        be what anyone else would write, `find` looks for what is there under that name.

        Of those who write under one idempotency key only one can. A key stays used when what was written is gone, so
        the name has a row of keys, of which everyone takes the first that is free."""
        owner = (self.agent_id, self.user_id or "", str(draft.get("source")), place)
        name = uuid5(NAMESPACE_URL, json.dumps(owner))  # a place may be too long for a key, or look like a secret
        for number in count(self._keys_used.get(place, 0)):
            try:
                answer = await self.memory.remember(**draft, idempotency_key=f"{name}-{number}")
            except Conflict as conflict:
                if conflict.details.get("field") != "idempotency_key":
                    raise
                if await find() is not None:
                    return None
                continue
            if number:
                self._keys_used[place] = number + 1
            return answer
        raise AssertionError("there is always another number")

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._blocking is None:
            work.close()
            raise TypeError(
                f"a {type(self.memory).__name__} is async: use the async methods, or give a SyncMemory or a "
                "SyncRemoteMemory, with which both kinds work"
            )
        try:
            return self._blocking.run(work)
        except (Fault, PendingReview) as refusal:
            raise self._error(refusal) from refusal

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            if self._blocking is None:
                return await work
            # On the memory's own loop: the framework may use another one for every run.
            return cast("T", await asyncio.wrap_future(self._blocking.submit(work)))
        except (Fault, PendingReview) as refusal:
            raise self._error(refusal) from refusal

    def close(self) -> None:
        """Closes the memory that was opened here; one that was given is its owner's."""
        if self._is_own and self._blocking is not None:
            self._blocking.close()
