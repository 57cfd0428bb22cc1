"""Late interaction: the vectors of a memory's tokens at 4 bits a dimension, and how well they match a question's.

The score is, for each token of the question, the cosine of the memory's best token for it, averaged with the weights
of the question's tokens. All products are of small whole numbers, which float32 adds up exactly in any order: a memory
scores the same wherever its tokens are stored and whatever lies beside them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]  # tokens × half the dimension: two dimensions a byte
Floats = NDArray[np.float32]

#: A question's heaviest tokens; more of them cost time and tell little.
MAX_QUESTION_TOKENS = 32

# The 16 levels that keep most of a normal distribution of variance 1 (Lloyd and Max), as whole numbers.
_UNIT = 2.7326 / 127
_LEVELS = np.array([6, 18, 31, 44, 58, 75, 96, 127], np.float32)
_TABLE = np.concatenate([-_LEVELS[::-1], _LEVELS])
_BOUNDS = (_TABLE[1:] + _TABLE[:-1]) / 2 * np.float32(_UNIT)
# Of a byte: its high half and its low half, side by side in eight bytes, which are moved at once.
_PAIRS = np.stack([np.repeat(_TABLE, 16), np.tile(_TABLE, 16)], axis=1).view(np.uint64)[:, 0]
_QUESTION_LEVELS = 127
# OpenBLAS wakes its threads for larger products than this, which other processes' work then waits for.
_PRODUCTS = 1 << 18
_HEADER = struct.Struct("<HH")  # of a packed value: bytes of a token, parts; the tokens of each part follow


@dataclass(slots=True, frozen=True)
class QuestionTokens:
    """A question as late interaction reads it."""

    levels: Floats  # tokens × dimension, whole numbers
    shares: Floats  # of each token in the score, with everything that makes whole numbers cosines again

    @classmethod
    def of(cls, tokens: Floats, weights: Floats) -> QuestionTokens:
        """From vectors of length 1 and the weight of each."""
        if len(tokens) > MAX_QUESTION_TOKENS:
            heaviest = np.sort(np.argsort(-weights, kind="stable")[:MAX_QUESTION_TOKENS])
            tokens, weights = tokens[heaviest], weights[heaviest]
        largest = np.maximum(np.abs(tokens).max(axis=1, initial=0.0, keepdims=True), 1e-6)
        levels = np.rint(tokens * (_QUESTION_LEVELS / largest))
        unit = largest[:, 0] / _QUESTION_LEVELS * _UNIT / math.sqrt(tokens.shape[1])
        return cls(levels.astype(np.float32), (weights / max(float(weights.sum()), 1e-6) * unit).astype(np.float32))


def quantise(tokens: Floats) -> Codes:
    """Of vectors of length 1 and an even dimension."""
    at = np.searchsorted(_BOUNDS, tokens * np.float32(math.sqrt(tokens.shape[1]))).astype(np.uint8)
    return at[:, 0::2] * np.uint8(16) + at[:, 1::2]


def late_scores(question: QuestionTokens, codes: Codes, counts: Sequence[int] | NDArray[np.int64]) -> Floats:
    """Of texts whose tokens lie one after the other in `codes`, `counts[i]` of them each; -1 for one without any."""
    counts = np.asarray(counts, np.int64)
    scores = np.full(len(counts), -1, np.float32)
    if not len(codes) or not len(question.levels):
        return scores
    matches = np.empty((len(codes), len(question.levels)), np.float32)
    step = max(_PRODUCTS // question.levels.size, 1)
    asked = np.ascontiguousarray(question.levels.T)
    for start in range(0, len(codes), step):
        some = _PAIRS.take(codes[start : start + step]).view(np.float32)
        np.matmul(some, asked, out=matches[start : start + step])
    present = np.flatnonzero(counts)
    best = np.maximum.reduceat(matches, (np.cumsum(counts) - counts)[present], axis=0)
    scores[present] = np.vecdot(best, question.shares)
    return scores


def best_late_scores(question: QuestionTokens, parts: Sequence[Codes], counts: Sequence[int]) -> list[float | None]:
    """Of the best part of each memory, which has `counts[i]` of `parts`, one after the other; None for one without
    tokens of the question's dimension.

    The tokens of a part are flat here: the bytes of all of them.
    """
    if not parts or not question.levels.size:
        return [None] * len(counts)
    width = question.levels.shape[1] // 2
    sizes = np.array([len(part) for part in parts])
    fits = (sizes > 0) & (sizes % width == 0)
    read = parts if fits.all() else [part for part, fit in zip(parts, fits.tolist(), strict=True) if fit]
    scores = np.full(len(counts), -np.inf, np.float32)
    if read:
        found = late_scores(question, np.concatenate(read).reshape(-1, width), sizes[fits] // width)
        np.maximum.at(scores, np.repeat(np.arange(len(counts)), counts)[fits], found)
    return [None if score == -math.inf else score for score in scores.tolist()]


def pack(parts: Sequence[Codes]) -> bytes:
    """The tokens of each searchable part of a memory, as one value."""
    width = parts[0].shape[1] if parts else 0
    return struct.pack(f"<{2 + len(parts)}H", width, len(parts), *map(len, parts)) + b"".join(
        p.tobytes() for p in parts
    )


def part_sizes(data: bytes) -> list[int] | None:
    """How many bytes the tokens of each part take, which lie one after the other at its end; None if it is damaged."""
    if len(data) < _HEADER.size:
        return None
    width, parts = _HEADER.unpack_from(data)
    start = _HEADER.size + 2 * parts
    if len(data) < start:
        return None
    sizes = [width * count for count in struct.unpack_from(f"<{parts}H", data, _HEADER.size)]
    return sizes if start + sum(sizes) == len(data) else None


def unpack(data: bytes) -> list[Codes]:
    """The tokens of each part, flat; nothing if it is damaged."""
    sizes = part_sizes(data) or []
    codes = np.frombuffer(data, np.uint8, sum(sizes), len(data) - sum(sizes))
    return np.split(codes, np.cumsum(sizes[:-1])) if sizes else []
