"""Vectors of length 1 as whole numbers of 16 bits: half the room of float32, for cosines within 1e-4 of the exact ones.

float16 would be as small and no more precise, and numpy takes ten times as long to make floats of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
FixedPoint = NDArray[np.int16]

_ONE = 32_767
_NOT_A_NUMBER = -32_768
_BLOCK = 1024  # so many are floats at once, and stay in the cache meanwhile


def to_fixed(vectors: Vectors) -> FixedPoint:
    """Of any shape; what is no finite number stays recognisable."""
    scaled = np.rint(vectors * np.float32(_ONE))
    if not np.absolute(scaled).max(initial=0) <= _ONE:  # which what is no number is not, either
        scaled = np.where(np.isfinite(vectors), np.clip(scaled, -_ONE, _ONE), _NOT_A_NUMBER)
    fixed: FixedPoint = scaled.astype("<i2")
    return fixed


def to_floats(vectors: FixedPoint) -> Vectors:
    return vectors.astype(np.float32) * np.float32(1 / _ONE)


def is_finite(vectors: FixedPoint) -> bool:
    return not (vectors == _NOT_A_NUMBER).any()


def cosines(vectors: FixedPoint, question: Vectors, rows: NDArray[np.intp] | None = None) -> Vectors:
    """Of a question, of length 1, with these rows of the vectors; None for all of them.

    Products are taken row by row (`vecdot`): a row scores the same wherever it is stored, and no thread pool that `@`
    would wake competes with other processes for the cores.
    """
    scaled = question * np.float32(1 / _ONE)
    scores = np.empty(len(vectors) if rows is None else len(rows), np.float32)
    for start in range(0, len(scores), _BLOCK):
        end = start + _BLOCK
        some = vectors[start:end] if rows is None else vectors.take(rows[start:end], axis=0)
        np.vecdot(some.astype(np.float32), scaled, out=scores[start:end])
    return scores
