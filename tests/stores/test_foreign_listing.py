"""What a resync asks of another memory: its listing once before and once after, however many copies it has."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from replica_house import AGENT, house, run

from commonplace.dialects.memorywire import Memorywire
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.outbox import resync
from commonplace.sdk import Memory as OtherMemory
from commonplace.stores import cursors, foreign, mixins
from commonplace.stores.base import Entry, Page, Reach
from commonplace.stores.foreign import ForeignStore, ListPage
from commonplace.stores.foreign_copies import filter_of, to_metadata
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import Condition, parse
from commonplace.wire.models import RecallRequest, RecallResponse
from commonplace.wire.record import Memory

_PAGE = 5


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_MOST", _PAGE)
    monkeypatch.setattr(mixins, "SCANNED_AT_ONCE", _PAGE)


class Counted:
    """Another memory's listing, which counts how often it is asked, and may be kept from answering."""

    def __init__(self, theirs: OtherMemory) -> None:
        self._theirs = theirs
        self.pages = 0
        self.before_page: Callable[[int], Awaitable[None]] | None = None

    async def __call__(self, *, filter: dict[str, Any], **asked: Any) -> Mapping[str, Any]:
        if isinstance(filter.get("commonplace_id"), dict):  # every copy, and not those of certain memories
            self.pages += 1
            if self.before_page is not None:
                await self.before_page(self.pages)
        return await self._theirs.list(filter=filter, **asked)


async def _pages_of_a_resync(folder: Path, copies: int) -> int:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=folder, embedder="none", clock=clock)
    listing = Counted(theirs)
    async with house(clock=clock, stores=[ForeignStore(theirs, "peer", listing)]) as h:
        for n in range(copies):
            await h.remember(f"fact {n}")
        await h.settled()
        done = await h.engine.stores.resync(WHO, "peer")
        assert (done["equal"], done["copies"], done["sent"]) == (True, copies, 0)
    await theirs.close()
    return listing.pages


@run
async def test_a_listing_is_walked_once_before_and_once_after(tmp_path: Path) -> None:
    for pages in (2, 10):
        asked = await _pages_of_a_resync(tmp_path / f"{pages}", pages * _PAGE)
        assert asked <= 2 * (pages + 1) + 1  # the last page may be empty, and one tells whether it knows the agent


class CountedPeer(Memorywire):
    """A store that cannot be listed, and so is asked by recalls."""

    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "fts", "vector"})
    ranges = 0

    async def recall(self, request: RecallRequest) -> RecallResponse:
        self.ranges += isinstance((request.filter or {}).get("commonplace_id"), dict)
        return await super().recall(request)


@run
async def test_ranges_of_ids_are_asked_for_once() -> None:
    clock = FakeClock()
    engine = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    try:
        peer = CountedPeer(engine, WHO)
        store = ForeignStore(peer, "peer")
        asked: dict[int, int] = {}
        ids = [f"01977421-{n:04x}-7000-8000-000000000000" for n in range(8 * _PAGE)]
        for n, id in enumerate(ids, 1):
            await store.put([Entry(Memory(id, "local", AGENT, "semantic", f"fact {n}", created_at=n), None, b"")])
            before = peer.ranges
            if n in (2 * _PAGE, len(ids)):
                found = [memory.id async for page in store.copy_pages("local", AGENT) for memory in page]
                assert sorted(found) == ids[:n]
                asked[n] = peer.ranges - before
        assert asked[len(ids)] <= 4 * asked[2 * _PAGE]
    finally:
        await engine.close()


@run
async def test_copies_that_cannot_be_told_apart_by_ranges_are_refused_and_not_left_out() -> None:
    clock = FakeClock()
    engine = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    try:
        store = ForeignStore(CountedPeer(engine, WHO), "peer")
        for n in range(_PAGE):
            copy = Memory(f"01977421-0000-7000-8000-{n:012x}", "local", AGENT, "semantic", f"fact {n}", created_at=1)
            await store.put([Entry(copy, None, b"")])
        with pytest.raises(Unavailable, match="whose ids begin alike"):
            await store.scan(Reach("local", (AGENT,)))
    finally:
        await engine.close()


@run
async def test_each_page_has_a_time_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=tmp_path, embedder="none", clock=clock)
    listing = Counted(theirs)
    async with house(clock=clock, stores=[ForeignStore(theirs, "peer", listing)]) as h:
        for n in range(3 * _PAGE):
            await h.remember(f"fact {n}")
        await h.settled()
        replica = h.outbox.replicas.named("peer")
        attempt, running = replica.attempt, []

        async def counted(verb: Any, *, seconds: float | None = None) -> Any:
            running.append(listing.pages)
            return await attempt(verb, seconds=seconds)

        monkeypatch.setattr(replica, "attempt", counted)
        assert (await h.engine.stores.resync(WHO, "peer"))["equal"]
        assert {*range(listing.pages)} <= {*running}  # each was asked for by an attempt of its own


@run
async def test_one_that_falls_silent_in_the_middle_is_told_and_the_next_resync_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=tmp_path, embedder="none", clock=clock)
    listing = Counted(theirs)

    async def silent(page: int) -> None:
        if page == 3:
            await asyncio.Event().wait()

    async with house(clock=clock, stores=[ForeignStore(theirs, "peer", listing)]) as h:
        for n in range(3 * _PAGE):
            await h.remember(f"fact {n}")
        await h.settled()
        await theirs.remember("an invention", agent_id=AGENT, metadata=to_metadata((await h.live())[0]))
        listing.before_page = silent
        monkeypatch.setattr(resync, "TIMEOUT_SECONDS", 0.05)
        with pytest.raises(Unavailable, match=r"did not answer within 0\.05 s"):
            await h.engine.stores.resync(WHO, "peer")
        monkeypatch.undo()
        listing.before_page = None
        done = await h.engine.stores.resync(WHO, "peer")
        assert (done["equal"], done["copies"], done["sent"]) == (True, 3 * _PAGE, 1)
    await theirs.close()


def test_of_two_conditions_that_one_filter_cannot_say_both_are_compared() -> None:
    types = parse({"type": {"$in": ["semantic", "episodic"]}})
    said, is_all = filter_of(Reach("local", (AGENT,), types))
    assert is_all
    again, is_all = filter_of(Reach("local", (AGENT,), (*types, *parse({"type": {"$in": ["semantic", "procedural"]}}))))
    assert (again, is_all) == (said, False)
    assert filter_of(Reach("local", (AGENT,), (*types, *types))) == (said, True)


@pytest.mark.parametrize(("given", "is_all"), [(63, True), (64, False), (70, False)])
def test_no_more_is_asked_for_in_one_filter_than_a_filter_may_hold(given: int, is_all: bool) -> None:
    """It would be refused, and a store that refuses three questions in a row is asked none for a while."""
    where = tuple(Condition(("metadata", f"n{n}"), "exists", False) for n in range(given))
    said, is_said = filter_of(Reach("local", (AGENT,), where))
    assert (len(parse(said)), is_said) == (64, is_all)


@pytest.mark.parametrize("tokens", [["a", "a"], ["a", "b", "a"], [""], [7]])
@run
async def test_a_listing_that_never_ends_is_refused(tokens: list[Any]) -> None:
    asked = itertools.count()

    async def listing(**_: Any) -> Mapping[str, Any]:
        place = next(asked)
        assert place < 1100, "it goes on for ever"
        cursor = tokens[place % len(tokens)]
        return {"memories": [FOREIGN_ROW] if cursor else [], "next_cursor": cursor or f"fresh {place}"}

    async with listed_by(listing) as store:
        with pytest.raises(Unavailable, match="do not end"):
            async for _ in store.copy_pages("local", AGENT):
                pass


def test_pages_with_a_new_cursor_each_and_nothing_new_are_refused() -> None:
    progress = cursors.PageProgress()
    progress.check(["a", "b"], "1")
    progress.check(["b", "c"], "2")  # one that was written meanwhile has moved the others
    with pytest.raises(Unavailable, match="do not end"):
        progress.check(["c", "a"], "3")


@pytest.mark.parametrize("most", [None, 3 * _PAGE])
def test_what_is_remembered_of_a_listing_is_bounded(most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "_MOST_REMEMBERED", 2 * _PAGE)
    progress = cursors.PageProgress(most)
    with contextlib.nullcontext() if most is None else pytest.raises(Unavailable, match="more than 15 memories"):
        for page in range(20):
            progress.check([f"{page} {n}" for n in range(_PAGE)], f"{page}")
    assert max(len(progress._ids), len(progress._cursors)) <= 3 * _PAGE


@run
async def test_a_listing_of_ever_new_memories_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_MOST_LISTED", 100)
    pages = itertools.count()

    async def listing(**_: Any) -> Mapping[str, Any]:
        page = next(pages)
        assert page < 200, "it goes on for ever"
        return {"memories": [{**FOREIGN_ROW, "id": f"{page}"}], "next_cursor": f"{page}"}

    async with listed_by(listing) as store:
        with pytest.raises(Unavailable, match="more than 100 memories of one agent"):
            async for _ in store.copy_pages("local", AGENT):
                pass


@pytest.mark.parametrize("cursor", [lambda page: "same", lambda page: f"{page}", lambda page: 7])
@run
async def test_a_scan_that_never_ends_is_refused(cursor: Callable[[int], Any]) -> None:
    class Endless(InMemory):
        pages = 0

        async def scan(self, *_: Any, **__: Any) -> Page:
            self.pages += 1
            assert self.pages < 20, "it goes on for ever"
            return Page([Memory("0199-a", "local", AGENT, "semantic", "x", created_at=1)], cursor(self.pages))

    with pytest.raises(Unavailable, match="do not end"):
        await mixins.scan_all(Endless(FakeClock()), Reach("local", (AGENT,)))


@run
async def test_a_page_of_which_a_rule_withholds_all_is_not_the_last() -> None:
    pages = iter([([], "a"), ([], "b"), ([FOREIGN_ROW], None)])

    async def listing(**_: Any) -> Mapping[str, Any]:
        memories, cursor = next(pages)
        return {"memories": memories, "next_cursor": cursor}

    async with listed_by(listing) as store:
        assert len([page async for page in store.copy_pages("local", AGENT)]) == 3
    assert next(pages, None) is None


FOREIGN_ROW = {"id": "1", "agent_id": AGENT, "type": "semantic", "content": "x", "created_at": 1}


@contextlib.asynccontextmanager
async def listed_by(listing: ListPage) -> AsyncIterator[ForeignStore]:
    theirs = OtherMemory("theirs", stores=["memory://"], embedder="none", clock=FakeClock())
    yield ForeignStore(theirs, "peer", listing)
    await theirs.close()
