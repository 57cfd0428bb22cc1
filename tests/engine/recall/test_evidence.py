from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall.evidence import Evidence, gather, text_for_judge
from commonplace.engine.recall.understanding import analyse
from commonplace.wire.record import Memory


@dataclass
class Candidate:
    memory: Memory
    dense: float | None
    late: float | None = None


def memory(content: str, **fields: object) -> Memory:
    return Memory("id", "local", "a", "semantic", content, **fields)  # type: ignore[arg-type]


def evidence_for(question: str, content: str, **fields: object) -> Evidence:
    (one,) = gather(analyse(question), [Candidate(memory(content, **fields), 0.5)], 1)
    assert one is not None
    return one


@pytest.mark.parametrize(
    ("question", "content", "coverage"),
    [
        ("Where does Alice keep her bicycle?", "Alice keeps the bicycles in the cellar", 1.0),
        ("Where does Alice keep her bicycle?", "Bob has a bicycle", 1 / 3),
        ("Where does Alice keep her bicycle?", "The soup needs salt", 0.0),
        ("what is it?", "nothing in common", 0.0),
    ],
)
def test_coverage_is_the_share_of_telling_words(question: str, content: str, coverage: float) -> None:
    assert evidence_for(question, content).coverage == pytest.approx(coverage)


@pytest.mark.parametrize(
    ("question", "content", "missing"),
    [
        ("What did Bob say about LP-2217?", "LP-2217 is fixed, says Bob", 0.0),
        ("What did Bob say about LP-2217?", "LP-2218 is open, says Bob", 0.5),
        ("What did Bob say about LP-2217?", "All is well", 1.0),
        ("Why is the sky blue?", "All is well", 0.0),
        ("Which port does 10.0.0.7 use?", "10.0.0.7 listens on 8080", 0.0),
        ("And I? Where was I?", "nobody knows", 0.0),
    ],
)
def test_names_and_numbers_asked_about_must_be_there(question: str, content: str, missing: float) -> None:
    assert evidence_for(question, content).names_missing == pytest.approx(missing)


def test_a_speaker_counts_as_named() -> None:
    assert evidence_for("What did Bob say?", "It is fixed", speaker="Bob").names_missing == 0.0


@pytest.mark.parametrize(
    ("question", "content", "fits"),
    [
        ("When is the dentist?", "the dentist on Tuesday", 1),
        ("When is the dentist?", "the dentist is friendly", -1),
        ("How many people came?", "forty came", 1),
        ("How many people came?", "people came", -1),
        ("Which port does it use?", "it uses 8080", 1),
        ("Who repaired it?", "it was repaired by Alice", 1),
        ("Who repaired it?", "it was repaired", -1),
        ("Where is the key?", "the key is under the pot", 1),
        ("Wann kommt der Zug?", "der Zug kommt um 9", 1),
        ("¿Cuándo llega el tren?", "el lunes", 1),
        ("Combien de pages ?", "deux pages", 1),
        ("Why is it red?", "it is red", 0),
    ],
)
def test_what_is_asked_for_must_be_there(question: str, content: str, fits: int) -> None:
    assert evidence_for(question, content).answer_type == fits


def test_margin_is_over_the_background() -> None:
    cosines = [0.9, 0.8, 0.7, *[0.2] * 10]
    found = gather(analyse("tea?"), [Candidate(memory("tea"), cosine) for cosine in cosines], 2)
    assert [e.margin for e in found if e] == pytest.approx([0.7, 0.6])
    (alone,) = gather(analyse("tea?"), [Candidate(memory("tea"), 0.9)], 1)
    assert alone is not None
    assert alone.margin == pytest.approx(0.0)


def test_late_interaction_and_its_margin_are_evidence_where_there_are_any() -> None:
    lates = [0.9, 0.8, 0.7, *[0.2] * 10]
    first, *_ = gather(analyse("tea?"), [Candidate(memory("tea"), 0.5, late) for late in lates], 2)
    assert first is not None
    assert (first.late, first.late_margin) == (0.9, pytest.approx(0.7))
    (without,) = gather(analyse("tea?"), [Candidate(memory("tea"), 0.5)], 1)
    assert without is not None
    assert (without.late, without.late_margin) == (0.0, 0.0)


def test_a_memory_without_a_vector_gives_no_evidence() -> None:
    assert gather(analyse("tea?"), [Candidate(memory("tea"), None)], 5) == [None]


@given(st.text(max_size=80), st.text(max_size=200), st.floats(-1, 1))
def test_evidence_of_anything_stays_in_range(question: str, content: str, cosine: float) -> None:
    (one,) = gather(analyse(question), [Candidate(memory(content), cosine)], 1)
    assert one is not None
    assert 0 <= one.coverage <= 1
    assert 0 <= one.names_missing <= 1
    assert one.answer_type in (-1, 0, 1)


def test_a_long_memory_is_read_by_its_best_passage() -> None:
    filler = "The weather was fine and nothing happened that day. " * 40
    content = f"{filler}The spare key lies under the blue pot. {filler}"
    text = text_for_judge(analyse("Where is the spare key?"), memory(content))
    assert "blue pot" in text
    assert len(text) < 1200
    assert text_for_judge(analyse("Where is the spare key?"), memory("short")) == "short"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"speaker": "Bob", "event_time": 1_760_000_000_000}, "Bob (2025-10-09): tea"),
        ({"speaker": "Bob"}, "Bob: tea"),
        ({"title": "Drinks"}, "Drinks\ntea"),
        ({"event_time": 1_760_000_000_000}, "tea"),
        ({"speaker": "Bob", "event_time": 10**18}, f"Bob ({10**18}): tea"),
    ],
)
def test_a_judge_reads_who_said_it_and_when(fields: dict[str, object], shown: str) -> None:
    assert text_for_judge(analyse("?"), memory("tea", **fields)) == shown
