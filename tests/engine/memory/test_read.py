"""Reading: by which ids, as of when, and only what may be read."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.memory import read
from commonplace.engine.memory.read import expired, readable, tagged, with_shared
from commonplace.engine.types import Snapshot
from commonplace.stores.base import Reach
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory, Principal


def memory(**fields: Any) -> Memory:
    return Memory("m", "local", "agent", "semantic", "x", **fields)


@pytest.mark.parametrize(("fields", "may"), [
    ({}, True), ({"status": "archived"}, True), ({"status": "pending"}, False), ({"status": "deleted"}, False),
    ({"expires_at": 11}, True), ({"expires_at": 10}, False), ({"expires_at": 9, "status": "archived"}, False),
])  # fmt: skip
def test_what_may_be_read(fields: dict[str, Any], may: bool) -> None:
    assert readable(memory(**fields), 10) is may
    assert expired(memory(**fields), 10) is (fields.get("expires_at", 11) <= 10)


def test_a_tag_is_one_of_the_tags() -> None:
    assert matches(memory(tags=["a", "b"]), (tagged("b"),))
    assert not matches(memory(tags=["ab"]), (tagged("b"),))


@pytest.mark.parametrize(("allowed", "agents", "read_"), [
    (("*",), ("ada",), ("ada", "shared")),
    (("*",), ("shared", "ada"), ("shared", "ada")),
    (("ada",), ("ada",), ("ada",)),
    (("ada", "sh*"), (), ("shared",)),
])  # fmt: skip
def test_the_shared_space_is_for_whoever_may_look_there(
    allowed: tuple[str, ...], agents: tuple[str, ...], read_: tuple[str, ...]
) -> None:
    assert with_shared(Principal(agents=allowed), agents) == read_


def test_an_alias_is_read_as_of_a_past_instant_too(subject: Subject, run: Any) -> None:
    run(subject.remember("before", aliases=["note"]))
    at = subject.clock()
    subject.clock.advance(10)
    run(subject.update("note", content="after"))
    assert (run(subject.get("note", as_of=at)).content, run(subject.get("note")).content) == ("before", "after")


def test_what_has_expired_since_is_gone_from_the_past_too(subject: Subject, run: Any) -> None:
    id = run(subject.remember("Bob's address"))
    then = subject.clock()
    subject.clock.advance(1000)
    run(subject.update(id, expires_at=then + 5000))
    assert run(subject.get(id, as_of=then)).content == "Bob's address"
    assert (
        [m.id for m in run(subject.list(as_of=then))]
        == [m.id for m in run(subject.recall("address", as_of=then))]
        == [id]
    )
    subject.clock.advance(4000)
    with pytest.raises(NotFound):
        run(subject.get(id, as_of=then))
    assert run(subject.list(as_of=then)) == run(subject.recall("address", as_of=then)) == []


# one memory


def test_a_memory_is_found_by_any_spelling_of_its_id(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x", aliases=["note"]))
    for ref in (id, id.upper(), f"drawer_{id}", f"a_b\nc_{id}", "note"):
        assert run(subject.engine.find(WHO, ref)).id == id
        assert run(subject.engine.find(WHO, ref, "agent")).id == id
    for ref in (id[:-1], f"drawer{id}", f"{id}_x", "", "Note", "x" * 1000):
        with pytest.raises(NotFound) as unknown:
            run(subject.engine.find(WHO, ref))
        assert len(unknown.value.message) < 400


@pytest.mark.parametrize("agent", [None, "agent"])
def test_the_same_sentence_whether_it_never_was_or_may_not_be_read(
    subject: Subject, run: Any, agent: str | None
) -> None:
    deleted, expiring, theirs = (
        run(subject.remember("x")),
        run(subject.remember("x", expires_at=subject.clock() + 1)),
        run(subject.remember("x", "other")),
    )
    run(subject.forget(deleted))
    subject.clock.advance(1)
    who = Principal("a", role="reader", agents=("agent",))
    for ref in (deleted, expiring, theirs, "nothing"):
        with pytest.raises(NotFound) as unknown:
            run(subject.engine.find(who, ref, agent))
        assert unknown.value.message == f"no record {ref}"


def test_an_alias_of_several_agents_names_none_until_one_is_said(subject: Subject, run: Any) -> None:
    for agent in ("two", "one"):
        run(subject.remember(agent, agent, aliases=["note"]))
    with pytest.raises(Conflict, match="note names 2 records, of the agents one, two; say which agent's"):
        run(subject.engine.find(WHO, "note"))
    assert run(subject.engine.find(WHO, "note", "two")).content == "two"
    assert run(subject.engine.find(Principal(agents=("one",)), "note")).content == "one"
    with pytest.raises(Forbidden):
        run(subject.engine.find(Principal(agents=("one",)), "note", "two"))


def test_nobody_hides_a_memory_behind_an_alias_that_spells_its_id(subject: Subject, run: Any) -> None:
    id = run(subject.remember("the real one"))
    run(subject.remember("an impostor", "other", aliases=[id, f"drawer_{id}"]))
    for ref in (id, f"drawer_{id}"):
        assert run(subject.engine.find(WHO, ref)).content == "the real one"
        assert run(subject.engine.find(WHO, ref, "other")).content == "an impostor"


def test_a_memory_is_read_as_of_a_time_or_of_a_snapshot(subject: Subject, run: Any) -> None:
    id = run(subject.remember("first"))
    begun, seq = subject.clock(), run(subject.store.sequence("local"))
    subject.clock.advance(10)
    run(subject.update(id, content="second"))
    subject.clock.advance(10)
    run(subject.forget(id))
    for options in ({"as_of": begun}, {"as_of": begun + 9}, {"snapshot": Snapshot(seq, begun)}):
        assert run(subject.get(id, **options)).content == "first"
    assert run(subject.get(id, as_of=begun + 10)).content == "second"
    for options in ({}, {"as_of": begun - 1}, {"as_of": subject.clock()}, {"snapshot": Snapshot(0, begun)}):
        with pytest.raises(NotFound):
            run(subject.get(id, **options))
    with pytest.raises(NotFound):
        run(subject.get(id, "other", as_of=begun))


def test_history_is_every_version_oldest_first(subject: Subject, run: Any) -> None:
    run(subject.remember("1", aliases=["note"]))
    for content in ("2", "3"):
        run(subject.update("note", content=content))
    versions = run(subject.engine.history(WHO, "agent", "note"))
    assert [(m.version, m.content) for m in versions] == [(1, "1"), (2, "2"), (3, "3")]


# many


def fill(subject: Subject, run: Any, count: int = 7) -> list[str]:
    ids = []
    for i in range(count):
        subject.clock.advance(1)
        ids.append(run(subject.remember(f"fact {i}", tags=["even"] if i % 2 == 0 else [])))
    return ids


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_follow_one_another_and_miss_nothing(subject: Subject, run: Any, newest_first: bool) -> None:
    ids = fill(subject, run)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = run(subject.engine.list(WHO, ("agent",), limit=3, cursor=cursor, newest_first=newest_first))
        seen += [m.id for m in page.memories]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == (ids[::-1] if newest_first else ids)


@pytest.mark.parametrize(("limit", "offset", "places"), [
    (3, 0, range(3)), (3, 2, range(2, 5)), (3, 5, range(5, 7)), (3, 7, ()), (3, 99, ()), (100, 0, range(7)),
    (100, 6, range(6, 7)),
])  # fmt: skip
def test_a_page_by_number_says_how_many_there_are(
    subject: Subject, run: Any, limit: int, offset: int, places: Any
) -> None:
    ids = fill(subject, run)[::-1]
    page = run(subject.engine.page(WHO, ("agent",), limit=limit, offset=offset))
    assert ([m.id for m in page.memories], page.total) == ([ids[i] for i in places], 7)


def test_a_far_page_is_reached_in_steps(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_PAGE", 2)
    ids = fill(subject, run)
    page = run(subject.engine.page(WHO, ("agent",), limit=2, offset=5, newest_first=False))
    assert ([m.id for m in page.memories], page.total) == (ids[5:], 7)
    assert [m.id for m in run(read.read_all(subject.engine._core, Reach("local", ("agent",))))] == ids


def test_a_filter_narrows_pages_and_counts_alike(subject: Subject, run: Any) -> None:
    ids = fill(subject, run)
    where = (tagged("even"),)
    assert run(subject.engine.count(WHO, ("agent",), where)) == 4
    page = run(subject.engine.page(WHO, ("agent",), where, limit=2, offset=1, newest_first=False))
    assert ([m.id for m in page.memories], page.total) == ([ids[2], ids[4]], 4)


def test_archived_ones_are_listed_unless_left_out_and_expired_ones_never(subject: Subject, run: Any) -> None:
    run(subject.remember("live"))
    run(subject.remember("archived", confidence=0.1))
    run(subject.remember("expired", expires_at=subject.clock() + 1))
    run(subject.expire("archive", confidence_below=0.5))
    subject.clock.advance(1)
    assert {m.content for m in run(subject.list())} == {"live", "archived"}
    assert {m.content for m in run(subject.list(archived=False))} == {"live"}
    assert run(subject.engine.count(WHO, ("agent",))) == 2


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_has_one_to_a_thousand(subject: Subject, run: Any, limit: int) -> None:
    with pytest.raises(ValidationError) as refused:
        run(subject.engine.list(WHO, ("agent",), limit=limit))
    assert refused.value.message == f"limit must be a whole number from 1 to 1000, not {limit}"


def test_whoever_asks_for_several_agents_must_be_allowed_all(subject: Subject, run: Any) -> None:
    some = Principal("a", role="reader", agents=("one",))
    for work in (subject.engine.list(some, ("one", "two")), subject.engine.count(some, ("one", "two")),
                 subject.engine.page(some, ("one", "two"), limit=1)):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)
