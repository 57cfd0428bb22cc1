"""The stores beside the primary as the engine holds them: opened in the background, each with its timeout and breaker.

Nothing here knows what is asked of a store; `outbox` writes through it and `recall.fan_out` reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from commonplace.engine.outbox.bounded_calls import in_daemon_thread, run_with_timeout
from commonplace.engine.outbox.breaker import CircuitBreaker
from commonplace.stores.base import Store
from commonplace.stores.optional import PerAgentStore, Selective
from commonplace.wire.errors import Fault, Forbidden, Unauthenticated, Unavailable, kind_and_place
from commonplace.wire.record import MEMORY_TYPES, Clock, Memory

T = TypeVar("T")
log = logging.getLogger("commonplace.stores")
LONGEST_WATCH_SECONDS = 60.0
WATCH_SECONDS = 900.0  # of one that is there: some ask a model that is paid for when they say how they are
SEARCHES_FAIL = "its searches fail"
SAYS_DOWN = "it says of itself that it is down"


@dataclass(slots=True, frozen=True)
class Attachment:
    """A store to attach, and what its URL says of how it is used."""

    name: str
    open: Callable[[], Store]  # may take long, and fail: it is called in a thread
    timeout: float = 2.0  # seconds for one operation
    weight: float = 1.0  # of its scores, where fusion is weighted
    types: frozenset[str] | None = None  # of memories, where it is not to have all that it can keep
    shown: str = ""  # its address, without what is secret in it


class Replica:
    """One attached store. A call that fails, or takes too long, raises Unavailable with a sentence for the caller."""

    def __init__(self, attachment: Attachment, clock: Clock) -> None:
        self.attachment = attachment
        self.name = attachment.name
        self.weight = attachment.weight
        self.timeout = attachment.timeout
        self.breaker = CircuitBreaker(clock)
        # Of its own: a search that fails at each question would keep every erasure from being delivered.
        self.search_breaker = CircuitBreaker(clock)
        self.altered = Counter[str]()  # by tenant: hits with a text that is not the primary's, since the process began
        self.clock = clock
        self._store: Store | None = None
        self._opening: asyncio.Task[Store] | None = None
        self._is_down = False  # as it last said itself
        self._unanswered: str | None = None  # why, where it did not answer when nothing but its health was asked
        self._probe_error: str | None = None  # the breaker's, where a probe was the last to fail
        self._search_again: Callable[[Store], Awaitable[object]] | None = None  # where the last search failed
        self._logged_away = False
        self._is_closed = False
        self.is_complete = False  # whether it is known that nothing is missing there from before it was attached
        self._capabilities: frozenset[str] = frozenset()  # as they were last read

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset() if self._store is None else self._capabilities

    def takes(self, type: str) -> bool:
        """Whether it is to keep memories of this type; of one that is not open yet nobody knows, so it is."""
        if self.attachment.types is not None and type not in self.attachment.types:
            return False
        return self._store is None or type in self._capabilities

    def omits(self, memory: Memory) -> str | None:
        """Why it is not to have a copy of this memory, if it is not."""
        if not self.takes(memory.type):
            return f"it does not keep {memory.type} memories"
        if isinstance(self._store, Selective) and not self._store.keeps(memory):
            return "what came as a copy from another server is not passed on"
        return None

    def types(self) -> frozenset[str]:
        return frozenset(type for type in MEMORY_TYPES if self.takes(type))

    def start(self) -> None:
        """Open it, in the background; nothing waits unless it needs the store."""
        if self._store is None and (self._opening is None or self._opening.done()):
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # someone may never ask

    async def ready(self, seconds: float) -> None:
        """Wait for it to open, so long; that it could not is told when it is used."""
        self.start()
        if self._opening is not None:
            with suppress(Exception):
                await asyncio.wait_for(asyncio.shield(self._opening), seconds)

    async def deliver(self, verb: Callable[[Store], Awaitable[T]]) -> T:
        """Its breaker does not take a refusal for a failure: a store that works may refuse a delivery for what it
        carries, however often."""
        if not self.breaker.try_call():
            raise self._skipped(self.breaker)
        try:
            return await self.attempt(verb)
        except StoreRefused as fault:
            self.breaker.refused(fault.summary)
            raise
        except Unavailable as fault:
            self.breaker.failed(fault.summary)
            raise

    @property
    def is_search_paused(self) -> bool:
        """Whether no question is asked of it for now: also while it takes no deliveries."""
        return self.breaker.is_open or self.search_breaker.is_open

    async def search(
        self, verb: Callable[[Store], Awaitable[T]], again: Callable[[Store], Awaitable[object]] | None = None
    ) -> T:
        """Where it fails, `again` is what a later look at the store asks, to find out whether it still does."""
        if self.breaker.is_open:
            raise self._skipped(self.breaker)
        if not self.search_breaker.try_call():
            raise self._skipped(self.search_breaker)
        try:
            return await self.attempt_search(verb)
        except Unavailable as fault:
            self.search_failed(fault, again or verb)
            raise

    def search_failed(self, fault: Unavailable, again: Callable[[Store], Awaitable[object]]) -> None:
        self.search_breaker.failed(fault.summary)
        self._search_again = again

    async def attempt(self, verb: Callable[[Store], Awaitable[T]], *, seconds: float | None = None) -> T:
        """As `deliver`, whatever the breaker says, which hears only of what went well: for an operator who waits. Its
        failure names the store: beside it the first one is worked with, too."""
        try:
            return await self._attempt(verb, self.breaker, self.timeout if seconds is None else seconds)
        except Unavailable as fault:
            fault.details["store"] = self.name
            raise

    async def attempt_search(self, verb: Callable[[Store], Awaitable[T]]) -> T:
        found = await self._attempt(verb, self.search_breaker, self.timeout)
        self._search_again = None
        return found

    async def _attempt(self, verb: Callable[[Store], Awaitable[T]], breaker: CircuitBreaker, limit: float) -> T:
        answer = await self._ask(verb, limit)
        self._is_down, self._unanswered = False, None
        self._clear_probe_error()
        breaker.succeeded()
        return answer

    def _clear_probe_error(self) -> None:
        """What a probe found does not outlast an answer: only deliveries would clear it, and there may be none."""
        if self._probe_error is not None and self.breaker.error is self._probe_error:
            self.breaker.succeeded()
        self._probe_error = None

    def _skipped(self, breaker: CircuitBreaker) -> StoreSkipped:
        wait = max((breaker.retry_at or 0) - self.clock(), 0) / 1000
        failures = f"it failed {breaker.failures} times in a row, last: {breaker.error}"
        return StoreSkipped(f"not asked for {wait:.0f} s more: {failures}")

    async def _ask(self, verb: Callable[[Store], Awaitable[T]], limit: float) -> T:
        async def asked() -> T:
            return await verb(await self._opened())

        try:
            return await run_with_timeout(limit, asked())
        except TimeoutError:
            if self._store is None:
                raise StoreUnreachable(f"it is still starting after {limit:g} s") from None
            raise StoreTimeout(f"it did not answer within {limit:g} s") from None
        except Unavailable as fault:
            if fault.is_quoted:
                raise Unavailable(f"it failed: {fault.code}") from None
            if self._store is None:
                raise StoreUnreachable(fault.summary) from None
            raise
        except Fault as fault:
            if self._store is None:
                raise StoreUnreachable(fault.summary) from None
            # What it says may quote a memory, and is shown to every tenant; of its opening it cannot. What to do about
            # its token is said by the store of ours that knows where that comes from.
            is_about_token = isinstance(fault, Unauthenticated | Forbidden) and fault.hint and not fault.is_quoted
            raise StoreRefused(f"it refused: {fault.code}" + (f"; {fault.hint}" if is_about_token else "")) from None
        except Exception as error:  # a product's own: whatever it is, the others go on
            said = f"it failed: {type(error).__name__}"
            log.warning("%s failed: %s", self.name, kind_and_place(error))
            raise (StoreUnreachable(said) if self._store is None else StoreRefused(said)) from None

    async def probe(self) -> None:
        """Ask it how it is, so that `state` knows also of one that nothing was asked of yet. That it answers says
        nothing of what it refused before, so only bad news is noted; one that is left alone is not asked."""
        if self.breaker.is_open:
            return
        try:
            answer = await self._ask(self._health, self.timeout)
        except Unavailable as fault:
            self.breaker.failed(fault.summary)
            self._probe_error = self.breaker.error
        else:
            self._answered(answer)
            self._clear_probe_error()
            await self._search_once_more()

    async def watch(self, seconds: float) -> None:
        """Look at it now and then: some open without asking anyone, and on a server that is idle nobody else asks. One
        that is away is looked at after so long, and then ever later."""
        pause = seconds
        while True:
            is_there = await self.look()
            await asyncio.sleep(WATCH_SECONDS if is_there else pause)
            pause = seconds if is_there else min(2 * pause, LONGEST_WATCH_SECONDS)

    async def look(self) -> bool:
        """Ask it how it is, and say once in the log that it has gone, and that it is back. The breaker hears nothing of
        it: what is written meanwhile is tried at once."""
        away = None
        try:
            self._answered(await self._ask(self._health, self.timeout))
            away = SAYS_DOWN if self._is_down else None
        except Unavailable as fault:
            away = self._unanswered = fault.summary
        if away is not None and not self._logged_away:
            log.warning("the store %s does not answer: %s", self.name, away)
        elif away is None and self._logged_away:
            log.warning("the store %s answers again", self.name)
        self._logged_away = away is not None
        if away is None:
            self._clear_probe_error()
            await self._search_once_more()
        return away is None

    async def _search_once_more(self) -> None:
        """Only searches say whether they work again, and on an idle server there may be none. Bad news is no news."""
        if self._search_again is not None and self.search_breaker.error is not None and not self.is_search_paused:
            with suppress(Unavailable):
                await self.attempt_search(self._search_again)

    def _answered(self, health: Mapping[str, Any]) -> None:
        # Degraded it works; and two servers with copies of each other's would call each other that forever.
        self._is_down, self._unanswered = health.get("status") == "down", None

    async def answers(self) -> bool:
        """Whether it is there, says it itself now; what was asked of it before may have failed nevertheless."""
        try:
            answer = await self._ask(self._health, self.timeout)
        except Unavailable:
            return False
        return answer.get("status") != "down"

    async def _health(self, store: Store) -> Mapping[str, Any]:
        answer: object = await store.health()
        if not isinstance(answer, Mapping):
            raise Unavailable("what it says of its health cannot be read")
        with suppress(Unavailable):  # some know what their server can do once they have asked it
            self._capabilities = read_capabilities(store)
        return answer

    async def _opened(self) -> Store:
        if self._is_closed:  # whoever asks nevertheless, such as a recall under way, would open it for nobody to close
            raise Unavailable("it is closed")
        if self._store is None:
            self.start()
            assert self._opening is not None
            return await asyncio.shield(self._opening)
        return self._store

    async def _open(self) -> Store:
        def opened() -> tuple[Store, frozenset[str]]:
            store = self.attachment.open()
            return store, read_capabilities(store)

        store, self._capabilities = await in_daemon_thread(opened)
        self._store = store
        return store

    async def close(self) -> None:
        self._is_closed = True
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
        if self._store is not None:
            store, self._store, self._opening = self._store, None, None
            with suppress(Exception):
                async with asyncio.timeout(self.timeout + 5):
                    await store.close()

    @property
    def fails_searches_alone(self) -> bool:
        """Whether it takes what is written nevertheless; nothing works of one that is not open."""
        other = self.breaker.error or self._unanswered
        return other is None and self.search_breaker.error is not None and self._store is not None

    def state(self) -> dict[str, Any]:
        error = self.breaker.error or self._unanswered
        if error is None and self.search_breaker.error is not None:
            said = self.search_breaker.error
            error = f"{SEARCHES_FAIL}: {said}" if self.fails_searches_alone else said
        if self._store is None and self._opening is not None and not self._opening.done():
            status = "starting"
        else:
            status = "down" if self.breaker.is_open or self._is_down else "degraded" if error else "ok"
            error = error or (SAYS_DOWN if self._is_down else None)
        return {"status": status, **({"error": error} if error else {})}


class StoreRefused(Unavailable):
    """The store is there and would not: what it was given, or its own state, is the reason."""


class StoreUnreachable(Unavailable):
    """Nobody answered in time, or it could not be opened: what it was given is not the reason."""


class StoreTimeout(StoreUnreachable):
    """It is open, and what it was asked took it too long."""


class StoreSkipped(Unavailable):
    """It was not even asked."""


def read_capabilities(store: Store) -> frozenset[str]:
    """A product's own code: it may fail, or give anything. Read when a store is opened, and not in the middle of an
    operation that is committed; taken for none, they would have what it holds deleted."""
    why = "they are not a set of texts"
    try:
        given: Any = store.capabilities
        found = [*given]  # once: it may be a generator
        if not isinstance(given, str) and all(isinstance(each, str) for each in found):
            return frozenset(found)
    except Exception as error:
        why = type(error).__name__
    raise Unavailable(f"its capabilities cannot be read: {why}")


async def delete_copies(store: Store, tenant: str, owners: Mapping[str, str]) -> None:
    """Copies of the memories with these ids, each with its agent, which some stores have to be told."""
    if isinstance(store, PerAgentStore):
        for agent in dict.fromkeys(owners.values()):
            await store.delete_of(tenant, agent, [id for id, owner in owners.items() if owner == agent])
    elif owners:
        await store.delete(tenant, list(owners))


class Replicas:
    """All of them, in the order they were given."""

    def __init__(self, attachments: Sequence[Attachment], clock: Clock) -> None:
        self._all = [Replica(attachment, clock) for attachment in attachments]

    def __bool__(self) -> bool:
        return bool(self._all)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._all)

    def named(self, name: str) -> Replica | None:
        return next((replica for replica in self._all if replica.name == name), None)

    async def ready(self, seconds: float) -> None:
        await asyncio.gather(*(replica.ready(seconds) for replica in self._all))

    async def probe(self) -> None:
        await asyncio.gather(*(replica.probe() for replica in self._all))

    async def close(self) -> None:
        await asyncio.gather(*(replica.close() for replica in self._all))
