"""Anyone's `MemoryStore` as a replica: it is given copies by memorywire's own operations, and asked by them.

It mints ids of its own, so ours goes to it as `metadata.commonplace_id`, and what else a memory is as
`metadata.commonplace`. Nothing is ever forgotten there but what has our id, so a store that cannot be asked for a
memory by our id gets none.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from commonplace.stores.base import CAPABILITIES, Candidate, Entry, Page, Reach, Search
from commonplace.stores.cursors import PageProgress
from commonplace.stores.documents import OUR_FIELDS, OUR_ID, OUR_TENANT, DamagedCopy, UnreadableCopy, on_copied_fields
from commonplace.stores.foreign_copies import (
    filter_of,
    idempotency_keys,
    is_copy,
    listed_hit,
    memory_of,
    our_id,
    remember_request,
)
from commonplace.stores.mixins import page_of
from commonplace.wire.errors import Conflict, Fault, NotFound, Unavailable
from commonplace.wire.memory_store import MemoryStore
from commonplace.wire.models import (
    ForgetRequest,
    ForgetResponse,
    Message,
    RecallHit,
    RecallRequest,
    RecallResponse,
    RememberResponse,
)
from commonplace.wire.record import Memory

T = TypeVar("T")
M = TypeVar("M", bound=Message)
_MOST = 1000  # results of one recall, or of one page
_MOST_LISTED = 5_000_000  # copies of one agent: of each a resync keeps an id and a hash
_IDS_AT_ONCE = 50  # they may travel in a URL
_NOT_FOUND = 404
_FIRST, _LAST = 0, 1 << 48  # of the first twelve digits of an id: the millisecond it was minted in
_USEFUL = CAPABILITIES - {"graph", "governance", "recall_tracking"}


#: A page of one agent's memories: called with agent_id, filter, limit and cursor, it gives {memories, next_cursor}.
ListPage = Callable[..., Awaitable[Mapping[str, Any]]]


def listing_of(store: MemoryStore) -> ListPage | None:
    """How it is listed, where it can be: a `Memory` or a `RemoteMemory` says so."""
    listing: ListPage | None = getattr(store, "list", None) if getattr(store, "lists_by_filter", False) else None
    return listing


class ForeignStore:
    """`PerAgentStore`: these operations need to know whose memories are meant.

    A store that can list its memories is asked by `list_page` which of them are copies of ours; any other is asked by
    recalls, which have to find by `filter` alone.
    """

    def __init__(
        self, store: MemoryStore, name: str, list_page: ListPage | None = None, *, closes: bool = False
    ) -> None:
        self._store = store
        self._closes = closes  # whether it was opened here, so that nobody else closes it
        self.name = name
        self._list_page = list_page
        self._is_checked = False  # that it finds copies by our id
        self._is_ours = type(store).__module__.partition(".")[0] == __name__.partition(".")[0]

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self._store.capabilities) & _USEFUL

    def keeps(self, memory: Memory) -> bool:
        """Not what came to us as a copy: two servers that copy each other would do so for ever."""
        return OUR_ID not in memory.metadata

    async def put(self, entries: Sequence[Entry]) -> None:
        has = [await self._put(entry.memory) for entry in entries]  # one that waits does not hold up the others
        if not all(has):
            raise Unavailable("it lets what it is given wait for approval, so it has no copy yet")

    async def _put(self, memory: Memory) -> bool:
        """Whether it has a copy now, and not only one that waits for approval there."""
        there = await self._find(memory.tenant, memory.agent_id, [memory.id])
        # An attempt that could not take away the older ones has left it.
        kept = next((hit.id for hit in there if is_copy(hit, memory)), None)
        if kept is None:
            # Each time: at one address there may be another server by now.
            await self._refuse_itself(memory)
            answer = await self._remember(memory)
            if answer.pending_approval:
                # An older text must not wait beside it; a copy stays until there is another.
                spared = [answer.id, *(hit.id for hit in there)]
                await self._forget_copies(memory.tenant, memory.agent_id, [memory.id], there, but=spared)
                return False
            kept = answer.id
            if not self._is_checked:
                await self._require_found(memory, kept)
        self._is_checked = True
        # Only now: there is always one that can be found.
        await self._forget_copies(memory.tenant, memory.agent_id, [memory.id], there, but=[kept])
        return True

    async def _refuse_itself(self, memory: Memory) -> None:
        """Nobody mints an id of ours: a store that has the memory under it is the very one that is copied."""
        if self._list_page is not None and await self._list(memory.agent_id, {"id": [memory.id]}):
            raise Unavailable("it has this memory itself, under the same id: a store cannot have copies of its own")

    async def _require_found(self, memory: Memory, theirs: str) -> None:
        if all(hit.id != theirs for hit in await self._find(memory.tenant, memory.agent_id, [memory.id])):
            await self._forget(memory.agent_id, [theirs])
            raise Unavailable(
                "it does not find a memory by a filter on metadata alone, so what is copied could never be deleted"
            )

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        raise Unavailable(f"{self.name} has to be told whose memories are meant")

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        raise Unavailable(f"{self.name} has to be told whose memories are meant")

    async def get_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> list[Memory]:
        copies = [self._memory(hit, agent_id) for hit in await self._find(tenant, agent_id, ids)]
        found = {memory.id: memory for memory in copies if not isinstance(memory, UnreadableCopy)}
        return [found[id] for id in ids if id in found]

    async def delete_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> int:
        # Where it can be listed nothing is looked at before: also what is too large to be shown has to go.
        found = await self._find(tenant, agent_id, ids) if self._list_page is None else []
        return await self._forget_copies(tenant, agent_id, ids, found)

    async def search(self, search: Search) -> list[Candidate]:
        reach = replace(search.reach, where=on_copied_fields(search.reach.where))
        wanted, is_all = filter_of(reach)
        # More than is wanted: what has expired by our clock is left out; and what it cannot filter by is compared here,
        # and must not have been cut off by then, as far as one answer reaches.
        most = min(2 * search.limit + 20, _MOST) if is_all else _MOST
        found: list[Candidate] = []
        for agent in reach.agents:
            hits = await self._recall(agent, search.text or "?", wanted, most)
            near = [(hit, memory) for hit in hits if reach.admits(memory := self._memory(hit, agent))]
            found += [Candidate(memory, score=hit.score) for hit, memory in near if memory.tenant == reach.tenant]
        if len(reach.agents) > 1:  # or those of the first agent would stand before all others
            found.sort(key=lambda candidate: -(candidate.score or 0.0))
        return found[: search.limit]

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        found = [m for agent in reach.agents async for page in self.copy_pages(reach.tenant, agent) for m in page]
        return page_of(filter(reach.admits, found), limit, cursor, newest_first)

    async def copy_pages(self, tenant: str, agent_id: str) -> AsyncIterator[Sequence[Memory]]:
        """Where it cannot be listed, by ranges of ids, halved as long as one answer does not hold a whole one."""
        if self._list_page is not None:
            async for page in self._pages(agent_id, {OUR_TENANT: tenant, OUR_ID: {"$exists": True}}):
                yield [self._memory(hit, agent_id) for hit in page]
            return
        ranges = [(_FIRST, _LAST)]
        while ranges:
            first, last = ranges.pop()
            within = {"$gte": _id_start(first), "$lt": _id_start(last) if last < _LAST else "g"}
            hits = await self._recall(agent_id, OUR_ID, {OUR_TENANT: tenant, OUR_ID: within}, _MOST)
            if len(hits) < _MOST:
                yield [self._memory(hit, agent_id) for hit in hits]
            elif last - first > 1:
                middle = (first + last) // 2
                ranges += [(first, middle), (middle, last)]
            else:
                raise Unavailable(
                    f"it has {_MOST:,} copies or more whose ids begin alike, and shows no more: a store that can be "
                    "listed is needed"
                )

    async def agent_names(self, tenant: str) -> list[str]:
        """Those of whose memories it has copies, where it says whose memories it has; else nobody."""
        status: Callable[[], Awaitable[Mapping[str, Any]]] | None = getattr(self._store, "status", None)
        if self._list_page is None or status is None:
            return []
        try:
            agents = (await self._call(status)).get("agents")
        except (NotFound, Unavailable) as fault:
            if isinstance(fault, Unavailable) and fault.details.get("status") != _NOT_FOUND:
                raise
            return []
        copies = {OUR_TENANT: tenant, OUR_ID: {"$exists": True}}  # it may have agents of its own
        names = [name for name in agents if isinstance(name, str)] if isinstance(agents, dict) else []
        return [name for name in names if (await self._page(name, copies, limit=1))["memories"]]

    async def health(self) -> dict[str, Any]:
        return await self._call(self._store.health)

    async def close(self) -> None:
        """Otherwise it belongs to whoever made it."""
        close = getattr(self._store, "close", None) if self._closes else None
        if close is not None and inspect.isawaitable(closing := close()):
            await closing

    # what it is asked with

    async def _call(self, operation: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
        """The words of a class that is not ours may quote what it was given, whatever it raises."""
        try:
            answer = operation(*given, **named)
            if inspect.isawaitable(answer):
                return await answer
        except Fault as fault:
            fault.is_quoted = fault.is_quoted or not self._is_ours
            raise
        name = getattr(operation, "__name__", "operation")
        raise Unavailable(f"its {name} is not async: it returned {_kind(answer)}, and the operations are awaited")

    async def _ask(self, answer: type[M], request: Message) -> M:
        name = answer.__name__.removesuffix("Response").lower()
        found = await self._call(getattr(self._store, name), request)
        if not isinstance(found, answer):
            wanted = f"commonplace.wire.{answer.__name__}"
            raise Unavailable(f"its {name} returned {_kind(found)}; a MemoryStore answers with {wanted}")
        return found

    async def _find(self, tenant: str, agent_id: str, ids: Sequence[str]) -> list[RecallHit]:
        """Its copies of these memories, of which there may be more than one."""
        found: list[RecallHit] = []
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = list(ids[start : start + _IDS_AT_ONCE])
            filter = {OUR_TENANT: tenant, OUR_ID: some}
            if self._list_page is not None:
                found += await self._list(agent_id, filter)
            else:
                found += await self._recall(agent_id, " ".join(some[:20]), filter, _MOST)
        return [hit for hit in found if our_id(hit) in ids]

    async def _recall(self, agent_id: str, query: str, filter: dict[str, Any], k: int) -> list[RecallHit]:
        request = RecallRequest(agent_id=agent_id, query=query or "?", k=k, filter=filter, min_score=0, judge="off")
        answer = await self._ask(RecallResponse, request)
        return [hit for hit in answer.results if our_id(hit) is not None]

    async def _list(self, agent_id: str, filter: dict[str, Any]) -> list[RecallHit]:
        return [hit async for page in self._pages(agent_id, filter) for hit in page]

    async def _pages(self, agent_id: str, filter: dict[str, Any]) -> AsyncIterator[list[RecallHit]]:
        cursor: str | None = None
        progress = PageProgress(_MOST_LISTED)
        while True:
            page = await self._page(agent_id, filter, cursor)
            hits = [*map(listed_hit, page["memories"])]
            yield hits
            cursor = page.get("next_cursor")
            if cursor is None:
                return
            progress.check([hit.id for hit in hits], cursor)

    async def _page(
        self, agent_id: str, filter: dict[str, Any], cursor: str | None = None, limit: int | None = None
    ) -> Mapping[str, Any]:
        assert self._list_page is not None
        page = await self._call(self._list_page, agent_id=agent_id, filter=filter, limit=limit or _MOST, cursor=cursor)
        if not isinstance(page.get("memories"), list):
            raise Unavailable("it answers, but not with a page of memories")
        return page

    async def _remember(self, memory: Memory) -> RememberResponse:
        """With a key, so that what waits for approval there, or arrives late, does not wait or arrive twice."""
        for key in idempotency_keys(memory) if self._list_page is not None else ():
            try:
                answer = await self._ask(RememberResponse, remember_request(memory, key))
            except Conflict:  # what it was used for is erased, or was staged by a policy that is no longer in force
                continue
            if answer.pending_approval or await self._list(memory.agent_id, {"id": [answer.id]}):
                return answer
            # The first answer again, of a copy that it has hidden since.
            await self._forget(memory.agent_id, [answer.id])
        return await self._ask(RememberResponse, remember_request(memory))

    async def _forget_copies(
        self, tenant: str, agent_id: str, ids: Sequence[str], found: Sequence[RecallHit], but: Sequence[str] = ()
    ) -> int:
        """Of these memories all but those that it calls `but`; how many. Where it can be listed, by a filter: an
        erasure by filter reaches also what no listing shows, because it was forgotten, merged or expired there or waits
        for approval, with its text."""
        if self._list_page is None:  # such a store need not know more of filters than how to find by them
            await self._forget(agent_id, [hit.id for hit in found if hit.id not in but])
            return len({our_id(hit) for hit in found})
        count = 0
        spared = {"id": {"$nin": list(but)}} if but else {}
        for start in range(0, len(ids), _IDS_AT_ONCE):
            filter = {OUR_TENANT: tenant, OUR_ID: list(ids[start : start + _IDS_AT_ONCE]), **spared}
            count += len(await self._erase(ForgetRequest(agent_id=agent_id, filter=filter, hard_delete=True)))
        return count

    async def _forget(self, agent_id: str, theirs: Sequence[str]) -> None:
        if theirs:
            await self._erase(ForgetRequest(agent_id=agent_id, ids=list(theirs), hard_delete=True))

    async def _erase(self, request: ForgetRequest) -> Sequence[str]:
        answer = await self._ask(ForgetResponse, request)
        if answer.pending_approval:
            raise Unavailable("it lets what it is to forget wait for approval, so the copy is still there")
        if answer.remaining_ids:
            raise Unavailable(f"{len(answer.remaining_ids)} of what it was to forget is left")
        return answer.forgotten_ids

    def _memory(self, hit: RecallHit, agent_id: str) -> Memory:
        """Anyone who may write there may have stored it, so that it cannot be read must cost no other anything. Then
        it is as much as its keys say, which is all that a recall and an erasure go by."""
        held = hit.metadata or {}
        id, tenant, own = our_id(hit) or "", held.get(OUR_TENANT), held.get(OUR_FIELDS)
        content = hit.content if isinstance(hit.content, str) else ""
        whose = tenant if isinstance(tenant, str) else ""
        is_ours = bool(id) and isinstance(own, dict) and (own.get("id"), own.get("tenant")) == (id, tenant)
        if is_ours:
            with suppress(Unavailable):
                return memory_of(hit.content, held, self.name)
            return DamagedCopy(id, whose, agent_id, hit.type, content, store_id=hit.id)
        return UnreadableCopy(id, whose, agent_id, hit.type, content, store_id=hit.id)


def _kind(answer: object) -> str:
    """Of what class it is: what is in it may be a memory."""
    return "None" if answer is None else f"an object of the class {type(answer).__name__:.80}"


def _id_start(number: int) -> str:
    return f"{number >> 16:08x}-{number & 0xFFFF:04x}" if number else "00000000"
