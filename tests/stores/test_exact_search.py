from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from commonplace.stores import exact_search, text

UNIT = np.eye(4, dtype=np.float32)


def row(content: str, *parts: int) -> exact_search.Row:
    return text.terms(content), UNIT[list(parts)] if parts else None


def test_the_union_has_both_scores() -> None:
    rows = [row("a cat", 0), row("dogs run"), row("a dog and a cat", 1, 2), row("nothing", 3)]
    ranked = exact_search.rank(rows, text.query_terms("dog"), UNIT[2], 1)
    assert [(r.row, r.dense) for r in ranked] == [(1, None), (2, 1.0)]
    assert all(r.keyword is not None and r.keyword > 0 for r in ranked)
    (only,) = exact_search.rank(rows, text.query_terms("unheard"), UNIT[3], 1)
    assert only == (3, 1.0, 0.0, None)


def test_a_missing_leg_says_nothing() -> None:
    rows = [row("a cat", 0), row("a dog", 1)]
    assert exact_search.rank(rows, [], UNIT[1], 1) == [(1, 1.0, None, None)]
    assert [(r.row, r.dense) for r in exact_search.rank(rows, text.query_terms("cat"), None, 5)] == [(0, None)]
    assert exact_search.rank(rows, [], None, 5) == []
    assert exact_search.rank([], text.query_terms("cat"), UNIT[0], 5) == []
    assert exact_search.rank(rows, text.query_terms("?!"), UNIT[1], 1) == [(1, 1.0, None, None)]


def test_ties_go_to_the_earlier_row() -> None:
    rows = [row("same words", 1) for _ in range(10)]
    assert [r.row for r in exact_search.rank(rows, text.query_terms("words"), UNIT[1], 3)] == [0, 1, 2]


def test_another_dimension_is_no_vector() -> None:
    rows = [(text.terms("x"), np.ones((1, 3), np.float32)), row("y", 0)]
    assert exact_search.rank(rows, [], UNIT[0], 5) == [(1, 1.0, None, None)]


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=20))
def test_scores_are_bm25(memories: list[list[str]]) -> None:
    # Words are made long enough to be no stop-words and no stems of each other.
    contents = [" ".join(letter * 5 for letter in words) for words in memories]
    scores = exact_search.keyword_scores([text.terms(c) for c in contents], text.query_terms("aaaaa ccccc"))
    average = max(sum(map(len, memories)) / len(memories), 1.0)
    for words, score in zip(memories, scores.tolist(), strict=True):
        expected = 0.0
        for letter in "ac":
            tf, df = words.count(letter), sum(letter in other for other in memories)
            if tf:
                norm = 1.2 * (0.25 + 0.75 * len(words) / average)
                expected += math.log(1 + (len(memories) - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + norm)
        assert math.isclose(score, expected, rel_tol=0.2, abs_tol=1e-6)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, -1.0]), max_size=600), st.integers(1, 4))
def test_the_top_is_a_stable_sort(values: list[float], limit: int) -> None:
    scores = np.array(values, np.float32)
    expected = [i for i in sorted(range(len(values)), key=lambda i: (-values[i], i)) if values[i] > 0][:limit]
    assert exact_search.top(scores, limit, above=0.0).tolist() == expected
