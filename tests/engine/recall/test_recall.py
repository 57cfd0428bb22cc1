"""Recall: which questions are answered, what is explained, and what each costs the agent's budget."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from commonplace.embedders.encoder import NAME
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.recall import recall as recalling, relevance
from commonplace.engine.recall.recall import shown_relevance, shown_score
from commonplace.engine.recall.understanding import RecallParts
from commonplace.engine.types import Draft, Hit, Query, Snapshot
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, RateLimited, ValidationError
from commonplace.wire.record import Memory, Principal


@pytest.mark.parametrize("query", ["", " \n\t ", "\u3000"])
def test_an_empty_question_is_refused(subject: Subject, run: Any, query: str) -> None:
    with pytest.raises(ValidationError):
        run(subject.recall(query))


def test_a_question_of_a_megabyte_is_refused(subject: Subject, run: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        run(subject.recall("word " * 200_000))
    assert "at most 32,768" in refused.value.message


@pytest.mark.parametrize("query", ["the of and to", "😀😀", "?!…", "\0", "a" * 32_768, "x " * 16_000, "٣", "'\"--;"])
def test_strange_questions_get_answers(subject: Subject, run: Any, query: str) -> None:
    ids = {run(subject.remember("the cat and the hat")), run(subject.remember("party 😀 time"))}
    assert {m.id for m in run(subject.recall(query))} <= ids


def test_a_question_of_stop_words_still_finds_them(subject: Subject, run: Any) -> None:
    run(subject.remember("to be or not to be"))
    run(subject.remember("cats purr"))
    assert run(subject.recall("to be or not to be", k=1))[0].content == "to be or not to be"


def test_agents_read_together_are_ranked_together(subject: Subject, run: Any) -> None:
    run(subject.remember("violins are made of spruce", "one"))
    run(subject.remember("cellos are made of maple", "two"))
    found = run(subject.engine.recall(WHO, Query(("one", "two"), "what are cellos made of"))).hits
    assert [hit.memory.agent_id for hit in found] == ["two", "one"]


async def _recall(subject: Subject, text: str, **query: Any) -> list[str]:
    found = await subject.engine.recall(WHO, Query(("agent",), text, **query))
    return [hit.memory.content for hit in found.hits]


def test_questions_without_anything_to_look_for(subject: Subject, run: Any) -> None:
    async def work() -> None:
        await subject.remember("Alice likes green tea and it is what she drinks")
        assert (
            await _recall(subject, "🎉🎉")
            == await _recall(subject, "???")
            == await _recall(subject, "what is it to you")
            == []
        )
        for text, says in (
            ("", "must not be blank"),
            (" \n\t ", "must not be blank"),
            ("x" * 1_048_576, "1,048,576 characters"),
        ):
            with pytest.raises(ValidationError, match=says):
                await _recall(subject, text)

    run(work())


def test_explain_shows_what_was_understood_and_every_share(subject: Subject, run: Any) -> None:
    async def work() -> None:
        await subject.remember("I painted a lake", speaker="Alice", session_id="s")
        found = await subject.engine.recall(WHO, Query(("agent",), "What did Alice paint in March?", explain=True))
        assert found.explain is not None
        assert found.explain["understood"]["people"] == ["Alice"]
        assert found.explain["understood"]["periods"][0]["said"] == "in March"
        shown = found.hits[0].explain
        assert shown is not None
        assert shown["features"]["speaker"] == 1.0
        assert set(shown["shares"]) == set(shown["features"])

    run(work())


def test_a_recall_that_is_refused_costs_no_agent_anything(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock, settings=Settings(recalls_per_minute=1))
        await engine.recall(WHO, Query(("b",), "x"))
        with pytest.raises(RateLimited):
            await engine.recall(WHO, Query(("a", "b"), "x"))
        await engine.recall(WHO, Query(("a",), "x"))
        await engine.close()

    asyncio.run(scenario())


def test_the_shared_space_is_added_for_whoever_may_read_it(subject: Subject, run: Any) -> None:
    run(subject.remember("the office has a blue door", "ada"))
    run(subject.remember("the office opens at nine", "shared"))
    only_ada = Principal("ada", "local", "reader", ("ada",))
    both = Principal("ada", "local", "reader", ("ada", "shared"))

    def agents(who: Principal, **options: bool) -> set[str]:
        found = run(subject.engine.recall(who, Query(("ada",), "the office", **options)))
        return {hit.memory.agent_id for hit in found.hits}

    assert agents(both) == {"ada"}
    assert agents(both, include_shared=True) == {"ada", "shared"}
    assert agents(only_ada, include_shared=True) == {"ada"}, "left out, not refused"
    searched = run(subject.engine.search(only_ada, Query(("ada",), "the office", include_shared=True), limit=5))
    assert [hit.memory.agent_id for hit in searched.hits] == ["ada"]


# what an answer says


@pytest.mark.parametrize(
    ("relevance", "score", "explain", "shown"),
    [
        (0.7, 0.1, {"blend": 0.2}, 0.7),
        (0.0, 0.1, {"blend": 0.2}, 0.0),
        (None, 0.1, {"blend": 0.2}, 0.2),
        (None, 0.1, {}, 0.1),
        (None, 0.1, None, 0.1),
        (None, 3.0, None, 1.0),
        (None, -3.0, None, 0.0),
    ],
)
def test_the_relevance_that_is_shown(
    relevance: float | None, score: float, explain: dict[str, Any] | None, shown: float
) -> None:
    hit = Hit(Memory("m", "t", "a", "semantic", "x"), score, "memory", relevance, explain=explain)
    assert shown_relevance(hit) == shown


def test_a_hit_explains_itself_by_rank_scores_and_shares(subject: Subject, run: Any) -> None:
    for content in ("blue harbour", "blue harbour!", "green meadow"):
        run(subject.remember(content))
    found = run(subject.engine.recall(WHO, Query(("agent",), "blue harbour", explain=True)))
    first, *rest = (hit.explain for hit in found.hits)
    assert {"store", "rank", "dense", "keyword", "blend", "fused", "demotion", "features", "shares"} <= set(first)
    assert (first["store"], first["rank"], first["demotion"]) == (subject.store.name, 0, 1.0)
    twins = [each["same_as"] for each in rest if "same_as" in each]
    assert twins == [found.hits[0].memory.id]
    assert found.explain["candidates"] == 3
    assert (found.explain["dense"], found.explain["as_of_seq"], found.explain["left_out"]) == (True, None, [])
    assert found.stores_queried == [subject.store.name]
    plain = run(subject.engine.recall(WHO, Query(("agent",), "blue harbour")))
    assert plain.explain is None
    assert all(hit.explain is None for hit in plain.hits)


def test_parts_that_are_left_out_are_named(subject: Subject, run: Any) -> None:
    query = Query(("agent",), "blue harbour", explain=True)
    found = run(recalling.recall(subject.engine._core, WHO, query, RecallParts(names=False, recency=False)))
    assert found.explain["left_out"] == ["names", "recency"]


def test_without_an_embedder_a_note_says_that_words_alone_were_searched(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock)
        found = await engine.recall(WHO, Query(("agent",), "blue harbour"))
        assert found.note == "no embedder is configured: recall is by keywords only"
        await engine.remember(WHO, Draft("agent", "semantic", "the harbour is blue"))
        bounded = await engine.recall(WHO, Query(("agent",), "blue harbour", min_score=0.5))
        assert "keywords only; min_score was not applied" in (bounded.note or ""), "one must not hide the other"
        assert (await engine.recall(WHO, Query(("agent",), "what is it"))).note is None, "no vector was needed"
        await engine.close()

    asyncio.run(scenario())


def test_a_demoted_memory_stands_behind_but_not_in_a_snapshot(subject: Subject, run: Any) -> None:
    first, second = run(subject.remember("blue harbour")), run(subject.remember("blue harbour lights"))
    snapshot = Snapshot(run(subject.store.sequence("local")), subject.clock())
    query = Query(("agent",), "blue harbour")
    before = run(subject.engine.recall(WHO, query)).hits
    assert [hit.memory.id for hit in before] == [first, second]
    run(subject.engine._core.transact("local", lambda tx: tx.demote([first], 0.25)))
    after = run(subject.engine.recall(WHO, query)).hits
    assert [hit.memory.id for hit in after] == [second, first]
    assert after[1].score == pytest.approx(before[0].score / 4)
    then = run(subject.engine.recall(WHO, replace(query, snapshot=snapshot))).hits
    assert [hit.memory.id for hit in then] == [first, second]


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relevance as it is fitted for the embedder that comes with the package, for one that has no fit."""
    fit = relevance.fitted(NAME)
    monkeypatch.setattr(relevance, "fitted", lambda name: fit)


HARBOUR = ("blue harbour", "blue harbour lights", "the harbour is blue at night", "a blue door", "green meadow")


@pytest.mark.usefixtures("calibrated")
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("demoted", [0, 1, 2])
def test_demotion_leaves_relevance_alone(subject: Subject, run: Any, k: int, demoted: int) -> None:
    ids = [run(subject.remember(content)) for content in HARBOUR]
    query = Query(("agent",), "blue harbour", 5, min_score=0.0)
    before = {hit.memory.id: hit for hit in run(subject.engine.recall(WHO, query)).hits}
    assert len({hit.relevance for hit in before.values()}) == 5
    lowered = list(before)[demoted]
    run(subject.engine._core.transact("local", lambda tx: tx.demote([lowered], 0.25)))
    after = run(subject.engine.recall(WHO, replace(query, k=k))).hits
    expected = sorted(ids, key=lambda id: -before[id].score * (0.25 if id == lowered else 1.0))[:k]
    assert [hit.memory.id for hit in after] == expected
    for hit in after:
        assert hit.relevance == before[hit.memory.id].relevance
    assert [hit.score for hit in after] == sorted((hit.score for hit in after), reverse=True)


@pytest.mark.usefixtures("calibrated")
def test_a_search_stands_in_the_order_of_the_score_it_shows_and_is_cut_by_it(subject: Subject, run: Any) -> None:
    for content in (*HARBOUR, "harbour blue blue harbour what harbour", "blue"):
        run(subject.remember(content))
    query = Query(("agent",), "blue harbour at night")
    first = run(subject.engine.search(WHO, query, limit=10, at_least=0.0)).hits[0].memory.id
    run(subject.engine._core.transact("local", lambda tx: tx.demote([first], 0.25)))
    every = run(subject.engine.search(WHO, query, limit=10, at_least=0.0)).hits
    scores = [shown_score(hit) for hit in every]
    assert scores == sorted(scores, reverse=True)
    assert shown_score(next(h for h in every if h.memory.id == first)) == pytest.approx(
        next(h.relevance for h in every if h.memory.id == first) / 4, abs=1e-4
    )
    for least in scores:
        found = run(subject.engine.search(WHO, query, limit=10, at_least=least)).hits
        assert [shown_score(hit) for hit in found] == [score for score in scores if score >= least]


def test_recall_as_of_an_instant_sees_the_versions_of_then(subject: Subject, run: Any) -> None:
    id = run(subject.remember("the port is 5432"))
    at = subject.clock()
    subject.clock.advance(10)
    run(subject.update(id, content="the port is 6543"))
    query = Query(("agent",), "which port?", explain=True)
    assert run(subject.engine.recall(WHO, query)).hits[0].memory.content == "the port is 6543"
    past = run(subject.engine.recall(WHO, replace(query, as_of=at)))
    assert past.hits[0].memory.content == "the port is 5432"
    assert past.explain["as_of_seq"] == 1


# searching: the best, and how many there are


def test_a_search_counts_what_it_does_not_show(subject: Subject, run: Any) -> None:
    for n in range(12):
        run(subject.remember(f"note {n} about the harbour"))
    run(subject.remember("elsewhere", "other"))
    found = run(subject.engine.search(WHO, Query(("agent",), "harbour"), limit=3))
    assert (len(found.hits), found.total) == (3, 12)
    run(subject.engine.flush())
    assert sum(memory.recalls for memory in run(subject.list())) == 3, "only what is shown counts as recalled"


def test_a_cut_off_of_the_callers_own_is_applied_to_what_is_shown(subject: Subject, run: Any) -> None:
    run(subject.remember("blue harbour"))
    for n in range(6):
        run(subject.remember(f"unrelated number {n}"))
    query = Query(("agent",), "blue harbour")
    every = run(subject.engine.search(WHO, query, limit=20, at_least=0.0))
    assert every.total == len(every.hits) == 7
    best, second = (shown_relevance(hit) for hit in every.hits[:2])
    some = run(subject.engine.search(WHO, query, limit=20, at_least=(best + second) / 2))
    assert ([hit.memory.content for hit in some.hits], some.total) == (["blue harbour"], 1)


def test_counting_by_words_goes_on_past_the_limit(clock: FakeClock) -> None:
    async def scenario() -> None:
        store = InMemory(clock)
        engine = await Engine.open(store, clock=clock)
        subject = Subject(engine, store, clock)
        for n in range(40):
            await subject.remember(f"harbour {n}")
        await subject.remember("meadow")
        found = await engine.search(WHO, Query(("agent",), "harbour"), limit=2)
        assert (len(found.hits), found.total) == (2, 40)
        await engine.close()

    asyncio.run(scenario())


def test_no_more_than_a_thousand_are_counted(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalling, "MAX_COUNTED", 5)
    for n in range(8):
        run(subject.remember(f"note {n} about the harbour"))
    assert run(subject.engine.search(WHO, Query(("agent",), "harbour"), limit=2)).total == 5
    assert run(subject.engine.search(WHO, Query(("agent",), "harbour"), limit=2, at_least=0.001)).total == 5


def test_a_search_of_no_agents_finds_nothing(subject: Subject, run: Any) -> None:
    found = run(subject.engine.search(WHO, Query((), "harbour"), limit=5))
    assert (found.hits, found.total) == ([], 0)


# budgets


def test_nobody_spends_the_budget_of_an_agent_that_is_not_theirs(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock, settings=Settings(recalls_per_minute=1))
        stranger = Principal("eve", role="reader", agents=("eve",))
        with pytest.raises(Forbidden):
            await engine.recall(stranger, Query(("ada",), "x"))
        await engine.recall(WHO, Query(("ada",), "x"))
        with pytest.raises(RateLimited, match="agent 'ada' has used up its 1 recalls a minute; try again in"):
            await engine.recall(WHO, Query(("ada",), "x"))
        with pytest.raises(RateLimited):
            await engine.search(WHO, Query(("ada",), "x"), limit=1)
        await engine.recall(Principal("other", "acme"), Query(("ada",), "x"))  # each tenant has its own
        await engine.close()

    asyncio.run(scenario())


def test_a_question_to_several_agents_is_an_entry_about_all(subject: Subject, run: Any) -> None:
    run(subject.engine.recall(WHO, Query(("one",), "x")))
    run(subject.engine.recall(WHO, Query(("one", "two"), "x")))
    entries = run(subject.engine.ledger.entries(WHO, operation="recall"))
    assert [entry.agent_id for entry in entries] == ["one", "*"]
