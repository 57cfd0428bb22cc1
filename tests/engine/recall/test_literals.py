"""Literals: what of a question must be found as written."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.recall import literals


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
    ("question", "exact"),
    [
        ("“curly” or „low“ or «angled»", ("curly", "low", "angled")),
        ('"Twice" and "twice"', ("twice",)),
        ('"x" is too short', ()),
        ("10.0.0.1 and 12:30:15", ("10.0.0.1", "12:30:15")),
        ("std::io and foo.bar.baz", ("std::io", "foo.bar.baz")),
        ("mail a@example.com now", ("a@example.com",)),
        ("use --force or -rf", ("--force", "-rf")),
        ("Users\\alice", ("users\\alice",)),
        ("at 9pm on the 3rd", ()),
        ("one.two. And three", ("one.two",)),
        ("99 or 100", ("100",)),
    ],
)
def test_other_things_that_are_kept_exact(question: str, exact: tuple[str, ...]) -> None:
    assert literals.literals(question) == exact


def test_at_most_eight_are_kept() -> None:
    assert literals.literals(" ".join(f"ID-{i}" for i in range(20))) == tuple(f"id-{i}" for i in range(8))


def test_without_literals_nothing_is_shared() -> None:
    assert literals.share([], "anything") == 0.0


def test_a_later_whole_word_counts_after_a_part_of_one() -> None:
    assert literals.share(["ab1"], "xab1 ab12 ab1") == 1.0
    assert literals.share(["ab1"], "xab1 ab12") == 0.0
    assert literals.share(["/etc/"], "see/etc/hosts") == 1.0, "a sign ends a word by itself"


@given(st.text(max_size=120))
def test_literals_of_anything_are_in_it(question: str) -> None:
    found = literals.literals(question)
    assert len(set(found)) == len(found) <= 8
    assert all(literal in question.casefold() for literal in found)
    assert 0.0 <= literals.share(found, question.casefold()) <= 1.0
