"""Names: which of the people an agent knows a question names, where, and what is left without them."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall import names
from commonplace.engine.recall.names import NameMatch, match_names, without_names

KNOWN = frozenset({"Alice", "Bob Marsh", "Bob Stone", "Mary Ann Lee", "Will", "Mark"})


def test_a_beginning_that_fits_two_names_names_nobody() -> None:
    assert names.match_names("Ali wrote", frozenset({"Alice", "Alistair"})) == []


def test_names_without_capitals_are_found_too() -> None:
    assert [n.name for n in names.match_names("夏美の当番はいつ", frozenset({"夏美"}))] == []  # no word ends there
    assert [n.name for n in names.match_names("夏美 当番", frozenset({"夏美"}))] == ["夏美"]


@pytest.mark.parametrize(
    ("question", "people"),
    [
        ("What did Alice say?", ["Alice"]),
        ("What did alice say?", []),  # the question writes capitals, so a name would have one
        ("what did alice say", ["Alice"]),
        ("what did bob marsh say", ["Bob Marsh"]),
        ("What did BOB MARSH say?", ["Bob Marsh"]),
        ("What did Bob say?", ["Bob Marsh", "Bob Stone"]),
        ("What did Stone say?", ["Bob Stone"]),
        ("What did Mary Ann Lee say?", ["Mary Ann Lee"]),
        ("What did Lee say to Alice?", ["Mary Ann Lee", "Alice"]),
        ("Alice and Alice again", ["Alice", "Alice"]),
        ("When will it end?", []),
        ("Will it end?", []),  # at the beginning any word has a capital
        ("Where does Will live?", ["Will"]),
        ("please mark it as done", ["Mark"]),
        ("Please mark it as done", []),
        ("Al said so", []),  # too short for a nickname
        ("Mar said so", []),  # Mary, Mark and Marsh begin so
        ("Alic said so", ["Alice"]),
        ("who is it?", []),
    ],
)
def test_whom_a_question_names(question: str, people: list[str]) -> None:
    assert [match.name for match in match_names(question, KNOWN)] == people


@pytest.mark.parametrize(
    ("question", "said"),
    [("What is Alice's boat?", "Alice's"), ("What is Alice’s boat?", "Alice’s"), ("the boat of Alice", "Alice"),
     ("James' boat", "James'"), ("Alice's' boat", "Alice's"), ("Alice'sister", "Alice")],
)  # fmt: skip
def test_a_match_covers_the_possessive(question: str, said: str) -> None:
    (match,) = match_names(question, frozenset({"Alice", "James"}))
    assert question[match.start : match.end] == said


def test_nobody_is_named_where_nobody_is_known() -> None:
    assert match_names("What did Alice say?", frozenset()) == []


def test_among_very_many_names_nicknames_are_not_guessed() -> None:
    crowd = frozenset({"Alice", *(f"Person{i}" for i in range(300))})
    assert [match.name for match in match_names("Alice came", crowd)] == ["Alice"]
    assert match_names("Alic came", crowd) == []


def test_a_name_of_many_words_is_known_by_its_first_four() -> None:
    known = frozenset({"Ana Maria de la Cruz"})
    (match,) = match_names("Did Ana Maria de la Cruz call?", known)
    assert match.name == "Ana Maria de la Cruz"


def test_what_is_remembered_of_names_goes_with_them() -> None:
    known = frozenset({"Somebody", "Else"})
    match_names("Somebody came", known)
    before = len(names._indexes)
    del known
    gc.collect()
    assert len(names._indexes) == before - 1


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What did Alice paint?", "What did paint?"),
        ("Alice's boat and Mark's car", "boat and car"),
        ("Who is Alice?", "Who is Alice?"),  # nothing telling would remain
        ("nobody is named", "nobody is named"),
    ],
)
def test_what_is_left_without_names(question: str, rest: str) -> None:
    assert without_names(question, match_names(question, KNOWN)) == rest


def test_overlapping_matches_are_taken_out_once() -> None:
    both = [NameMatch("Bob Marsh", 5, 8), NameMatch("Bob Stone", 5, 8)]
    assert without_names("boat Bob bought", both) == "boat bought"


@given(st.text(max_size=80), st.frozensets(st.text(min_size=1, max_size=10), max_size=6))
def test_matches_lie_in_the_question_in_order(question: str, known: frozenset[str]) -> None:
    found = match_names(question, known)
    assert {match.name for match in found} <= known
    assert all(0 <= match.start < match.end <= len(question) for match in found)
    assert [match.start for match in found] == sorted(match.start for match in found)
    without_names(question, found)
