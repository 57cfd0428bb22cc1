"""Another memory as a replica: what it answers is what it has done."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from replica_house import AGENT, house, run

from commonplace.dialects.memorywire import Memorywire
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Attachment, Draft, Engine, Forget, Query, Update
from commonplace.engine_factory import attachments
from commonplace.sdk import Memory as OtherMemory
from commonplace.stores.base import Entry, Reach, Search, StoreSettings
from commonplace.stores.documents import on_copied_fields
from commonplace.stores.foreign import ForeignStore, listing_of
from commonplace.stores.foreign_copies import to_metadata
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import Condition, any_of, parse
from commonplace.wire.models import ForgetRequest, ForgetResponse, RecallRequest, RecallResponse
from commonplace.wire.record import Memory

MEMORY = Memory("0199-a", "local", AGENT, "semantic", "Alice's diagnosis", created_at=1)
CAREFUL = {"name": "careful", "action": "review", "when": {"operation": ["forget"]}}


class Peer(Memorywire):
    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "fts", "vector"})


@asynccontextmanager
async def careful_peer(clock: FakeClock) -> AsyncIterator[Engine]:
    """Where whatever is to be forgotten waits for a reviewer."""
    engine = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    try:
        await engine.policies.replace(WHO, [CAREFUL])
        yield engine
    finally:
        await engine.close()


async def _contents(engine: Engine) -> list[str]:
    return sorted(memory.content for memory in (await engine.list(WHO, (AGENT,))).memories)


@run
async def test_an_erasure_that_waits_for_approval_there_stays_in_the_outbox() -> None:
    clock = FakeClock()
    async with careful_peer(clock) as remote, house(clock=clock, stores=[ForeignStore(Peer(remote, WHO), "peer")]) as h:
        id = await h.remember("Alice's diagnosis")
        with h.engine.reporting() as report:
            await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.outbox.join()
        assert "approval" in str(report.outcomes[id]["peer"])
        assert (await h.waiting())[id]["attempts"] == 1
        assert await _contents(remote) == ["Alice's diagnosis"]
        await remote.policies.replace(WHO, [])
        clock.advance(60_000)
        await h.outbox.run_due()
        assert await _contents(remote) == []
        assert await h.waiting() == {}


class Quoting(Peer):
    """Somebody else's class, which says with our own faults what it could not do."""

    async def remember(self, request: object, /) -> NoReturn:
        raise Unavailable(f"cannot embed {request!r}")

    def recall(self, request: object, /) -> NoReturn:  # and not even asynchronously
        raise Unavailable(f"cannot search {request!r}")


@run
async def test_what_a_class_of_others_says_of_a_memory_is_neither_told_nor_kept() -> None:
    clock = FakeClock()
    async with careful_peer(clock) as remote:
        store = ForeignStore(Quoting(remote, WHO), "peer")
        async with house(clock=clock, stores=[store]) as h:
            with h.engine.reporting() as report:
                id = await h.remember("Alice's diagnosis")
            found = await h.engine.recall(WHO, Query((AGENT,), "the diagnosis of Alice"))
            await h.settled()
            assert report.outcomes[id]["peer"] == "it failed: unavailable; it is kept and tried again"
            assert found.errors == {"peer": "it failed: unavailable"}
            assert "diagnosis" not in str(await h.waiting())


@run
async def test_a_copy_that_cannot_be_replaced_is_not_added_again_with_each_attempt() -> None:
    clock = FakeClock()
    async with careful_peer(clock) as remote:
        store = ForeignStore(Peer(remote, WHO), "peer")
        newer = replace(MEMORY, content="Alice is well", version=2)
        await store.put([Entry(MEMORY, None, b"")])
        for _ in range(3):
            with pytest.raises(Unavailable, match="approval"):
                await store.put([Entry(newer, None, b"")])
        assert await _contents(remote) == ["Alice is well", "Alice's diagnosis"]


class Asked(Peer):
    """It keeps what it is asked."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, WHO)
        self.filters: list[Any] = []

    async def recall(self, request: RecallRequest, /) -> RecallResponse:
        self.filters.append(request.filter)
        return await super().recall(request)


@run
async def test_the_documentation_shows_how_whoever_and_whatever_type_is_asked_for() -> None:
    """Its author has nothing else to know it by: a store that reads other keys finds nothing."""
    clock = FakeClock()
    async with careful_peer(clock) as remote:
        theirs = Asked(remote)
        async with house(clock=clock, stores=[ForeignStore(theirs, "peer")]) as h:
            wanted = RecallRequest(agent_id=AGENT, query="bees", user_id="alice", types=["semantic", "episodic"])
            assert (await Memorywire(h.engine, WHO).recall(wanted)).errors is None
    page = (Path(__file__).parents[2] / "docs" / "stores.md").read_text("utf-8")
    assert [json.dumps(each) in page for each in theirs.filters] == [True], theirs.filters


class ByWords(Peer):
    """It recalls by words alone, whatever the filter says: nothing is found by our id."""

    async def recall(self, request: RecallRequest) -> RecallResponse:
        answer = await super().recall(request)
        words = set(request.query.lower().split())
        shared = [hit for hit in answer.results if words & set(hit.content.lower().split())]
        return answer.model_copy(update={"results": shared})


@run
async def test_a_store_that_could_not_be_told_to_forget_gets_no_copy() -> None:
    remote = await Engine.open(InMemory(FakeClock()), None)
    store = ForeignStore(ByWords(remote, WHO), "peer")
    with pytest.raises(Unavailable, match="could never be deleted"):
        await store.put([Entry(MEMORY, None, b"")])
    assert await _contents(remote) == []
    await remote.close()


class CountsRecalls(Peer):
    recalls = 0

    async def recall(self, request: RecallRequest) -> RecallResponse:
        self.recalls += 1
        return await super().recall(request)


@run
async def test_whether_copies_are_found_by_our_id_is_tried_with_the_first_alone() -> None:
    remote = await Engine.open(InMemory(FakeClock()), HashingEmbedder())
    peer = CountsRecalls(remote, WHO)
    store = ForeignStore(peer, "peer")
    asked = []
    for n in range(3):
        before = peer.recalls
        await store.put([Entry(replace(MEMORY, id=f"0199-{n}"), None, b"")])
        asked.append(peer.recalls - before)
    assert asked == [2, 1, 1]
    await remote.close()


@run
async def test_what_has_become_the_copied_store_itself_gets_no_copies_any_more(tmp_path: Path) -> None:
    """As where another server answers at the address of a replica that was well until then."""
    theirs, ours = (OtherMemory(name, data=tmp_path / name, embedder="none") for name in ("theirs", "ours"))
    store = ForeignStore(theirs, "peer", listing_of(theirs))
    primary = (await ours.engine())._core.primary
    for text, answering in (("one", theirs), ("two", ours)):
        store._store, store._list_page = answering, listing_of(answering)
        (memory,) = await primary.get("local", [(await ours.remember(text)).id])
        if answering is theirs:
            await store.put([Entry(memory, None, b"")])
        else:
            with pytest.raises(Unavailable, match="a store cannot have copies of its own"):
                await store.put([Entry(memory, None, b"")])
    assert sorted(m["content"] for m in (await ours.list())["memories"]) == ["one", "two"]
    await theirs.close()
    await ours.close()


@run
async def test_copies_of_a_keyword_only_memory_are_replaced_and_erased_by_id(tmp_path: Path) -> None:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=tmp_path, embedder="none", clock=clock)
    (attached,) = attachments("memory", [], [], [theirs], clock, StoreSettings())
    async with house(clock=clock, stores=[attached.open()]) as h:
        id = await h.remember("Alice's diagnosis")
        await h.engine.update(WHO, Update(AGENT, id, content="Alice is well"))
        assert [m["content"] for m in (await theirs.list(agent_id=AGENT))["memories"]] == ["Alice is well"]
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        assert (await theirs.list(agent_id=AGENT))["memories"] == []
        await h.settled()
        assert await h.waiting() == {}
    await theirs.close()


@run
async def test_what_came_as_a_copy_is_not_passed_on_and_missed_by_nobody(tmp_path: Path) -> None:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=tmp_path, embedder="none", clock=clock)
    (attached,) = attachments("memory", [], [], [theirs], clock, StoreSettings())
    async with house(clock=clock, stores=[attached.open()]) as h:
        with h.engine.reporting() as report:
            own = await h.remember("our own words")
            copy = await h.remember("another server's words", metadata=to_metadata(MEMORY))
        assert report.outcomes[own][attached.name] is None
        assert "not passed on" in str(report.outcomes[copy][attached.name])
        assert [m["content"] for m in (await theirs.list(agent_id=AGENT))["memories"]] == ["our own words"]
        await h.outbox.join()
        assert await h.waiting() == {}
        done = await h.engine.stores.resync(WHO, attached.name)
        assert (done["equal"], done["memories"], done["sent"]) == (True, 1, 0)
    await theirs.close()


class AskedPeer(Peer):
    """One that is told later whose it is, and remembers what it was asked."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def open(self, engine: Engine) -> None:
        super().__init__(engine, WHO)

    async def recall(self, request: RecallRequest) -> RecallResponse:
        self.questions.append(request.query)
        return await super().recall(request)


@run
async def test_a_question_to_one_of_two_that_copy_each_other_goes_to_the_other_once() -> None:
    clock = FakeClock()
    to_one, to_two = AskedPeer(), AskedPeer()

    async def opened(name: str, other: AskedPeer) -> Engine:
        attached = Attachment(name, lambda: ForeignStore(other, name), 5.0)
        return await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock, replicas=[attached])

    one, two = await opened("two", to_two), await opened("one", to_one)
    to_one.open(one)
    to_two.open(two)
    try:
        for engine, said in ((one, "Alice drinks tea"), (two, "Bob drinks coffee")):
            await engine.stores.wait_until_open(5)
            await engine.remember(WHO, Draft(AGENT, "semantic", said))
            await engine._core.outbox.join()
        to_one.questions.clear()
        to_two.questions.clear()
        found = await one.recall(WHO, Query((AGENT,), "who drinks what?", min_score=0.0))
        assert {hit.memory.content for hit in found.hits} == {"Alice drinks tea", "Bob drinks coffee"}
        assert (found.stores_queried, found.errors) == (["memory", "two"], {})
        assert (to_two.questions, to_one.questions) == (["who drinks what?"], [])
    finally:
        await one.close()
        await two.close()


class Slow(Peer):
    """It gets as far as it gets, and says what it leaves."""

    async def forget(self, request: ForgetRequest) -> ForgetResponse:
        return ForgetResponse(forgotten_ids=[], stores=[], hard_delete=True, remaining_ids=list(request.ids or ()))


@run
async def test_what_it_has_not_forgotten_yet_is_not_gone() -> None:
    remote = await Engine.open(InMemory(FakeClock()), HashingEmbedder())
    store = ForeignStore(Slow(remote, WHO), "peer")
    await store.put([Entry(MEMORY, None, b"")])
    with pytest.raises(Unavailable, match="1 of what it was to forget is left"):
        await store.delete_of("local", AGENT, [MEMORY.id])
    await remote.close()


@run
async def test_what_several_agents_have_is_one_list_and_none_stands_before_all_others() -> None:
    clock = FakeClock()
    engine = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    try:
        store = ForeignStore(Peer(engine, WHO), "peer")
        agents = ("a", "b")
        for agent in agents:
            for n in range(6):
                memory = replace(MEMORY, id=f"0199-{agent}{n}", agent_id=agent, content=f"tea number {n}")
                await store.put([Entry(memory, None, b"")])
        found = await store.search(Search(Reach("local", agents), "tea number", limit=6))
        assert len(found) == 6
        assert {candidate.memory.agent_id for candidate in found} == set(agents)
    finally:
        await engine.close()


@run
async def test_a_quorum_counts_copies_whatever_the_filter_says_of_what_no_copy_has(tmp_path: Path) -> None:
    clock = FakeClock()
    theirs = OtherMemory("theirs", data=tmp_path, embedder="hashing", clock=clock)
    (attached,) = attachments("memory", [], [], [theirs], clock, StoreSettings())
    async with house(clock=clock, stores=[attached.open()]) as h:
        id = await h.remember("the harbour opens at nine")
        await h.remember("the harbour closes at ten")
        await h.primary.transact("local", lambda tx: tx.count_recalls([id], clock()))
        for filter in (
            {"content": {"$contains": "nine"}},
            {"recalls": {"$gte": 1}},
            {"last_recalled_at": {"$exists": True}},
            {"recalls": {"$gte": 1}, "demotion": {"$gt": 0.5}, "type": "semantic"},
            {"content": {"$contains": "nine"}, "tags": {"$exists": False}, "supersedes": {"$exists": False}},
            {"content": {"$contains": "nine"}, "commonplace_id": {"$exists": False}},
        ):
            asked = Query((AGENT,), "when does the harbour open", 5, parse(filter), quorum=2, min_score=0)
            found = await h.engine.recall(WHO, asked)
            assert [hit.memory.id for hit in found.hits] == [id], filter
    await theirs.close()


def test_what_is_asked_of_it_leaves_out_what_no_copy_has() -> None:
    either = any_of(Condition(("recalls",), "gt", 1), Condition(("type",), "eq", "semantic"))
    where = (*parse({"recalls": 1, "demotion": 1, "last_recalled_at": 5, "type": "semantic"}), either)
    assert on_copied_fields(where) == parse({"type": "semantic"})


class Mistaken(Peer):
    """One of its operations gives something else than the protocol has."""

    name, mistaken, given = "mistaken", "", None

    async def remember(self, request: Any, /) -> Any:
        answer = await super().remember(request)
        return self.given if self.mistaken == "remember" else answer

    async def recall(self, request: Any, /) -> Any:
        answer = await super().recall(request)
        return self.given if self.mistaken == "recall" else answer

    async def forget(self, request: Any, /) -> Any:
        answer = await super().forget(request)
        return self.given if self.mistaken == "forget" else answer


@pytest.mark.parametrize(("given", "kind"), [({"results": "Alice"}, "an object of the class dict"), (None, "None")])
@pytest.mark.parametrize("operation", ["remember", "recall", "forget"])
@run
async def test_what_an_operation_must_return_is_said_and_nothing_of_what_it_returned(
    operation: str, given: Any, kind: str
) -> None:
    clock = FakeClock()
    remote = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    peer = Mistaken(remote, WHO)
    async with house(clock=clock, stores=[ForeignStore(peer, "peer")]) as h:
        if operation == "forget":
            id = await h.remember("Alice's diagnosis")
            await h.outbox.join()
        peer.mistaken, peer.given = operation, given
        with h.engine.reporting() as report:
            if operation == "forget":
                await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
            else:
                id = await h.remember("Alice's diagnosis")
        wanted = f"commonplace.wire.{operation.title()}Response"
        assert f"its {operation} returned {kind}; a MemoryStore answers with {wanted}" in str(report.outcomes[id])
        assert "Alice" not in str(report.outcomes[id])
    await remote.close()


@run
async def test_an_operation_that_is_not_async_is_named() -> None:
    class Plain(Peer):
        def recall(self, request: Any, /) -> Any:  # type: ignore[override]
            return {"results": []}

    clock = FakeClock()
    remote = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    async with house(clock=clock, stores=[ForeignStore(Plain(remote, WHO), "peer")]) as h:
        with h.engine.reporting() as report:
            id = await h.remember("Alice's diagnosis")
        assert "its recall is not async: it returned an object of the class dict" in str(report.outcomes[id])
    await remote.close()
