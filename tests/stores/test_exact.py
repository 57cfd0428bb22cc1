from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from commonplace.stores import exact, text

UNIT = np.eye(4, dtype=np.float32)


def row(content: str, *parts: int) -> exact.Row:
    return text.terms(content), UNIT[list(parts)] if parts else None


def test_the_union_has_both_scores() -> None:
    rows = [row("a cat", 0), row("dogs run"), row("a dog and a cat", 1, 2), row("nothing", 3)]
    ranked = exact.rank(rows, "dog", UNIT[2], 1)
    assert [(i, dense) for i, dense, _ in ranked] == [(1, None), (2, 1.0)]
    assert all(keyword is not None and keyword > 0 for _, _, keyword in ranked)
    (only,) = exact.rank(rows, "unheard", UNIT[3], 1)
    assert only == (3, 1.0, 0.0)


def test_a_missing_leg_says_nothing() -> None:
    rows = [row("a cat", 0), row("a dog", 1)]
    assert exact.rank(rows, None, UNIT[1], 1) == [(1, 1.0, None)]
    assert [(i, d) for i, d, _ in exact.rank(rows, "cat", None, 5)] == [(0, None)]
    assert exact.rank(rows, None, None, 5) == []
    assert exact.rank([], "cat", UNIT[0], 5) == []
    assert exact.rank(rows, "?!", UNIT[1], 1) == [(1, 1.0, None)]


def test_ties_go_to_the_earlier_row() -> None:
    rows = [row("same words", 1) for _ in range(10)]
    assert [i for i, _, _ in exact.rank(rows, "words", UNIT[1], 3)] == [0, 1, 2]


def test_another_dimension_is_no_vector() -> None:
    rows = [(text.terms("x"), np.ones((1, 3), np.float32)), row("y", 0)]
    assert exact.rank(rows, None, UNIT[0], 5) == [(1, 1.0, None)]


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=20))
def test_scores_are_bm25(memories: list[list[str]]) -> None:
    # Words are made long enough to be no stop-words and no stems of each other.
    contents = [" ".join(letter * 5 for letter in words) for words in memories]
    scores = exact.keyword_scores([text.terms(c) for c in contents], text.query_terms("aaaaa ccccc"))
    average = max(sum(map(len, memories)) / len(memories), 1.0)
    for words, score in zip(memories, scores.tolist(), strict=True):
        expected = 0.0
        for letter in "ac":
            tf, df = words.count(letter), sum(letter in other for other in memories)
            if tf:
                norm = 1.2 * (0.25 + 0.75 * len(words) / average)
                expected += math.log(1 + (len(memories) - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + norm)
        assert math.isclose(score, expected, rel_tol=0.2, abs_tol=1e-6)
