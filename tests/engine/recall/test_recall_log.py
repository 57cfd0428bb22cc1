"""The recall log: counters and audit entries written behind the answer, in time, and without the question itself."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.palaces import palace_recall
from commonplace.engine.peers.asking import PeerQuery
from commonplace.engine.recall import recall as recalling, recall_log
from commonplace.engine.recall.recall_log import RecallEntry, RecallLog
from commonplace.engine.types import Expire, Query
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import START, WHO, FakeClock, Subject
from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

QUESTION = "what does Alice play?"


def entry(ids: list[str], **fields: Any) -> RecallEntry:
    return RecallEntry(**{"who": WHO, "agent_id": "agent", "query": QUESTION, "ids": ids, "at": START, **fields})


def recalls(subject: Subject, run: Any, who: Principal = WHO) -> list[dict[str, Any]]:
    """What the audit says of recalls, read from the store: the ledger itself would write them first."""
    found = run(subject.store.audit(who.tenant, operation="recall"))
    return [json.loads(e.parts[0].payload) for e in found]


def test_a_recall_is_counted_and_told_without_its_question(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Alice plays the violin"))
    subject.clock.advance(5)
    run(subject.recall(QUESTION))
    assert subject.engine.queues()["recalls"] == 1
    assert recalls(subject, run) == []
    run(subject.engine.flush())
    (told,) = recalls(subject, run)
    salt = bytes.fromhex(told["salt"])
    assert told == {"query_hash": sha256_hex(salt, QUESTION.encode()), "salt": told["salt"], "results": 1, "ids": [id]}
    memory = run(subject.get(id))
    assert (memory.recalls, memory.last_recalled_at, memory.version) == (1, subject.clock(), 1)
    assert QUESTION not in repr(run(subject.store.audit("local")))
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None


async def _ask_as_a_peer(engine: Engine, **query: Any) -> Any:
    requester = await engine.peers.requester(WHO, authenticated=True, agent="agent", claimed="agent", proved=None)
    return await engine.peers.ask(requester, PeerQuery((), QUESTION, **query), limit=5, show=5)


#: Every protocol asks by one of these: memorywire, OpenWOP and the page; AMP; trusty; MRP.
WAYS: dict[str, Any] = {
    "recall": lambda engine: engine.recall(WHO, Query(("agent",), QUESTION)),
    "search": lambda engine: engine.search(WHO, Query(("agent",), QUESTION), limit=5),
    "palace": lambda engine: engine.palaces.recall(WHO, "agent", QUESTION, 5),
    "deep palace": lambda engine: engine.palaces.recall(WHO, "agent", QUESTION, 5, deep=True),
    "peer": _ask_as_a_peer,
    "peer by keywords": lambda engine: _ask_as_a_peer(engine, keywords=("Alice",)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_ask_is_told_and_counted(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember("what Alice does play is the violin"))
    run(WAYS[way](subject.engine))
    run(subject.engine.flush())
    (told,) = recalls(subject, run)
    assert (told["results"], told["ids"]) == (1, [id])
    assert run(subject.get(id)).recalls == 1


def test_the_same_question_hashes_differently_each_time(subject: Subject, run: Any) -> None:
    for _ in range(2):
        run(subject.recall(QUESTION))
    run(subject.engine.flush())
    one, other = recalls(subject, run)
    assert one["query_hash"] != other["query_hash"]


def test_what_is_read_within_a_run_is_told_and_counts_for_nothing(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x"))
    log = RecallLog(subject.engine._core)
    run(log.note(entry([id], counted=False)))
    run(log.flush())
    assert [told["ids"] for told in recalls(subject, run)] == [[id]]
    assert run(subject.get(id)).recalls == 0


def test_of_many_hits_twenty_are_named_and_all_are_counted(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(f"fact {i}")) for i in range(25)]
    log = RecallLog(subject.engine._core)
    run(log.note(entry(ids)))
    run(log.flush())
    (told,) = recalls(subject, run)
    assert (told["results"], told["ids"]) == (25, ids[:20])
    assert {memory.recalls for memory in run(subject.list())} == {1}


def test_each_tenant_has_its_own_entries(subject: Subject, run: Any) -> None:
    other = Principal("eve", "acme")
    log = RecallLog(subject.engine._core)
    for who in (WHO, other, WHO):
        run(log.note(entry([], who=who)))
    assert len(log) == 3
    run(log.flush())
    assert (len(log), len(recalls(subject, run)), len(recalls(subject, run, other))) == (0, 2, 1)


def test_surrogates_in_a_question_are_hashed_too(subject: Subject, run: Any) -> None:
    log = RecallLog(subject.engine._core)
    run(log.note(entry([], query="half \ud800")))
    run(log.flush())
    assert len(recalls(subject, run)) == 1


def test_it_is_written_after_a_while_by_itself(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_log, "DELAY_SECONDS", 0)

    async def recall_and_wait() -> None:
        await subject.recall(QUESTION)
        while not await subject.store.audit("local", operation="recall"):
            await asyncio.sleep(0)

    run(recall_and_wait())
    assert subject.engine.queues()["recalls"] == 0


def test_too_many_to_hold_back_are_written_at_once(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_log, "_MAX_WAITING", 3)
    for waiting in (1, 2, 0, 1):
        run(subject.recall(QUESTION))
        assert subject.engine.queues()["recalls"] == waiting
    assert len(recalls(subject, run)) == 3


def test_where_tokens_are_required_it_is_written_before_the_answer(clock: FakeClock) -> None:
    async def scenario() -> None:
        store = InMemory(clock)
        engine = await Engine.open(store, HashingEmbedder(), clock=clock, settings=Settings(recalls_at_once=True))
        await engine.recall(WHO, Query(("agent",), QUESTION))
        assert len(await store.audit("local", operation="recall")) == 1
        for at_once, written in ((False, 1), (True, 3)):  # as tokens come and go while a server runs
            engine.log_recalls_at_once(at_once)
            await engine.recall(WHO, Query(("agent",), QUESTION))
            assert len(await store.audit("local", operation="recall")) == written
        await engine.close()

    asyncio.run(scenario())


def test_a_store_that_fails_delays_the_count_and_not_the_answer(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> None:
        raise Unavailable("the disk is full")

    run(subject.recall(QUESTION))
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "commonplace.engine"):
        patched.setattr(subject.store, "transact", fail)
        run(subject.engine.flush())
    assert caplog.messages == ["1 recalls are not in the ledger yet: the disk is full"]
    assert recalls(subject, run) == []
    run(subject.recall("another question"))
    run(subject.engine.flush())
    assert len(recalls(subject, run)) == 2


class FailingStore(InMemory):
    """Reads as ever; writes fail as long as it is told so."""

    failing: Exception | None = None

    async def transact(self, tenant: str, work: Any) -> Any:
        if self.failing is not None and tenant == "local":
            raise self.failing
        return await super().transact(tenant, work)


@pytest.mark.parametrize("failing", [Unavailable("the disk is full"), RuntimeError("a bug")])
def test_no_entry_of_a_recall_is_dropped_because_writing_it_failed(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, failing: Exception
) -> None:
    """Tried again by itself until it is written, however many wait, and told in the status meanwhile."""
    monkeypatch.setattr(recall_log, "DELAY_SECONDS", 0)
    monkeypatch.setattr(recall_log, "_MAX_WAITING", 20)

    async def scenario() -> None:
        store = FailingStore(clock)
        engine = await Engine.open(store, clock=clock)
        store.failing = failing
        for _ in range(25):
            await engine.recall(WHO, Query(("agent",), QUESTION))
        await engine.recall(Principal("eve", "acme"), Query(("agent",), QUESTION))
        while not (failure := (await engine.upkeep.status(WHO)).get("unwritten_recalls")) or failure["attempts"] < 3:
            await asyncio.sleep(0)
        assert (failure["waiting"], failure["failing_since"]) == (25, clock())
        assert str(failing) in failure["error"]
        shown = await engine.upkeep.status(Principal("alice", "local", role="reader"))
        assert shown["unwritten_recalls"]["error"] == "it failed", "where it is, and why, is for operators"
        assert "unwritten_recalls" not in await engine.upkeep.status(Principal("eve", "acme"))
        store.failing = None
        while len(engine._recall_log):
            await asyncio.sleep(0)
        await engine.flush()
        assert len(await store.audit("local", operation="recall", limit=9999)) == 25
        assert len(await store.audit("acme", operation="recall")) == 1
        assert "unwritten_recalls" not in await engine.upkeep.status(WHO)
        await engine.close()

    asyncio.run(scenario())


def test_what_cannot_be_recorded_is_no_longer_answered(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_log, "MAX_UNWRITTEN", 3)

    async def scenario() -> None:
        store = FailingStore(clock)
        engine = await Engine.open(store, clock=clock)
        store.failing = Unavailable("the disk is full")
        for _ in range(3):
            await engine.recall(WHO, Query(("agent",), QUESTION))
            await engine.flush()
        with pytest.raises(Unavailable, match="3 recalls wait to be written to the ledger, which fails: the disk is f"):
            await engine.recall(WHO, Query(("agent",), QUESTION))
        store.failing = None
        await engine.recall(WHO, Query(("agent",), QUESTION))
        await engine.close()
        assert len(await store.audit("local")) == 4

    asyncio.run(scenario())


def test_who_leaves_while_it_is_written_neither_loses_nor_doubles_it(clock: FakeClock) -> None:
    class SlowStore(InMemory):
        going = asyncio.Event()

        async def transact(self, tenant: str, work: Any) -> Any:
            await self.going.wait()
            return await super().transact(tenant, work)

    async def scenario() -> None:
        store = SlowStore(clock)
        engine = await Engine.open(store, clock=clock, settings=Settings(recalls_at_once=True))
        asked = asyncio.create_task(engine.recall(WHO, Query(("agent",), QUESTION)))
        while not engine._recall_log._writing:
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        store.going.set()
        await engine.close()
        assert len(await store.audit("local")) == 1

    asyncio.run(scenario())


def test_closing_writes_what_is_still_held_back(clock: FakeClock) -> None:
    class UnclosedStore(InMemory):
        async def close(self) -> None:
            """The test reads on."""

    async def scenario() -> None:
        store = UnclosedStore(clock)
        engine = await Engine.open(store, clock=clock)
        await engine.recall(WHO, Query(("agent",), QUESTION))
        await engine.close()
        assert len(await store.audit("local", operation="recall")) == 1

    asyncio.run(scenario())


def test_a_transaction_that_is_made_anyway_takes_its_tenants_recalls_along(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x"))
    log, other = RecallLog(subject.engine._core), Principal("eve", "acme")
    for who in (WHO, other):
        run(log.note(entry([id], who=who)))

    async def take_along() -> None:
        with log.flush_with("local") as write_recalls:
            assert [len(log.unwritten(tenant)) for tenant in ("local", "acme")] == [1, 1]
            await subject.store.transact("local", write_recalls)

    run(take_along())
    assert (len(log), log.unwritten("local"), len(log.unwritten("acme"))) == (1, [], 1)
    assert [told["ids"] for told in recalls(subject, run)] == [[id]]
    assert run(subject.get(id)).recalls == 1


def test_what_a_failed_transaction_took_along_waits_again(subject: Subject, run: Any) -> None:
    log = RecallLog(subject.engine._core)
    run(log.note(entry([])))

    def work(tx: Any, write_recalls: Any) -> None:
        write_recalls(tx)
        raise Unavailable("the disk is full")

    async def fail() -> None:
        with log.flush_with("local") as write_recalls:
            await subject.store.transact("local", lambda tx: work(tx, write_recalls))

    with pytest.raises(Unavailable):
        run(fail())
    assert (len(log), recalls(subject, run)) == (1, [])
    run(log.flush())
    assert len(recalls(subject, run)) == 1


def test_a_recall_that_is_being_written_is_still_known(subject: Subject, run: Any) -> None:
    log = RecallLog(subject.engine._core)
    seen: list[int] = []
    transact = subject.store.transact

    async def observed(tenant: str, work: Any) -> Any:
        seen.append(len(log.unwritten("local")))
        return await transact(tenant, work)

    subject.store.transact = observed  # type: ignore[method-assign]
    run(log.note(entry([])))
    run(log.flush())
    assert (seen, log.unwritten("local")) == ([1], [])


@pytest.mark.parametrize("way", WAYS)
def test_a_tail_that_is_only_shown_does_not_count_as_recalled(
    subject: Subject, run: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("Alice plays the violin", "Alice plays chess", "Alice plays")
    answer, edge, tail = (run(subject.remember(text)) for text in texts)
    least = palace_recall.ANSWERS if "palace" in way else recalling.ANSWERS
    relevance = {answer: 0.5, edge: least, tail: least - 0.01}
    found_by = recalling.recall

    async def calibrated(core: Any, who: Principal, query: Query) -> Any:
        result = await found_by(core, who, query)
        for hit in result.hits:
            hit.relevance = relevance[hit.memory.id]
        return result

    monkeypatch.setattr(recalling, "recall", calibrated)
    monkeypatch.setattr(palace_recall, "recall_memories", calibrated)
    subject.clock.advance(31 * DAY_MS)
    run(WAYS[way](subject.engine))
    stale = Expire("agent", no_recall_in_days=30, action="archive")
    assert [m.id for m in run(subject.engine.preview_expire(WHO, stale))] == [tail], "before it is written, too"
    run(subject.engine.flush())
    counts = {id: run(subject.get(id)).recalls for id in relevance}
    assert counts == {answer: 1, edge: 1, tail: 0}
    (told,) = recalls(subject, run)
    assert set(told["ids"]) == set(relevance), "what was shown is in the audit all the same"
    assert run(subject.engine.expire(WHO, stale)).ids == [tail]
