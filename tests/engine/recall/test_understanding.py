from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall import literals, names, times
from commonplace.engine.recall.languages import language
from commonplace.engine.recall.understanding import Parts, analyse
from commonplace.stores.base import AgentContext

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
    asked = analyse("What did Alice paint?", ALICE_AND_BOB, NOW, Parts(names=False))
    assert asked.people == ()
    assert asked.sought == "What did Alice paint?"


def test_a_beginning_that_fits_two_names_names_nobody() -> None:
    assert names.match_names("Ali wrote", frozenset({"Alice", "Alistair"})) == []


def test_names_without_capitals_are_found_too() -> None:
    assert [n.name for n in names.match_names("夏美の当番はいつ", frozenset({"夏美"}))] == []  # no word ends there
    assert [n.name for n in names.match_names("夏美 当番", frozenset({"夏美"}))] == ["夏美"]


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what happened on 2026-03-14?", "2026-03-14", "2026-03-15"),
        ("the report of 2025-11", "2025-11-01", "2025-12-01"),
        ("what did we decide in March?", "2026-03-01", "2026-04-01"),
        ("what did we decide in May?", "2025-05-01", "2025-06-01"),
        ("the trip in December 2024", "2024-12-01", "2025-01-01"),
        ("dinner on 7 February", "2026-02-07", "2026-02-08"),
        ("dinner on February 7th, 2025", "2025-02-07", "2025-02-08"),
        ("what did Bob say yesterday?", "2026-03-17", "2026-03-18"),
        ("what did Bob say last week?", "2026-03-09", "2026-03-16"),
        ("and last weekend?", "2026-03-14", "2026-03-16"),
        ("costs this month", "2026-03-01", "2026-04-01"),
        ("costs last month", "2026-02-01", "2026-03-01"),
        ("sales last year", "2025-01-01", "2026-01-01"),
        ("sales in 2024", "2024-01-01", "2025-01-01"),
        ("the heat last summer", "2025-06-01", "2025-09-01"),
        ("the frost in winter 2024", "2024-12-01", "2025-03-01"),
        ("we met on Monday", "2026-03-16", "2026-03-17"),
        ("im Februar", "2026-02-01", "2026-03-01"),
    ],
)
def test_times_are_resolved_against_now(question: str, start: str, end: str) -> None:
    (period,) = times.periods(question, NOW)
    assert (period.start, period.end) == (day(start), day(end)), period


@pytest.mark.parametrize(
    "question", ["may I go?", "march on, march on", "the 31st of June", "who will spring the trap", "a fall from grace"]
)
def test_what_is_no_time_is_none(question: str) -> None:
    assert times.periods(question, NOW) == ()


def test_agreement_is_whole_inside_and_falls_with_distance() -> None:
    march = times.periods("in March", NOW)
    assert times.agreement(march, day("2026-03-10")) == times.agreement(march, day("2026-04-03")) == 1.0
    near, far = times.agreement(march, day("2026-02-20")), times.agreement(march, day("2025-05-20"))
    assert 1.0 > near > far > 0.0


@pytest.mark.parametrize(
    ("question", "exact"),
    [
        ("What does BF-E417 mean?", ("bf-e417",)),
        ("segment.rs:288 index out of bounds", ("segment.rs:288",)),
        ('who said "as cold as charity"?', ("as cold as charity",)),
        ("where is /etc/hosts and foo_bar?", ("/etc/hosts", "foo_bar")),
        ("does `git push --force` work with fooBar", ("git push --force", "foobar")),
        ("port 9440 or v2.3.1", ("9440", "v2.3.1")),
        ("sales in 2024 and on 2026-03-14", ()),
        ("what is it like?", ()),
    ],
)
def test_what_is_kept_exact(question: str, exact: tuple[str, ...]) -> None:
    assert literals.literals(question) == exact


def test_literals_are_whole_words() -> None:
    assert literals.share(["lp-22"], "see lp-22.") == 1.0
    assert literals.share(["lp-22"], "see lp-221") == 0.0
    assert literals.share(["lp-22", "x_1"], "xlp-22, lp-22") == 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the key?", "en"),
        ("Der Schlüssel liegt unter der Matte", "de"),
        ("Was ist das für ein Schlüssel", "de"),
        ("La clé est sous le paillasson, avec les autres", "fr"),
        ("¿Qué cepa necesita gentamicina? Es para el lunes", "es"),
        ("鍵はマットの下", "ja"),
        ("钥匙在垫子下面", "zh"),
        ("열쇠는 매트 아래", "ko"),
        ("BF-E417", None),
        ("🔑", None),
    ],
)
def test_language(text: str, expected: str | None) -> None:
    assert language(text) == expected


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
