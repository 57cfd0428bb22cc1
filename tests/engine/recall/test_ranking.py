from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.ranking import rank
from commonplace.engine.recall.understanding import Parts, analyse
from commonplace.engine.types import Query
from commonplace.stores.base import AgentContext, Candidate, Reach, Search
from commonplace.testing.subject import Subject
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory, Principal

WHO = Principal()
Over = tuple[Subject, Callable[[Any], Any]]


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id=id, tenant="t", agent_id="a", type="semantic", content=content, **fields)


def order(ranked: list[Any]) -> list[str]:
    return [r.memory.id for r in ranked]


def test_both_legs_count_and_features_are_carried() -> None:
    asked = analyse("blue harbour", AgentContext(), 0)
    ranked = rank(
        [
            Candidate(memory("neither", "n"), 0.1, 0.0, 0),
            Candidate(memory("meaning", "m"), 0.7, 0.0, 0),
            Candidate(memory("both", "b"), 0.7, 3.0, 3),
        ],
        asked,
    )
    assert order(ranked) == ["both", "meaning", "neither"]
    assert ranked[0].features["dense"] == 0.7
    assert ranked[0].features["keyword"] == ranked[0].features["coverage"] == 1.0
    assert all(0.0 < r.score < 1.0 for r in ranked)


def test_equal_ones_are_newer_first_then_by_id() -> None:
    twins = [Candidate(memory(id, id, created_at=at), 0.5, 1.0, 0) for id, at in (("b", 1), ("a", 1), ("c", 2))]
    parts = Parts(recency=False)
    assert order(rank(twins, parts=parts)) == order(rank(twins[::-1], parts=parts)) == ["c", "a", "b"]


@given(st.permutations(range(8)))
def test_the_order_does_not_depend_on_how_they_were_found(places: list[int]) -> None:
    candidates = [
        Candidate(memory(f"m{i}", f"text {i}", created_at=i % 3), 0.1 * (i % 4), float(i % 2)) for i in range(8)
    ]
    assert order(rank([candidates[i] for i in places])) == order(rank(candidates))


def test_what_was_replaced_stands_behind_what_replaced_it_unless_the_past_is_asked_for() -> None:
    old = Candidate(memory("old", "we live at Mill Lane", aliases=["home"]), 0.8, 2.0, 1)
    new = Candidate(memory("new", "our address is Lamp Row", supersedes=["home"], created_at=5), 0.3, 0.0, 0)
    other = Candidate(memory("other", "the cat is grey"), 0.1, 0.0, 0)
    found, replaced = [old, new, other], {"home": "new"}
    now = analyse("where do we live", AgentContext(), 0)
    then = analyse("where did we live before the move", AgentContext(), 0)
    assert order(rank(found, now, replaced=replaced)) == ["new", "old", "other"]
    assert order(rank(found, then, replaced=replaced))[0] == "old"
    assert order(rank(found, now, replaced=replaced, parts=Parts(validity=False)))[0] == "old"


def test_replacements_in_a_circle_end() -> None:
    pair = [Candidate(memory("a", "one"), 0.5, 0.0), Candidate(memory("b", "two"), 0.4, 0.0)]
    assert len(rank(pair, replaced={"a": "b", "b": "a"})) == 2


@pytest.mark.parametrize(
    ("text", "again", "folded"),
    [
        ("Alice likes green tea.", "alice likes  green tea", True),
        ("The gate code is 4417", "Gate code is 4417!", True),
        ("The gate code is 4417", "The gate code is 4418", False),
        ("Alice likes green tea", "Bob likes green tea", False),
        ("Alice is allergic to nuts", "Alice is not allergic to nuts", False),
        ("The value is -5", "The value is 5", False),
        ("Shall we go?", "Shall we go.", False),
        ("🎉", "🎂", False),
        ("due on 2026-03-14", "due on 2026-03-15", False),
    ],
)
def test_only_what_says_the_same_is_folded(text: str, again: str, folded: bool) -> None:
    found = [
        Candidate(memory("a", text), 0.9, 0.0),
        Candidate(memory("b", again), 0.8, 0.0),
        Candidate(memory("c", "something else"), 0.1, 0.0),
    ]
    ranked = rank(found)
    assert order(ranked) == (["a", "c", "b"] if folded else ["a", "b", "c"])
    assert ranked[-1].same_as == ("a" if folded else None)
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)
    assert order(rank(found, parts=Parts(duplicates=False))) == ["a", "b", "c"]


def test_the_same_words_of_another_speaker_or_day_are_not_folded() -> None:
    said = [memory("a", "Yes", speaker="Alice"), memory("b", "Yes", speaker="Bob"), memory("c", "Yes", event_time=1)]
    assert all(r.same_as is None for r in rank([Candidate(m, 0.5, 0.0) for m in said]))


def test_who_spoke_counts_when_someone_is_named() -> None:
    asked = analyse("What did Alice paint?", AgentContext(frozenset({"Alice", "Bob"})), 0)
    found = [
        Candidate(memory("bob", "I painted a barn", speaker="Bob"), 0.5, 1.0, 1),
        Candidate(memory("alice", "I painted a lake", speaker="Alice"), 0.5, 1.0, 1),
    ]
    assert order(rank(found, asked)) == ["alice", "bob"]


def test_without_a_leg_the_other_ranks() -> None:
    asked = analyse("green tea", AgentContext(), 0)
    words = [Candidate(memory("few", "f"), None, 1.0, 1), Candidate(memory("many", "m"), None, 2.0, 3)]
    meaning = [Candidate(memory("far", "f"), 0.2, None), Candidate(memory("near", "n"), 0.6, None)]
    assert order(rank(words, asked)) == ["many", "few"]
    assert order(rank(meaning, asked)) == ["near", "far"]
    assert rank([]) == []


# through the engine, over both stores


async def _recall(s: Subject, text: str, **query: Any) -> list[str]:
    found = await s.engine.recall(WHO, Query(("agent",), text, **query))
    return [hit.memory.content for hit in found.hits]


def test_a_turn_is_found_by_the_one_before_it(over: Over) -> None:
    s, run = over

    async def work() -> None:
        talk = ["Which restaurant is it tonight?", "The Georgian place by the canal.", "At half past seven.", "Fine."]
        for n, line in enumerate(talk):
            await s.remember(line, session_id="s1", speaker=("Alice", "Bob")[n % 2])
        for n in range(30):
            await s.remember(f"note number {n} on gardening")
        found = await _recall(s, "Georgian restaurant", k=5)
        assert set(talk[:3]) <= set(found)

    run(work())


def test_long_memories_are_found_by_their_parts_and_returned_whole(over: Over) -> None:
    s, run = over

    async def work() -> None:
        filler = "The weather was mild and the harbour was quiet that day. " * 260
        long = f"{filler}The spare key hangs behind the green barometer. {filler}"
        assert 28_000 < len(long) < 32_768
        await s.remember(long)
        for n in range(20):
            await s.remember(f"short note {n} about the harbour")
        assert (await _recall(s, "spare key behind the barometer", k=3))[0] == long

    run(work())


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("鍵はマットの下にあります", "鍵はどこ"),
        ("钥匙在垫子下面", "钥匙"),
        ("def parse_frame(buf): return struct.unpack('<I', buf)", "parse_frame"),
        ("panic at segment.rs:288: index out of bounds", "segment.rs:288"),
        ("the launch went well 🎉", "🎉"),
        ("to be or not to be", "to be or not to be"),
    ],
)
def test_scripts_code_and_signs(over: Over, content: str, question: str) -> None:
    s, run = over

    async def work() -> None:
        await s.remember(content)
        for n in range(20):
            await s.remember(f"plain note {n} on something else")
        assert (await _recall(s, question))[0] == content

    run(work())


def test_questions_without_anything_to_look_for(over: Over) -> None:
    s, run = over

    async def work() -> None:
        await s.remember("Alice likes green tea and it is what she drinks")
        assert await _recall(s, "🎉🎉") == await _recall(s, "???") == await _recall(s, "what is it to you") == []
        for text, says in (
            ("", "must not be blank"),
            (" \n\t ", "must not be blank"),
            ("x" * 1_048_576, "1,048,576 characters"),
        ):
            with pytest.raises(ValidationError, match=says):
                await _recall(s, text)

    run(work())


def test_a_replaced_memory_stands_behind_through_ids_and_aliases(over: Over) -> None:
    s, run = over

    async def work() -> None:
        old = await s.remember("The staging database listens on port 5432")
        await s.remember("Staging database: the port is 6543 now", supersedes=[old])
        found = await _recall(s, "staging database port")
        assert found[:2] == ["Staging database: the port is 6543 now", "The staging database listens on port 5432"]
        await s.engine.flush()

    run(work())


def test_explain_shows_what_was_understood_and_every_share(over: Over) -> None:
    s, run = over

    async def work() -> None:
        await s.remember("I painted a lake", speaker="Alice", session_id="s")
        found = await s.engine.recall(WHO, Query(("agent",), "What did Alice paint in March?", explain=True))
        assert found.explain is not None
        assert found.explain["understood"]["people"] == ("Alice",)
        assert found.explain["understood"]["periods"][0]["said"] == "in March"
        shown = found.hits[0].explain
        assert shown is not None
        assert shown["features"]["speaker"] == 1.0
        assert set(shown["shares"]) == set(shown["features"])

    run(work())


def test_erased_speakers_are_no_longer_known(over: Over) -> None:
    s, run = over

    async def work() -> None:
        id = await s.remember("I painted a lake", speaker="Alice")
        await s.remember("I painted a barn", speaker="Bob")
        assert (await s.engine._core.primary.context("local", ["agent"])).speakers == {"Alice", "Bob"}
        await s.engine._core.primary.delete("local", [id])
        assert (await s.engine._core.primary.context("local", ["agent"])).speakers == {"Bob"}

    run(work())


def test_around_gives_runs_in_the_order_written(over: Over) -> None:
    s, run = over

    async def work() -> None:
        ids = [await s.remember(f"turn {n}", session_id="s") for n in range(9)]
        alone = await s.remember("no session")
        await s.engine._core.primary.delete("local", [ids[4]])
        search = Search(Reach("local", ("agent",)), "turn")
        runs = await s.engine._core.primary.neighbours_in_session(search, [ids[3], ids[5], ids[0], alone], 1)
        assert sorted([c.memory.content for c in r] for r in runs) == [
            ["turn 0", "turn 1"],
            ["turn 2", "turn 3", "turn 5", "turn 6"],
        ]
        assert all(c.matched == 1 for r in runs for c in r)

    run(work())
