"""Literals: what of a question must be found as written."""

from __future__ import annotations

import pytest

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
