"""Questions in words: what does not answer them is neither shown nor counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory
from commonplace.engine.peers import asking
from commonplace.engine.peers.asking import (
    MIN_SHARE_OF_BEST,
    PeerAnswer,
    PeerQuery,
    in_domain,
    keywords_in,
    least_relevance,
)
from commonplace.engine.types import Hit
from commonplace.testing.subject import Subject
from commonplace.wire import record
from commonplace.wire.errors import Forbidden
from commonplace.wire.filters import matches

LOCAL = record.Principal()
ABOUT = [
    "Pruning as identity: what you forget defines you",
    "Salience decides what a pruning pass retains",
    "Alice is allergic to peanuts",
    "The deployment to staging runs every Tuesday at 9",
    "The quarterly report is due on the 15th of March",
    "The cat is called Miso",
]


def hit(relevance: float | None) -> Hit:
    return Hit(record.Memory("i", "t", "a", "semantic", "x"), 1.0, "s", relevance)


@pytest.mark.parametrize(
    ("relevances", "least"),
    [
        ([], 0.0),
        ([0.5], 0.5 * MIN_SHARE_OF_BEST),
        ([0.02, 0.9, 0.5], 0.9 * MIN_SHARE_OF_BEST),
        ([None, None], 0.0),
        ([0.9, None], 0.0),
        ([0.0], 0.0),
    ],
)
def test_what_a_hit_must_have_beside_the_others(relevances: list[float | None], least: float) -> None:
    assert least_relevance([hit(each) for each in relevances]) == pytest.approx(least)


@pytest.mark.slow
def test_what_lies_far_behind_the_best_is_left_out(tmp_path: Path) -> None:
    async def ask(limit: int) -> tuple[set[str], int]:
        async with Memory("alice", data=tmp_path, embedder="encoder") as memory:
            engine = await memory.engine()
            requester = await engine.peers.requester(
                LOCAL, authenticated=True, agent="alice", claimed="alice", proved=None
            )
            query = PeerQuery((), "what do you know about pruning?")
            found = await engine.peers.ask(requester, query, limit=limit, show=10)
            return {match.memory.content for match in found.matches}, found.total

    async def fill() -> None:
        async with Memory("alice", data=tmp_path, embedder="encoder") as memory:
            for text in ABOUT:
                await memory.remember(text)

    asyncio.run(fill())
    assert asyncio.run(ask(10)) == (set(ABOUT[:2]), 2)
    shown, total = asyncio.run(ask(1))
    assert (len(shown), total) == (1, 2), "what was cut by the limit is counted, what does not answer is not"


def memory(content: str = "x", **fields: Any) -> record.Memory:
    return record.Memory("i", "t", "a", "semantic", content, **fields)


@pytest.mark.parametrize(
    ("fields", "keywords", "found"),
    [
        ({"content": "He prunes the roses"}, ("pruning", "rose", "tulip"), ("pruning", "rose")),
        ({"content": "the rose garden"}, ("garden rose",), ("garden rose",)),
        ({"content": "the rose garden"}, ("rose hedge",), ()),
        ({"title": "Roses"}, ("rose",), ("rose",)),
        ({"tags": ["roses"]}, ("rose",), ("rose",)),
        ({"metadata": {"k": "rose"}}, ("rose",), ()),
        ({"content": "the and of"}, ("the", "", "?"), ("the",)),
        ({"content": "rose"}, (), ()),
    ],
)
def test_which_keywords_a_memory_has(fields: dict[str, Any], keywords: tuple[str, ...], found: Any) -> None:
    assert keywords_in(memory(**fields), keywords) == found


@pytest.mark.parametrize(("fields", "inside"), [
    ({"project": "garden"}, True), ({"tags": ["x", "garden"]}, True), ({"project": "gardens"}, False), ({}, False),
])  # fmt: skip
def test_what_belongs_to_a_domain(fields: dict[str, Any], inside: bool) -> None:
    assert matches(memory(**fields), (in_domain("garden"),)) is inside


def ask(
    subject: Subject, run: Any, *, limit: int = 10, agents: tuple[str, ...] = ("agent",), **query: Any
) -> PeerAnswer:
    found: PeerAnswer = run(asking.ask(subject.engine._core, LOCAL, PeerQuery(agents, **query), limit))
    return found


def contents(answer: PeerAnswer) -> list[str]:
    return [match.memory.content for match in answer.matches]


def test_one_keyword_must_occur_and_more_of_them_come_first(subject: Subject, run: Any) -> None:
    for content in ("roses", "roses and tulips", "tulips", "nothing"):
        run(subject.remember(content))
    answer = ask(subject, run, keywords=("rose", "tulip"))
    assert contents(answer)[0] == "roses and tulips"
    assert set(contents(answer)) == {"roses", "roses and tulips", "tulips"}
    assert [(match.keywords, match.relevance) for match in answer.matches[:1]] == [(("rose", "tulip"), 1.0)]
    assert {match.relevance for match in answer.matches[1:]} == {0.5}
    assert (answer.total, answer.cut) == (3, None)


def test_words_put_the_holders_of_keywords_in_order(subject: Subject, run: Any) -> None:
    run(subject.remember("roses in the harbour at night"))
    run(subject.remember("roses on the roof"))
    run(subject.remember("the harbour at night"))
    answer = ask(subject, run, text="the harbour at night", keywords=("rose",))
    assert contents(answer) == ["roses in the harbour at night", "roses on the roof"]
    assert all(match.keywords == ("rose",) for match in answer.matches)
    assert ask(subject, run, text="the harbour", keywords=("tulip",)).matches == []


def test_conditions_alone_list_what_meets_them(subject: Subject, run: Any) -> None:
    for n in range(4):
        subject.clock.advance(1)
        run(subject.remember(f"note {n}", tags=["x"] if n % 2 else []))
    answer = ask(subject, run, where=(in_domain("x"),))
    assert (contents(answer), answer.total) == (["note 3", "note 1"], 2)
    cut = ask(subject, run, limit=1)
    assert (contents(cut), cut.total, cut.matches[0].relevance) == (["note 3"], 4, 1.0)


def test_a_limit_cuts_what_is_shown_and_not_what_is_counted(subject: Subject, run: Any) -> None:
    for n in range(5):
        run(subject.remember(f"rose {n}"))
    for query in ({"keywords": ("rose",)}, {"text": "rose"}, {"text": "rose", "keywords": ("rose",)}):
        answer = ask(subject, run, limit=2, **query)
        assert (len(answer.matches), answer.total) == (2, 5)


def test_when_only_the_best_were_looked_at_that_is_said(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MAX_ASKED", 3)
    for n in range(5):
        run(subject.remember(f"rose {n}"))
    assert ask(subject, run, keywords=("rose",)).cut == "only the best 3 that hold a keyword were looked at"


def test_every_agent_that_is_asked_must_be_the_callers(subject: Subject, run: Any) -> None:
    who = record.Principal("a", role="reader", agents=("one",))
    with pytest.raises(Forbidden):
        run(asking.ask(subject.engine._core, who, PeerQuery(("one", "two"), "x"), 5))
