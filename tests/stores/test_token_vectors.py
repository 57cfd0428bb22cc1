"""Late interaction against its definition in plain floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from commonplace.stores.token_vectors import (
    MAX_QUESTION_TOKENS,
    QuestionTokens,
    best_late_scores,
    late_scores,
    pack,
    part_sizes,
    quantise,
    unpack,
)

DIMENSION = 96


def unit(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    rows = rng.normal(size=(count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def oracle(tokens: NDArray[np.float32], weights: NDArray[np.float32], memory: NDArray[np.float32]) -> float:
    return float(((tokens @ memory.T).max(axis=1) * weights).sum() / weights.sum())


@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_scores_are_those_of_whole_vectors_but_for_rounding(seed: int, asked: int, counts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    tokens, weights = unit(rng, asked), rng.uniform(0.05, 1, asked).astype(np.float32)
    memories = [unit(rng, count) for count in counts]
    codes = np.concatenate([quantise(memory) for memory in memories])
    scores = late_scores(QuestionTokens.of(tokens, weights), codes, counts)
    for score, memory in zip(scores, memories, strict=True):
        assert score == pytest.approx(oracle(tokens, weights, memory) if len(memory) else -1, abs=0.04)


@given(st.integers(0, 2**32 - 1))
def test_a_text_scores_exactly_the_same_alone_and_among_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    question = QuestionTokens.of(unit(rng, 9), rng.uniform(0.05, 1, 9).astype(np.float32))
    texts = [quantise(unit(rng, int(count))) for count in rng.integers(1, 60, 30)]
    together = late_scores(question, np.concatenate(texts), [*map(len, texts)])
    alone = [late_scores(question, text, [len(text)])[0] for text in texts]
    assert together.tolist() == alone


def test_the_same_text_scores_nearly_one() -> None:
    tokens = unit(np.random.default_rng(1), 12)
    (score,) = late_scores(QuestionTokens.of(tokens, np.ones(12, np.float32)), quantise(tokens), [12])
    assert score == pytest.approx(1, abs=0.02)


def test_of_a_long_question_the_heaviest_tokens_are_read() -> None:
    rng = np.random.default_rng(2)
    tokens, weights = unit(rng, 300), np.linspace(0.01, 1, 300).astype(np.float32)
    question = QuestionTokens.of(tokens, weights)
    heaviest = QuestionTokens.of(tokens[-MAX_QUESTION_TOKENS:], weights[-MAX_QUESTION_TOKENS:])
    assert np.array_equal(question.levels, heaviest.levels)
    assert np.array_equal(question.shares, heaviest.shares)


@given(st.lists(st.integers(0, 30), max_size=6))
def test_what_is_packed_comes_back(counts: list[int]) -> None:
    parts = [quantise(unit(np.random.default_rng(n), count)) for n, count in enumerate(counts)]
    data = pack(parts)
    assert part_sizes(data) == [count * DIMENSION // 2 for count in counts]
    assert [part.tobytes() for part in unpack(data)] == [part.tobytes() for part in parts]


@given(st.binary(max_size=300), st.integers(0, 200))
def test_a_value_of_another_length_is_known_as_damaged(rubbish: bytes, end: int) -> None:
    whole = pack([quantise(unit(np.random.default_rng(n), n)) for n in (4, 0)])
    for data in (whole[:end], whole + b"x", whole + rubbish):
        if data != whole:
            assert part_sizes(data) is None
            assert unpack(data) == []
    part_sizes(rubbish)  # whatever it says of it


def test_a_memory_scores_as_its_best_part_and_not_at_all_without_tokens() -> None:
    rng = np.random.default_rng(4)
    question = QuestionTokens.of(unit(rng, 5), np.ones(5, np.float32))
    parts = [quantise(unit(rng, count)) for count in (3, 0, 9)]
    alone = [float(late_scores(question, part, [len(part)])[0]) for part in parts]
    a, b, c = (part.reshape(-1) for part in parts)
    narrower = quantise(rng.normal(size=(2, 10)).astype(np.float32)).reshape(-1)
    found = best_late_scores(question, [a, b, c, c, a, b, narrower, narrower, a], [3, 1, 0, 1, 1, 1, 2])
    assert found == [max(alone), alone[2], None, alone[0], None, None, alone[0]]
    assert best_late_scores(question, [], [0, 0]) == best_late_scores(question, [b, b], [1, 1]) == [None, None]
    nothing = QuestionTokens.of(unit(rng, 0), np.ones(0, np.float32))
    assert best_late_scores(nothing, [a], [1]) == [None]
