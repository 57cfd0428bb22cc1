"""What is read: scope, filters, text as it went, expiry and pages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.engine import Draft, Forget, Query
from commonplace.stores.base import ImportanceDecay, Reach, Search
from commonplace.testing.subject import DAY_MS, Contract, Subject, scenario
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.filters import Condition, Where, any_of, parse
from commonplace.wire.record import Principal

TRICKY_TEXTS = (
    "naïve café", "e\u0301 and é", "日本語の記憶", "עברית ‏RTL‎ العربية", "😀👩‍👩‍👧", "nul\0byte", "line\nbreak\ttab",
    "\u202egnirts", " spaces  kept ", 'quotes " and \\ slashes', "'; DROP TABLE memories; --", "\ufeffbom",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
)  # fmt: skip


class ReadScenarios(Contract):
    @scenario()
    async def test_filters_come_before_the_cut(self, s: Subject) -> None:
        """A small agent beside one a hundred times larger, and three memories of one user among hundreds."""
        await s.remember_all([Draft("large", "semantic", f"the harbour report number {i}") for i in range(500)])
        small = await s.remember_all([Draft("small", "semantic", f"a remark on boats, {i}") for i in range(5)])
        assert await s.recall("harbour report", "large")  # an index that is filled by searches has it from here on
        assert {m.id for m in await s.recall("harbour report", "small")} == set(small)
        users = [Draft("busy", "semantic", f"the harbour report {i}", user_id="bob") for i in range(400)]
        users[7::150] = [replace(d, user_id="alice", content="a remark on boats") for d in users[7::150]]
        await s.remember_all(users)
        found = await s.recall("harbour report", "busy", k=5, filter={"user_id": "alice"})
        assert [m.user_id for m in found] == ["alice"] * 3
        assert len(await s.recall("harbour report", "busy", filter={"content": {"$contains": "boats"}})) == 3

    @scenario()
    async def test_what_is_not_shared_is_not_found(self, s: Subject) -> None:
        """Conditions on privacy, and those of which one is enough, hold in every way to read."""
        shares: list[list[str] | None] = [None, [], ["bob"], ["*"], ["bobby"], ["alice", "bob"]]
        for n, names in enumerate(shares * 20):
            privacy = {} if names is None else {"share_with": names}
            await s.remember(f"the harbour report {n}", privacy=privacy, project="port" if n < 60 else None, tags=["x"])
        shared = Condition(("privacy", "share_with"), "in", ["bob", "*"])
        either = any_of(Condition(("project",), "eq", "port"), Condition(("tags",), "contains", "y"))
        reach = Reach("local", ("agent",), (shared, either))
        expected = {n for n in range(60) if shares[n % 6] in (["bob"], ["*"], ["alice", "bob"])}
        scanned = (await s.store.scan(reach, limit=1000)).memories
        found = await s.store.search(Search(reach, "harbour report", limit=100))
        for memories in (scanned, [candidate.memory for candidate in found]):
            assert {int(m.content.rsplit(" ", 1)[1]) for m in memories} == expected
        assert await s.store.count(reach) == len(expected)

    @scenario()
    async def test_what_is_worth_most_comes_first(self, s: Subject) -> None:
        """By importance, age and recalls together, as they are at that time and after every change."""
        worth = ImportanceDecay(base=0.5, half_life=DAY_MS, each=0.05, most=0.3)

        async def order(*, limit: int = 10, where: Where = (), at: int | None = None) -> list[str]:
            now = s.clock.now if at is None else at
            found = await s.store.most_important(Reach("local", ("agent",), where, now=now), worth, now, limit)
            return [m.id for m in found]

        old = await s.remember("old", importance=1.0)
        s.clock.advance(2 * DAY_MS)
        plain, high = await s.remember("plain"), await s.remember("high", importance=0.9, tags=["x"])
        await s.remember("elsewhere", "neighbour", importance=1.0)
        assert await order() == [high, plain, old]
        assert await order(limit=1) == [high]
        assert await order(limit=0) == []
        assert await order(where=parse({"tags": "x"})) == [high]
        assert await order(at=s.clock.now - 3 * DAY_MS // 2) == [high, old, plain]
        for _ in range(7):
            await s.store.transact("local", lambda tx: tx.count_recalls([old], s.clock.now))
        assert await order() == [high, old, plain]
        await s.update(plain, importance=1.0)
        assert await order() == [plain, high, old]
        await s.update(high, expires_at=s.clock.now + 5)
        s.clock.advance(5)
        assert await order() == [plain, old]
        await s.forget(plain)
        await s.forget(old, hard_delete=True)
        assert await order() == []

    @scenario()
    async def test_tenants_and_agents_are_walls(self, s: Subject) -> None:
        id = await s.remember("the secret plan")
        other = Principal(tenant="other")
        assert (await s.engine.recall(other, Query(("agent",), "secret plan"))).hits == []
        assert (await s.engine.list(other, ("agent",))).memories == await s.list("neighbour") == []
        assert await s.gone(id, "neighbour")
        with pytest.raises(NotFound):
            await s.engine.get(other, "agent", id)
        assert (await s.engine.forget(other, Forget("agent", [id]))).ids == []
        assert (await s.forget(id, agent="neighbour", hard_delete=True)).ids == []
        assert not await s.gone(id)

    @pytest.mark.parametrize("text", TRICKY_TEXTS)
    def test_text_comes_back_as_it_went(self, tmp_path: Path, text: str) -> None:
        with self.opened(tmp_path) as (s, run):
            fields: dict[str, Any] = {"user_id": text, "title": text, "source": text, "tags": [text], "aliases": [text]}
            id = run(s.remember(f"x{text}", metadata={"k": text}, **fields))
            got = run(s.get(id))
            assert (got.content, got.metadata, got.tags, got.aliases) == (f"x{text}", {"k": text}, [text], [text])
            assert got.user_id == got.title == got.source == text
            assert run(s.get(text)).id == id
            for key in ("k", "user_id", "title", "tags"):
                assert [m.id for m in run(s.list(filter={key: text}))] == [id], key
            assert [m.id for m in run(s.recall(f"x{text}", filter={"k": text}))] == [id]

    def test_metadata_comes_back_as_it_went(self, tmp_path: Path) -> None:
        numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
        scalars = st.none() | st.booleans() | numbers | st.text(max_size=8)
        keys = st.text(max_size=4)
        inner = st.recursive(scalars, lambda x: st.lists(x, max_size=3) | st.dictionaries(keys, x, max_size=3))
        with self.opened(tmp_path) as (s, run):

            @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
            @given(st.dictionaries(keys, inner, max_size=4))
            def comes_back(metadata: dict[str, Any]) -> None:
                id = run(s.remember("x", metadata=metadata))
                assert json.dumps(run(s.get(id)).metadata) == json.dumps(metadata)

            comes_back()

    @scenario()
    async def test_every_filter_operator(self, s: Subject) -> None:
        notes = [{"n": 1, "s": "ab"}, {"n": 2.5, "s": "abc", "l": [1, "x"]}, {"b": True, "d": {"e": None}}]
        for i, metadata in enumerate(notes):
            await s.remember(f"note {i}", metadata=metadata, tags=[f"t{i}"], confidence=i / 2)
        table: list[tuple[dict[str, Any], set[int]]] = [
            ({"n": 1.0}, {0}), ({"n": True}, set()), ({"n": [1, 2.5]}, {0, 1}), ({"n": None}, {2}), ({"l": "x"}, {1}),
            ({"n": {"$ne": 1}}, {1, 2}), ({"n": {"$gt": 1}}, {1}), ({"n": {"$gte": 1}}, {0, 1}),
            ({"n": {"$lt": 2}}, {0}), ({"n": {"$lte": 2.5}}, {0, 1}), ({"s": {"$gt": "ab"}}, {1}),
            ({"n": {"$in": []}}, set()), ({"n": {"$nin": [1]}}, {1, 2}), ({"n": {"$exists": True}}, {0, 1}),
            ({"d.e": {"$exists": False}}, {0, 1, 2}), ({"d": {"$exists": True}}, {2}), ({"b": True}, {2}),
            ({"s": {"$contains": "bc"}}, {1}), ({"l": {"$contains": 1}}, {1}), ({"tags": "t2"}, {2}),
            ({"confidence": {"$gte": 0.5}}, {1, 2}), ({"content": "note 1", "n": 2.5}, {1}),
        ]  # fmt: skip
        for document, expected in table:
            names = {f"note {i}" for i in expected}
            assert {m.content for m in await s.list(filter=document)} == names, document
            assert {m.content for m in await s.recall("note", filter=document)} == names, document
            assert await s.store.count(Reach("local", ("agent",), parse(document))) == len(names), document

    @scenario()
    async def test_what_has_expired_is_not_read(self, s: Subject) -> None:
        id = await s.remember("the code is 4711", expires_at=s.clock() + 1000, aliases=["code"])
        s.clock.advance(999)
        assert [m.id for m in await s.recall("code")] == [m.id for m in await s.list()] == [id]
        s.clock.advance(1)
        assert await s.recall("code") == await s.list() == []
        assert await s.gone(id)
        assert await s.gone("code")
        again = await s.remember("the code is 4712", aliases=["code"])
        assert (await s.get("code")).id == again

    @scenario()
    async def test_pages_lose_and_repeat_nothing(self, s: Subject) -> None:
        """Memories made in the same millisecond keep one order, and one forgotten meanwhile disturbs no other."""
        drafts = [Draft("agent", "semantic", f"page {i}") for i in range(23)]
        for some in (drafts[:10], drafts[10:15], drafts[15:]):
            await s.remember_all(some)
            s.clock.advance(1)
        whole, reach = [m.id for m in await s.list()], Reach("local", ("agent",))
        for newest_first in (True, False):
            expected = whole if newest_first else whole[::-1]
            for limit in (1, 7, 23, 100):
                page = await s.store.scan(reach, limit=limit, newest_first=newest_first)
                seen = [m.id for m in page.memories]
                while (cursor := page.next_cursor) is not None:
                    page = await s.store.scan(reach, limit=limit, cursor=cursor, newest_first=newest_first)
                    seen += [m.id for m in page.memories]
                assert seen == expected
        first = await s.store.scan(reach, limit=7)
        await s.forget(first.memories[-1].id)
        rest = await s.store.scan(reach, limit=100, cursor=first.next_cursor)
        assert [m.id for m in rest.memories] == whole[7:]
        for nonsense in ("x", "", "x.y", "-", "abc", "f" * 40 + "." + whole[0]):
            with pytest.raises(ValidationError):
                await s.store.scan(reach, cursor=nonsense)
