"""The cells of a row of vectors: what an embedder made of one version of a memory, as bytes and back.

`data` has the vectors at 16 bits, followed by one byte, which makes its length odd. Until schema 7 of the embedded
store they were float32: rows of that kind, known by their even length, are rounded as they are read, so that both
score the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commonplace.stores import token_vectors
from commonplace.stores.base import Vectors
from commonplace.stores.fixed_point import is_finite, to_fixed, to_floats
from commonplace.stores.token_vectors import Codes

FIXED_POINT = b"\x10"


def to_cells(vectors: Vectors | None, tokens: Sequence[Codes] | None) -> tuple[bytes | None, bytes | None]:
    """`data` and `tokens`."""
    if vectors is None:
        return None, None
    return to_fixed(vectors).tobytes() + FIXED_POINT, None if tokens is None else token_vectors.pack(tokens)


def fixed_point_bytes(data: bytes | None) -> bytes:
    """The vectors of a cell one after the other, without what tells how they are kept."""
    if not data:
        return b""
    if len(data) % 2:
        return data[:-1]
    return b"" if len(data) % 4 else to_fixed(np.frombuffer(data, "<f4")).tobytes()


def vectors_of(data: bytes | None, dimension: int) -> Vectors | None:
    """None when the cell has none of this dimension, or some that are no numbers."""
    held = np.frombuffer(fixed_point_bytes(data), "<i2")
    if not dimension or not len(held) or len(held) % dimension or not is_finite(held):
        return None
    return to_floats(held).reshape(-1, dimension)


def tokens_of(tokens: bytes | None, vectors: Vectors | None) -> list[Codes]:
    """Of each part; nothing where they are not of the parts that have these vectors."""
    parts = token_vectors.unpack(tokens) if tokens and vectors is not None else []
    return parts if vectors is not None and len(parts) == len(vectors) else []
