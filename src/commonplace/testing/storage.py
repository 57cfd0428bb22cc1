"""What is kept and what is not: versions, order, aliases, erasure, and many writers at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.ledger import audit
from commonplace.engine.types import Draft, Query
from commonplace.stores.base import AuditPart, Entry, Reach, Record, Search, Transaction
from commonplace.stores.graph import Triple
from commonplace.stores.text import terms
from commonplace.testing.subject import DAY_MS, WHO, Contract, FakeClock, Subject, scenario
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory, Principal


class StorageScenarios(Contract):
    @scenario()
    async def test_the_verbs_of_a_store(self, s: Subject) -> None:
        """What replicas are asked: put, get, search, scan, delete."""
        texts = ("rivers and lakes", "mountains", "deserts")
        vectors = HashingEmbedder().embed(texts)
        now = s.clock()
        made = [Memory(mint_id(now), "t", "a", "semantic", text, created_at=now + i) for i, text in enumerate(texts)]
        info = await s.store.embedder()
        assert info is not None
        entries = [Entry(m, vectors[i : i + 1], terms(m.content), info.generation) for i, m in enumerate(made)]
        await s.store.put(entries)
        ids = [m.id for m in made]
        assert [m.id for m in await s.store.get("t", [ids[2], "nobody", ids[0]])] == [ids[2], ids[0]]
        assert await s.store.get("u", ids) == []
        reach = Reach("t", ("a",))
        (best,) = await s.store.search(Search(reach, "lakes", vectors[0], limit=1))
        assert best.memory.id == ids[0]
        assert best.dense == pytest.approx(1.0, abs=1e-4)
        assert best.keyword is not None
        assert best.keyword > 0
        assert [m.id for m in (await s.store.scan(reach, newest_first=False)).memories] == ids
        await s.store.put([replace(entries[0], memory=replace(made[0], content="a canal"), terms=terms("a canal"))])
        assert [m.content for m in await s.store.get("t", ids[:1])] == ["a canal"]
        assert len((await s.store.scan(reach)).memories) == 3
        assert await s.store.delete("t", [ids[0], "nobody"]) == 1
        assert await s.store.get("t", ids[:1]) == await s.store.history("t", ids[0]) == []
        assert {c.memory.id for c in await s.store.search(Search(reach, "canal lakes", vectors[0]))} == set(ids[1:])
        assert await s.store.agents("t") == {"a": 2}
        assert await s.store.agent_names("t") == ["a"]

    @scenario()
    async def test_two_hundred_writers_at_once(self, s: Subject) -> None:
        """Each row has its own words and its own vector: asking with its text finds it first, and so does its vector
        alone."""
        texts = [f"entry {i:03} {mint_id(i)[-12:]} on the {'odd' if i % 2 else 'even'} side" for i in range(200)]
        ids = await asyncio.gather(*(s.remember(text, metadata={"i": i}) for i, text in enumerate(texts)))
        assert len(set(ids)) == 200
        vectors = HashingEmbedder().embed(texts)
        for i, (id, text) in enumerate(zip(ids, texts, strict=True)):
            memory = await s.get(id)
            assert (memory.content, memory.metadata) == (text, {"i": i})
            if i % 8:  # what was mixed up between writers shows in some
                continue
            assert (await s.recall(text, k=1))[0].id == id
            (nearest,) = await s.store.search(Search(Reach("local", ("agent",)), None, vectors[i], limit=1))
            assert nearest.memory.id == id
            assert nearest.dense == pytest.approx(1.0, abs=1e-3)
        assert sorted([(await s.get(id)).seq for id in ids]) == list(range(1, 201))

    @scenario()
    async def test_any_past_instant_can_be_read(self, s: Subject) -> None:
        instants: list[tuple[int, dict[str, str]]] = []
        a = await s.remember("the first draft of the poem")
        steps: list[Any] = [
            lambda: s.update(a, content="the second draft of the poem"),
            lambda: s.remember("the poem was printed"),
            lambda: s.expire("archive", older_than_days=1),
            lambda: s.forget(a),
        ]
        for step in [None, *steps]:
            if step is not None:
                await step()
            instants.append((s.clock(), {m.id: m.content for m in await s.list(archived=False)}))
            s.clock.advance(DAY_MS)
        before = instants[0][0] - 1
        assert await s.list(as_of=before) == await s.recall("poem", as_of=before) == []
        for at, then in instants:
            assert {m.id: m.content for m in await s.list(as_of=at, archived=False)} == then
            assert {m.id: m.content for m in await s.recall("poem draft", k=10, as_of=at)} == then
            for id, content in then.items():
                assert (await s.get(id, as_of=at)).content == content
        await s.forget(a, hard_delete=True)
        assert [await s.recall("draft", as_of=at, filter={"id": a}) for at, _ in instants] == [[]] * len(instants)

    @scenario()
    async def test_every_change_is_a_version(self, s: Subject) -> None:
        id = await s.remember("one", tags=["x"])
        s.clock.advance(10)
        await s.update(id, content="two", confidence=0.5)
        s.clock.advance(10)
        await s.update(id, tags=[])
        history = await s.engine.history(WHO, "agent", id)
        versions = [(v.version, v.content, v.tags, v.confidence) for v in history]
        assert versions == [(1, "one", ["x"], 1.0), (2, "two", ["x"], 0.5), (3, "two", [], 0.5)]
        assert [v.updated_at - history[0].created_at for v in history] == [0, 10, 20]
        assert len({v.created_at for v in history}) == 1
        with pytest.raises(Conflict):
            await s.engine.update_with(WHO, "agent", id, lambda m: replace(m, content="three"), expected_version=2)
        assert (await s.recall("two"))[0].version == 3
        assert [m.id for m in await s.recall("one")] == [id]

    @scenario()
    async def test_sequence_grows_with_each_commit_and_time_never_goes_back(self, s: Subject) -> None:
        seqs, times = [], []
        for step in (5, 5, -10_000, 5, 0, -1, 20_000):
            s.clock.advance(step)
            memory = await s.get(await s.remember(f"after {step}"))
            seqs.append(memory.seq)
            times.append(memory.created_at)
            assert await s.store.sequence("local") == memory.seq
            assert await s.store.sequence("local", memory.created_at) == memory.seq
        assert seqs == sorted(set(seqs))
        assert times == sorted(times)
        entries = await s.store.audit("local")
        assert [e.at for e in entries] == sorted(e.at for e in entries)
        assert [e.n for e in entries] == list(range(1, len(entries) + 1))
        assert await s.store.sequence("local", times[0] - 1) == 0

    @scenario()
    async def test_an_alias_names_one_memory_of_an_agent(self, s: Subject) -> None:
        first = await s.remember("first", aliases=["note-1", "extra"])
        assert (await s.get("note-1")).id == (await s.get("extra")).id == first
        with pytest.raises(Conflict):
            await s.remember("second", aliases=["note-1"])
        assert len(await s.list()) == 1
        elsewhere = await s.remember("elsewhere", "neighbour", aliases=["note-1"])
        assert (await s.get("note-1", "neighbour")).id == elsewhere
        await s.forget("note-1")
        assert await s.gone("note-1")
        again = await s.remember("again", aliases=["note-1"])
        assert (await s.get("note-1")).id == again
        assert not await s.gone("note-1", "neighbour")
        await s.forget(again, hard_delete=True)
        await s.remember("once more", aliases=["note-1"])

    @scenario()
    async def test_an_alias_may_look_like_an_id(self, s: Subject) -> None:
        alias = mint_id(s.clock())
        first = await s.remember("named by its author", aliases=[alias])
        second = await s.remember("another")
        assert (await s.get(alias)).id == (await s.get(alias, as_of=s.clock())).id == first
        assert (await s.merge(alias, second)).survivor.id == first
        assert (await s.forget(alias)).ids == [first]
        assert await s.gone(alias)

    @scenario()
    async def test_erasing_leaves_nothing(self, s: Subject) -> None:
        """Not in memories, versions, aliases, reviews, idempotency records or audit payloads."""
        mark = "xyzzy-4711"
        s.clock.advance(10)
        draft = Draft("agent", "semantic", f"{mark} one", aliases=[f"{mark}-alias"], metadata={"k": mark}, tags=[mark])
        staged = await s.engine.remember(
            WHO, draft, idempotency_key="key", approval={"content": mark}, reasoning=f"because {mark}"
        )
        assert staged.review_id is not None
        await s.engine.reviews.decide(WHO, staged.review_id, Decision(True, "Alice"))
        await s.update(staged.id, content=f"{mark} two")
        at = s.clock()
        await s.forget(staged.id, approval_required=True, reasoning=mark)
        assert s.engine._core.embedding is not None
        assert len(s.engine._core.embedding) > 0
        await s.recall(mark)
        await s.engine.flush()
        s.clock.advance(10)
        assert (await s.forget(staged.id, hard_delete=True)).ids == [staged.id]
        assert len(s.engine._core.embedding) == 0
        assert await s.gone(staged.id)
        assert await s.gone(f"{mark}-alias")
        assert await s.recall(mark) == await s.recall(mark, as_of=at) == []
        assert await s.list() == await s.list(as_of=at) == await s.store.history("local", staged.id) == []
        kept = [await s.store.records("local", kind) for kind in ("review", "idempotency")]
        assert len(kept[0]) == 2
        assert mark not in repr(kept)
        assert mark not in repr(await s.store.audit("local", limit=1000))
        assert mark not in repr(await s.engine.reviews.list(WHO, None))
        assert (await s.engine.ledger.verify(WHO)).first_bad is None
        with pytest.raises(Conflict):
            await s.engine.remember(WHO, draft, idempotency_key="key")

    @scenario()
    async def test_what_one_tenant_erases_stays_in_the_ledger_of_another(self, s: Subject) -> None:
        """Whatever the id: that of a memory, of a statement, or of nothing that is there."""
        id = mint_id(s.clock())
        for tenant in ("a", "b"):
            part = audit.part(id, {"of": tenant})
            await s.store.transact(tenant, lambda tx, part=part: audit.append(tx, WHO, "remember", "agent", [part]))  # type: ignore[misc]

        async def of_b() -> list[AuditPart]:
            return [part for entry in await s.store.audit("b") for part in entry.parts]

        before = await of_b()
        await s.store.transact("a", lambda tx: tx.erase(id))
        assert [(part.memory_id, part.payload) for part in (await s.store.audit("a"))[0].parts] == [(None, None)]
        assert await of_b() == before

        def write_and_erase(tx: Transaction) -> None:
            tx.put(Entry(Memory(id, "a", "agent", "semantic", "short-lived", created_at=tx.now), None, b""))
            tx.erase(id)
            if "graph" in s.store.capabilities:
                tx.put_triple(Triple(id, "agent", "Alice", "knows", "Bob", tx.now))
                tx.erase_triple(id)

        await s.store.transact("a", write_and_erase)
        assert await of_b() == before

    @scenario()
    async def test_demoted_ranks_lower_and_archived_is_set_aside(self, s: Subject) -> None:
        low = await s.remember("the meeting is on Monday", confidence=0.2)
        high = await s.remember("a meeting room is free on some day")
        assert [m.id for m in await s.recall("the meeting is on Monday")] == [low, high]
        version, seq = (await s.get(low)).version, await s.store.sequence("local")
        assert await s.expire("demote", confidence_below=0.5) == [low]
        assert [m.id for m in await s.recall("the meeting is on Monday")] == [high, low]
        assert ((await s.get(low)).version, await s.store.sequence("local")) == (version, seq)
        assert await s.expire("archive", confidence_below=0.5) == [low]
        assert [m.id for m in await s.recall("the meeting is on Monday")] == [high]
        assert (await s.get(low)).status == "archived"
        assert low in [m.id for m in await s.list()]

    @scenario("recall_tracking")
    async def test_recalls_are_counted_without_a_trace_in_versions(self, s: Subject) -> None:
        id = await s.remember("a fact worth finding")
        before = await s.get(id)
        for _ in range(3):
            s.clock.advance(1000)
            await s.recall("fact")
        await s.engine.flush()
        after = await s.get(id)
        assert (after.recalls, after.last_recalled_at) == (3, s.clock())
        assert (after.version, after.seq, after.updated_at) == (before.version, before.seq, before.updated_at)
        assert await s.store.sequence("local") == before.seq
        s.clock.advance(10 * DAY_MS)
        assert await s.expire(no_recall_in_days=11) == []
        assert await s.expire(no_recall_in_days=9) == [id]

    @scenario()
    async def test_many_recalls_are_counted_at_once(self, s: Subject) -> None:
        """As of a memory that comes from elsewhere."""
        id = await s.remember("recalled")
        for at, times in ((5, 2_000_000_000), (3, 2_000_000_000)):
            await s.store.transact("local", lambda tx, at=at, times=times: tx.count_recalls([id], at, times))  # type: ignore[misc]
        found = await s.get(id)
        assert (found.recalls, found.last_recalled_at, found.version) == (4_000_000_000, 5, 1)

    @scenario()
    async def test_work_that_raises_leaves_nothing(self, s: Subject) -> None:
        id = await s.remember("kept", aliases=["kept"])
        sequence, audit = await s.store.sequence("local"), await s.store.audit("local")

        def work(tx: Transaction) -> None:
            made = Memory(mint_id(s.clock()), "local", "fresh", "semantic", "lost", created_at=tx.now, aliases=["lost"])
            tx.put(Entry(made, None, b""))
            tx.erase(id)
            tx.put_record(Record("setting", "lost", {}, (id,)))
            tx.count_recalls([made.id], 1)
            raise KeyError("on purpose")

        async def fails() -> None:
            with pytest.raises(KeyError):
                await s.store.transact("local", work)

        await fails()
        beside = await asyncio.gather(fails(), s.remember("beside"), fails(), s.remember("beside too"))
        assert sorted(m.content for m in await s.list()) == ["beside", "beside too", "kept"]
        assert await s.list("fresh") == []
        assert await s.store.records("local", "setting") == []
        assert (await s.get("kept")).id == id
        assert await s.gone("lost", "fresh")
        assert await s.store.agents("local") == {"agent": 3}
        assert await s.store.sequence("local") == sequence + 2
        assert (await s.store.audit("local"))[: len(audit)] == audit
        assert (await s.engine.ledger.verify(WHO)).entries == len(audit) + 2
        assert {beside[1], beside[3]} <= {m.id for m in await s.recall("beside")}

    @scenario()
    async def test_records_are_read_page_by_page(self, s: Subject) -> None:
        """By their keys, from either end, and only those that say what is asked for."""
        said = ["pending", "done", "pending", "pending", "done"]

        def work(tx: Any) -> None:
            for key, status in zip("abcde", said, strict=True):
                tx.put_record(Record("setting", key, {"status": status, "agent_id": "x" if key < "d" else "y"}))
            tx.put_record(Record("other", "c2", {"status": "pending"}))

        await s.store.transact("local", work)

        async def keys(where: dict[str, str], **options: Any) -> str:
            return "".join([r.key for r in await s.store.records_page("local", "setting", where, **options)])

        assert await keys({}) == "abcde"
        assert await keys({"status": "pending"}) == "acd"
        assert await keys({"status": "pending"}, limit=2) == "ac"
        assert await keys({"status": "pending"}, after="a") == "cd"
        assert await keys({"status": "pending", "agent_id": "y"}) == "d"
        assert await keys({"status": "pending"}, newest_first=True, limit=2) == "dc"
        assert await keys({"status": "pending"}, newest_first=True, after="c") == "a"
        assert await s.store.records_page("other", "setting", {}) == []

    @scenario()
    async def test_records_are_found_by_what_they_quote(self, s: Subject) -> None:
        def work(tx: Transaction) -> tuple[Any, ...]:
            tx.put_record(Record("setting", "a", {"v": 1}, ("m1", "m2")))
            tx.put_record(Record("setting", "b", {"v": "é\0"}, ("m2",)))
            tx.put_record(Record("setting", "a", {"v": 2}, ("m2",)))
            tx.drop_record("setting", "absent")
            found = tx.records_about("m1"), sorted(r.key for r in tx.records_about("m2"))
            return (*found, tx.record("setting", "a"), tx.record("setting", "c"))

        about_one, about_two, a, c = await s.store.transact("local", work)
        assert (about_one, about_two, c) == ([], ["a", "b"], None)
        assert a == Record("setting", "a", {"v": 2}, ("m2",))
        assert [r.key for r in await s.store.records("local", "setting")] == ["a", "b"]
        await s.store.transact("local", lambda tx: tx.drop_record("setting", "a"))
        assert await s.store.records("local", "setting") == [Record("setting", "b", {"v": "é\0"}, ("m2",))]
        assert await s.store.records("other", "setting") == []
        assert await s.store.record("local", "setting", "b") == Record("setting", "b", {"v": "é\0"}, ("m2",))
        assert await s.store.record("local", "setting", "a") is None
        assert await s.store.record("other", "setting", "b") is None

    @scenario()
    async def test_a_unit_of_work_sees_what_it_wrote(self, s: Subject) -> None:
        await s.remember("old", user_id="alice")

        def work(tx: Transaction) -> list[str]:
            id = mint_id(s.clock())
            made = Memory(id, "local", "agent", "semantic", "new", user_id="alice", created_at=tx.now + 1)
            written = tx.put(Entry(made, None, b""))
            assert (written.version, tx.seq) == (1, written.seq)
            assert tx.get(made.id) == written
            reach = Reach("local", ("agent",), (Condition(("user_id",), "eq", "alice"),))
            assert len(tx.find(reach, limit=1)) == 1
            return [m.content for m in tx.find(reach)]

        assert await s.store.transact("local", work) == ["old", "new"]

    @scenario()
    async def test_audit_is_read_backwards(self, s: Subject) -> None:
        for i in range(4):
            await s.remember(f"note {i}", agent="x" if i % 2 else "y")
        read = s.store.audit_before
        assert [e.n for e in await read("local")] == [4, 3, 2, 1]
        assert [e.n for e in await read("local", before=4, limit=2)] == [3, 2]
        assert [e.n for e in await read("local", agent_id="x")] == [4, 2]
        assert [e.n for e in await read("local", operation="forget")] == []
        assert (await read("local", limit=1))[0] == (await s.store.audit("local"))[-1]
        assert await read("other") == []

    @scenario()
    async def test_audit_is_read_by_what_one_looks_for(self, s: Subject) -> None:
        id = await s.remember("x")
        s.clock.advance(100)
        await s.remember("y", "neighbour")
        await s.forget(id)
        read = s.store.audit
        assert [e.n for e in await read("local")] == [1, 2, 3]
        assert [e.n for e in await read("local", after=1, limit=1)] == [2]
        assert [e.n for e in await read("local", agent_id="agent")] == [1, 3]
        assert [e.n for e in await read("local", operation="remember")] == [1, 2]
        assert [e.n for e in await read("local", since=s.clock())] == [2, 3]
        assert [e.n for e in await read("local", until=s.clock() - 1)] == [1]
        assert await read("other") == []
        assert await s.store.audit_head("local") == (3, (await read("local"))[-1].hash)
        assert await s.store.audit_head("other") == (0, "")
        hashes = [entry.hash for entry in await read("local")]
        assert await s.store.audit_hashes("local") == hashes
        assert await s.store.audit_hashes("local", after=1, limit=1) == hashes[1:2]
        assert await s.store.audit_hashes("other") == await s.store.audit_hashes("local", after=3) == []
        assert "local" in await s.store.tenants()

    @scenario()
    async def test_the_first_embedder_stays(self, s: Subject) -> None:
        info = await s.store.embedder()
        assert info is not None
        assert await s.store.adopt_embedder("another", 3) == info

    def test_what_was_acknowledged_is_there_after_reopening(self, tmp_path: Path) -> None:
        if not self.durable:
            pytest.skip("this store is gone with its process")
        clock = FakeClock()
        with self.opened(tmp_path, clock=clock) as (s, run):
            ids = [run(s.remember(f"durable fact {i}", aliases=[f"alias-{i}"])) for i in range(3)]
            run(s.update(ids[0], content="durable fact zero"))
            run(s.forget(ids[1]))
            run(s.recall("durable"))
        with self.opened(tmp_path, clock=clock) as (s, run):
            assert {m.id for m in run(s.recall("durable fact"))} == {ids[0], ids[2]}
            versions = run(s.engine.history(WHO, "agent", ids[0]))
            assert [v.content for v in versions] == ["durable fact 0", "durable fact zero"]
            assert run(s.get("alias-2")).recalls == 1
            assert run(s.gone("alias-1"))
            assert run(s.engine.ledger.verify(WHO)).first_bad is None
            assert run(s.engine.recall(Principal(), Query(("agent",), "durable"))).note is None
            run(s.remember("one more"))
            assert run(s.engine.ledger.verify(WHO)).first_bad is None
