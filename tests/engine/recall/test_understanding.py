"""Questions analysed: whom they name, what they ask for, and that any text can be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.understanding import Parts, analyse
from commonplace.stores.base import AgentContext

NOW = int(datetime(2026, 3, 18, 15, 30, tzinfo=UTC).timestamp() * 1000)  # a Wednesday
ALICE_AND_BOB = AgentContext(frozenset({"Alice", "Bob Marsh", "Will"}))


@pytest.mark.parametrize(
    ("question", "people", "sought"),
    [
        ("What did Alice paint?", ("Alice",), "What did paint?"),
        ("what is alice's favourite colour", ("Alice",), "what is favourite colour"),
        ("Which boat did Bob buy?", ("Bob Marsh",), "Which boat did buy?"),
        ("Did Bob Marsh and Alice go sailing?", ("Bob Marsh", "Alice"), "Did and go sailing?"),
        ("When will Alice move?", ("Alice",), "When will move?"),
        ("Where does Will live?", ("Will",), "Where does live?"),
        ("Who is Alice?", ("Alice",), "Who is Alice?"),
        ("Ali wrote a poem", ("Alice",), "wrote a poem"),
        ("Which tea does Carla like?", (), "Which tea does Carla like?"),
        ("malice aforethought", (), "malice aforethought"),
    ],
)
def test_people_are_those_the_agent_knows(question: str, people: tuple[str, ...], sought: str) -> None:
    asked = analyse(question, ALICE_AND_BOB, NOW)
    assert (asked.people, asked.sought) == (people, sought)


def test_names_stay_when_that_part_is_off() -> None:
    asked = analyse("What did Alice paint?", ALICE_AND_BOB, NOW, Parts(names=False))
    assert asked.people == ()
    assert asked.sought == "What did Alice paint?"


def test_the_past_the_latest_and_the_kind_of_answer() -> None:
    known = AgentContext()
    assert analyse("Where did we live before the move?", known, NOW).past
    assert analyse("What is the current port?", known, NOW).latest
    assert analyse("When did it break?", known, NOW).wants == "time"
    assert analyse("How many seats are there?", known, NOW).wants == "number"
    assert analyse("Who broke it?", known, NOW).wants == "person"
    assert analyse("Where did it break?", known, NOW).wants == "place"
    assert analyse("Why did it break?", known, NOW).wants is None


@pytest.mark.parametrize(("text", "telling"), [("what is it", False), ("🎉🎉", False), ("??", False), ("鍵", True)])
def test_what_tells_nothing_is_known(text: str, telling: bool) -> None:
    assert analyse(text, AgentContext(), NOW).telling is telling


@given(st.text(max_size=300), st.frozensets(st.text(min_size=1, max_size=12), max_size=6))
def test_any_text_is_understood(text: str, speakers: frozenset[str]) -> None:
    asked = analyse(text, AgentContext(speakers), NOW)
    assert set(asked.people) <= speakers
    assert all(p.start < p.end for p in asked.periods)
    if not asked.people:
        assert asked.sought == text
    asked.explain()
