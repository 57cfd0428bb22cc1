"""What a replica must do, by its own verbs: keep what it is given, find it again within its scope, and let it go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import CAPABILITIES, Entry, Reach, Search, Store
from commonplace.stores.mixins import scan_all
from commonplace.stores.optional import AgentListing, PerAgentStore
from commonplace.stores.text import terms
from commonplace.testing.subject import DAY_MS, FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.filters import parse
from commonplace.wire.record import MEMORY_TYPES, Memory

#: What no replica may lose; of the rest it says which it does not keep.
ALWAYS_KEPT = frozenset({"id", "tenant", "agent_id", "type", "content", "user_id", "created_at", "expires_at"})
_COMPARED = [f.name for f in fields(Memory)]
_OF_THE_PRIMARY = {"seq", "version", "updated_at", "recalls", "last_recalled_at", "demotion", "salt", "content_hash"}
_TEXTS = (
    "plain words",
    "  spaces at both ends \n",
    "zwei Zeilen\nund Umlaute: äöüß",
    "日本語のテキストと絵文字 🍵🫖",
    '{"looks": "like JSON", "n": [1, 2.5, null]}',
    "quotes ' \" ` and \\ backslashes \\n % ? $1 :name {x} <b>&amp;</b>",
    "a long one " * 900,
)


class ReplicaSubject:
    """A store, a tenant of its own, and the shortest way to say each thing."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.tenant = f"tenant-{uuid4().hex[:12]}"  # a product that outlives a test keeps what others wrote
        self._embedder = HashingEmbedder()
        self._generation = 1

    def memory(self, content: str, agent: str = "agent", **given: Any) -> Memory:
        # Each a moment later than the one before, so that their order is known.
        at = given.pop("created_at", self.clock.advance(1))
        tenant, type = given.pop("tenant", self.tenant), given.pop("type", "semantic")
        made = Memory(mint_id(at), tenant, agent, type, content, created_at=at, updated_at=at, version=1)
        return replace(made, **given)

    def entry(self, memory: Memory) -> Entry:
        return Entry(memory, self._embedder.embed([memory.content]), terms(memory.content), self._generation)

    async def put(self, *memories: Memory) -> None:
        await self.store.put([self.entry(memory) for memory in memories])

    async def write(self, content: str, agent: str = "agent", **given: Any) -> Memory:
        memory = self.memory(content, agent, **given)
        await self.put(memory)
        return memory

    async def get(self, *ids: str, agent: str = "agent", tenant: str | None = None) -> list[Memory]:
        if isinstance(self.store, PerAgentStore):
            return await self.store.get_of(tenant or self.tenant, agent, ids)
        return await self.store.get(tenant or self.tenant, ids)

    async def delete(self, *ids: str, agent: str = "agent", tenant: str | None = None) -> int:
        if isinstance(self.store, PerAgentStore):
            return await self.store.delete_of(tenant or self.tenant, agent, ids)
        return await self.store.delete(tenant or self.tenant, ids)

    def reach(self, agent: str = "agent", filter: dict[str, Any] | None = None, tenant: str | None = None) -> Reach:
        return Reach(tenant or self.tenant, (agent,), parse(filter), now=self.clock())

    async def search(self, text: str, limit: int = 5, **scope: Any) -> list[str]:
        vector = self._embedder.embed([text])[0]
        found = await self.store.search(Search(self.reach(**scope), text, vector, limit, self._generation))
        assert all(isinstance(c.memory.content, str) for c in found)
        return [c.memory.id for c in found]

    async def all(self, **scope: Any) -> list[str]:
        return [m.id for m in await scan_all(self.store, self.reach(**scope))]


#: A subject, and the way to await one thing after another where a test is not async.
Opened = tuple[ReplicaSubject, Callable[[Any], Any]]


class ReplicaScenarios:
    durable = False  # whether what was put is there after close and open
    lossy: frozenset[str] = frozenset()  # fields of a memory that the product cannot keep
    writers = 20  # how many write at once

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        """The store to test; called again with the same folder when it is reopened. Tests share nothing but what the
        product itself shares: each has a tenant of its own."""
        raise NotImplementedError

    @contextmanager
    def opened(self, tmp_path: Path, clock: FakeClock | None = None) -> Iterator[Opened]:
        clock = clock or FakeClock()
        with asyncio.Runner() as runner:
            subject = ReplicaSubject(self.open_store(tmp_path, clock), clock)
            try:
                yield subject, runner.run
            finally:
                runner.run(subject.store.close())

    @pytest.fixture
    def opened_replica(self, tmp_path: Path) -> Iterator[Opened]:
        with self.opened(tmp_path) as opened:
            yield opened

    def test_it_says_what_it_is(self, opened_replica: Any) -> None:
        s, run = opened_replica
        assert isinstance(s.store, Store)
        assert s.store.name
        assert s.store.capabilities
        assert s.store.capabilities <= CAPABILITIES
        assert run(s.store.health())["status"] in ("ok", "degraded", "down")

    def test_an_empty_one_has_nothing(self, opened_replica: Any) -> None:
        s, run = opened_replica
        assert run(s.search("anything")) == run(s.all()) == run(s.get("nobody")) == []
        assert run(s.delete("nobody", mint_id(1))) == 0

    def test_every_character_is_kept(self, opened_replica: Any) -> None:
        s, run = opened_replica
        made = [s.memory(text) for text in _TEXTS]
        run(s.put(*made))
        kept = run(s.get(*[m.id for m in made]))
        assert [(m.id, m.content) for m in kept] == [(m.id, m.content) for m in made]

    def test_fields_are_kept(self, opened_replica: Any) -> None:
        s, run = opened_replica
        assert not self.lossy & ALWAYS_KEPT
        full = s.memory(
            "Alice moved to Lisbon", type="episodic", user_id="alice", project="home", title="Moving",
            tags=["a b", "ü"], metadata={"deep": {"er": [1, 2.5, {"x": None}]}, "yes": True, "empty": {}, "text": "1"},
            confidence=0.25, importance=0.75, source="letter", expires_at=s.clock() + DAY_MS, event_time=5, kind="note",
            session_id="s1", speaker="Bob", entity_name="Alice", provenance={"dialect": "memorywire", "chain": ["x"]},
        )  # fmt: skip
        run(s.put(full))
        (kept,) = run(s.get(full.id))
        wanted = [name for name in _COMPARED if name not in self.lossy | _OF_THE_PRIMARY]
        assert {n: getattr(kept, n) for n in wanted} == {n: getattr(full, n) for n in wanted}

    def test_the_order_of_get_is_the_order_asked(self, opened_replica: Any) -> None:
        s, run = opened_replica
        one, two = run(s.write("first")), run(s.write("second"))
        assert [m.id for m in run(s.get(two.id, "nobody", one.id))] == [two.id, one.id]

    def test_putting_it_again_replaces_it(self, opened_replica: Any) -> None:
        s, run = opened_replica
        old = run(s.write("Alice drinks green tea", user_id="alice"))
        new = replace(old, content="Alice drinks coffee", version=2, user_id=None)
        run(s.put(new))
        run(s.put(new))
        assert [(m.content, m.user_id) for m in run(s.get(old.id))] == [("Alice drinks coffee", None)]
        assert run(s.all()) == run(s.search("what does Alice drink")) == [old.id]
        assert run(s.all(filter={"user_id": "alice"})) == []

    def test_what_is_deleted_leaves_no_copy(self, opened_replica: Any) -> None:
        s, run = opened_replica
        gone, kept = run(s.write("the old address")), run(s.write("the new address"))
        run(s.put(gone))  # twice, so that there could be two of it
        assert run(s.delete(gone.id, "nobody")) == 1
        assert run(s.get(gone.id)) == []
        assert run(s.search("the old address")) == run(s.all()) == [kept.id]
        assert run(s.delete(gone.id)) == 0
        run(s.put(gone))  # it may come back: forgetting can be undone
        assert [m.content for m in run(s.get(gone.id))] == ["the old address"]

    def test_tenants_and_agents_are_walls(self, opened_replica: Any) -> None:
        s, run = opened_replica
        other = f"{s.tenant}-other"
        mine = run(s.write("the code is 4711"))
        beside = run(s.write("the code is 4712", "neighbour"))
        abroad = run(s.write("the code is 4713", tenant=other))
        assert run(s.search("the code")) == run(s.all()) == [mine.id]
        assert run(s.search("the code", agent="neighbour")) == run(s.all(agent="neighbour")) == [beside.id]
        assert run(s.search("the code", tenant=other)) == run(s.all(tenant=other)) == [abroad.id]
        assert run(s.search("the code", agent="nobody")) == []
        assert run(s.get(mine.id, tenant=other)) == []
        assert run(s.delete(mine.id, tenant=other)) == 0
        assert [m.id for m in run(s.get(mine.id))] == [mine.id]

    def test_agents_are_named_by_a_store_that_can(self, opened_replica: Any) -> None:
        s, run = opened_replica
        if not isinstance(s.store, AgentListing):
            return
        assert run(s.store.agent_names(s.tenant)) == []
        other = f"{s.tenant}-other"
        run(s.write("one", "a b/ü%2F"))
        run(s.write("two", "second"))
        gone = run(s.write("three", "third"))
        run(s.write("four", "of another", tenant=other))
        run(s.delete(gone.id, agent="third"))
        # One whose memories are all gone may be named: that costs a look and nothing else.
        assert set(run(s.store.agent_names(s.tenant))) - {"third"} == {"a b/ü%2F", "second"}
        assert run(s.store.agent_names(other)) == ["of another"]

    def test_the_nearest_comes_first(self, opened_replica: Any) -> None:
        s, run = opened_replica
        topics = ("violins and cellos", "glaciers in summer", "tax law of Norway", "sourdough bread", "old lighthouses")
        ids = {topic: run(s.write(f"a note about {topic}")).id for topic in topics}
        for topic, id in ids.items():
            found = run(s.store.search(self._asked(s, f"a note about {topic}")))
            assert _best(found) == id

    def test_no_more_than_was_asked_for(self, opened_replica: Any) -> None:
        s, run = opened_replica
        for n in range(8):
            run(s.write(f"tea number {n}"))
        found = run(s.search("tea", limit=3))
        assert 3 <= len(found) == len(set(found)) <= 6  # three by each of two legs

    def test_agents_that_are_asked_together_share_the_cut_by_rank(self, opened_replica: Any) -> None:
        s, run = opened_replica
        run(s.put(*[s.memory(f"note number {n} about harbours", "first") for n in range(60)]))
        exact = run(s.write("the wifi password of the office is on the fridge", "second"))
        asked = self._asked(s, exact.content)
        for agents in (("first", "second"), ("second", "first")):
            found = run(s.store.search(replace(asked, reach=replace(asked.reach, agents=agents), limit=20)))
            assert exact.id in [c.memory.id for c in _ranked(found)[:20]], agents

    def test_filters_hold_before_the_cut(self, opened_replica: Any) -> None:
        s, run = opened_replica
        crowd = [s.memory("likes green tea", user_id="bob", type="semantic", metadata={"n": n}) for n in range(60)]
        run(s.put(*crowd))
        early = s.clock()
        s.clock.advance(DAY_MS)
        mine = run(s.write("likes green tea", user_id="alice", type="emotional", metadata={"team": {"name": "core"}}))
        named = run(s.write("likes green tea in Lisbon", user_id="bob"))
        assert run(s.search("likes green tea", 3, filter={"content": {"$contains": "Lisbon"}})) == [named.id]
        run(s.delete(named.id))
        for filter in (
            {"user_id": "alice"},
            {"type": "emotional"},
            {"type": ["episodic", "emotional"]},
            {"created_at": {"$gt": early}},
            {"user_id": {"$ne": "bob"}},
            {"user_id": "alice", "type": "emotional"},
            {"id": [mine.id]},
        ):
            assert run(s.search("likes green tea", 3, filter=filter)) == run(s.all(filter=filter)) == [mine.id], filter
        assert run(s.search("likes green tea", 3, filter={"user_id": "nobody"})) == []
        if "metadata" not in self.lossy:
            for filter in ({"metadata.team.name": "core"}, {"n": {"$exists": False}}):
                assert run(s.search("likes green tea", 3, filter=filter)) == [mine.id], filter

    def test_types_are_told_apart(self, opened_replica: Any) -> None:
        s, run = opened_replica
        ids = {type: run(s.write("the trip to Rome", type=type)).id for type in MEMORY_TYPES}
        for type, id in ids.items():
            assert run(s.search("trip to Rome", filter={"type": type})) == [id]
            assert [m.type for m in run(s.get(id))] == [type]

    def test_what_has_expired_is_not_found(self, opened_replica: Any) -> None:
        s, run = opened_replica
        brief = run(s.write("the meeting is at noon", expires_at=s.clock() + DAY_MS))
        lasting = run(s.write("the meeting is weekly"))
        assert set(run(s.search("the meeting"))) == {brief.id, lasting.id}
        s.clock.advance(2 * DAY_MS)
        assert run(s.search("the meeting")) == run(s.all()) == [lasting.id]

    def test_all_can_be_paged_through(self, opened_replica: Any) -> None:
        s, run = opened_replica
        made = [s.memory(f"page {n}") for n in range(7)]
        run(s.put(*made))
        ids = [m.id for m in made]
        assert run(s.all()) == ids
        paged: list[str] = []
        cursor = None
        while True:
            page = run(s.store.scan(s.reach(), limit=3, cursor=cursor))
            paged += [m.id for m in page.memories]
            if (cursor := page.next_cursor) is None:
                break
            assert len(page.memories) == 3
        assert paged == ids[::-1]

    def test_many_write_at_once(self, opened_replica: Any) -> None:
        s, run = opened_replica
        made = [s.memory(f"entry {n} {mint_id(n)[-12:]}") for n in range(self.writers)]

        async def write_all() -> None:
            await asyncio.gather(*(s.put(memory) for memory in made))

        run(write_all())
        assert sorted(run(s.all())) == sorted(m.id for m in made)
        kept = run(s.get(*[m.id for m in made]))
        assert [m.content for m in kept] == [m.content for m in made]

    def test_it_is_kept_when_it_is_opened_again(self, tmp_path: Path) -> None:
        if not self.durable:
            pytest.skip("this store is gone with its process")
        with self.opened(tmp_path) as (s, run):
            kept, gone = run(s.write("a durable fact")), run(s.write("a passing fact"))
            run(s.delete(gone.id))
        with self.opened(tmp_path) as (again, run):
            again.tenant = s.tenant
            again.clock.now = s.clock.now
            assert run(again.all()) == run(again.search("fact")) == [kept.id]
            assert run(again.delete(kept.id)) == 1

    def _asked(self, s: ReplicaSubject, text: str) -> Search:
        return Search(s.reach(), text, s.entry(s.memory(text)).vectors[0], 5, 1)  # type: ignore[index]


def _best(found: Sequence[Any]) -> str:
    return str(_ranked(found)[0].memory.id)


def _ranked(found: Sequence[Any]) -> Sequence[Any]:
    """By the leg that the store has, else as it gives them."""
    for leg in ("dense", "keyword"):
        if any(getattr(c, leg) is not None for c in found):
            return sorted(found, key=lambda c: -(getattr(c, leg) or 0.0))
    return found
