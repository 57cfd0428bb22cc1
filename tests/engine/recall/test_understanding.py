"""Questions analysed: whom they name, what they ask for, and that any text can be asked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.understanding import ALL, KINDS, RecallParts, analyse, has_kind
from commonplace.stores.base import AgentContext
from commonplace.stores.text import query_terms
from commonplace.wire.plain import check_json

NOW = int(datetime(2026, 3, 18, 15, 30, tzinfo=UTC).timestamp() * 1000)  # a Wednesday
ALICE_AND_BOB = AgentContext(frozenset({"Alice", "Bob Marsh", "Will"}))


def day(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


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
    asked = analyse("What did Alice paint?", ALICE_AND_BOB, NOW, RecallParts(names=False))
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


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What time is it?", "time"), ("Which day suits you?", "time"), ("How long does it take?", "time"),
        ("Wann kommst du?", "time"), ("Quand arrive-t-il ?", "time"), ("¿Cuándo?", "time"), ("いつですか", "time"),
        ("How often does it run?", "number"), ("Which port is it?", "number"), ("Wie viele sind es?", "number"),
        ("Combien de pages ?", "number"), ("多少钱", "number"),
        ("Whose bicycle is it?", "person"), ("Wer war das?", "person"), ("¿Quién es?", "person"),
        ("Where is it?", "place"), ("Wo ist es?", "place"), ("¿Dónde está?", "place"),
        ("When and where?", "time"), ("How is it made?", None), ("whenever", None),
    ],
)  # fmt: skip
def test_the_kind_of_thing_that_is_asked_for(question: str, kind: str | None) -> None:
    assert analyse(question).wants == kind
    assert analyse(question, parts=RecallParts(kinds=False)).wants is None


@pytest.mark.parametrize(
    ("kind", "text", "has"),
    [
        ("time", "at nine o'clock on Monday", True), ("time", "by 9", True), ("time", "nothing of the sort", False),
        ("time", "am Dienstag", True), ("time", "三月", True),
        ("number", "a dozen eggs", True), ("number", "42", True), ("number", "some eggs", False),
        ("person", "It was Alice", True), ("person", "my sister", True), ("person", "it was raining", False),
        ("place", "behind the shed", True), ("place", "/etc/hosts", True), ("place", "it rained", False),
    ],
)  # fmt: skip
def test_what_has_the_kind_of_thing_asked_for(kind: str, text: str, has: bool) -> None:
    assert has_kind(kind, text) is has
    assert kind in KINDS


@pytest.mark.parametrize(
    ("question", "past", "latest"),
    [
        ("Where did we use to live? We used to live there.", True, False),
        ("What was it at first?", True, False),
        ("以前はどこ", True, False),
        ("Which port is it these days?", False, True),
        ("Was ist jetzt die Adresse?", False, True),
        ("最新的版本", False, True),
        ("What is the port?", False, False),
        ("Is the former address still current?", True, True),
    ],
)
def test_whether_the_past_or_the_latest_is_meant(question: str, past: bool, latest: bool) -> None:
    asked = analyse(question)
    assert (asked.past, asked.latest) == (past, latest)


@pytest.mark.parametrize(
    ("question", "naming"),
    [
        ("What did Bob say about LP-2217?", ["Bob", "LP-2217"]),
        ("Alice painted it.", []),  # a sentence begins with a capital anyway
        ("It rained. Alice came", []),
        ("and then Alice came", ["Alice"]),
        ("Am I right?", []),
        ("run foo_bar on 10.0.0.7", ["foo_bar", "10.0.0.7"]),
        ("nothing special", []),
        ("see /etc/hosts, 2nd line: Who wrote E4?", ["etc/hosts", "2nd", "E4"]),
        ("why is it 5\u00b2 for Bob's", ["5\u00b2", "Bob's"]),
    ],
)
def test_words_that_name_one_thing(question: str, naming: list[str]) -> None:
    assert analyse(question).names == tuple(tuple(query_terms(word)) for word in naming)


def test_a_part_that_is_off_finds_nothing_of_its_kind() -> None:
    question = "What did Alice say about BF-E417 in March?"
    whole = analyse(question, ALICE_AND_BOB, NOW)
    assert (bool(whole.people), bool(whole.periods), bool(whole.literals), whole.language) == (True, True, True, "en")
    off = RecallParts(names=False, times=False, literals=False, languages=False)
    none = analyse(question, ALICE_AND_BOB, NOW, off)
    assert (none.people, none.periods, none.literals, none.language) == ((), (), (), None)
    assert off.left_out() == ["names", "times", "literals", "languages"]
    assert ALL.left_out() == []


def test_an_explanation_names_what_was_understood_and_nothing_else() -> None:
    shown = analyse("What did Alice say in March?", ALICE_AND_BOB, NOW).explain()
    assert set(shown) == {"sought", "people", "periods", "language"}
    assert shown["people"] == ["Alice"]
    assert shown["periods"] == [{"said": "in March", "start": day("2026-03-01"), "end": day("2026-04-01")}]
    assert analyse("").explain() == {}


@pytest.mark.parametrize(
    "question",
    ["who paid 300?", "in March 2024", "v1.2.3 or E1234", 'the "red bike"', "Alice, 2 days ago?", "٣٠٠", "²", "x"],
)
def test_what_was_understood_is_a_document(question: str) -> None:
    known = AgentContext(frozenset({"Alice"}))
    check_json(analyse(question, known, now=1_750_000_000_000).explain())
