"""Recall: which questions are answered, what is explained, and what each costs the agent's budget."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.types import Query
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import RateLimited, ValidationError
from commonplace.wire.record import Principal


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
        assert found.explain["understood"]["people"] == ("Alice",)
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
