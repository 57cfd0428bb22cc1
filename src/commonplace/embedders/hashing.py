"""Feature hashing: no model, no meaning. For tests and demonstrations of the machinery, not for production.

Texts that share words or pieces of words come out near each other; synonyms do not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

import numpy as np

from commonplace.embedders.base import BaseEmbedder, Vectors
from commonplace.embedders.registry import shown_spec
from commonplace.wire.errors import ValidationError

DIMENSION = 256
_SPEC = re.compile(r"hashing(?:-(\d+)|\?dimension=(\d+))?\Z")
_WORD = re.compile(r"\w+")
_WORD_WEIGHT, _PAIR_WEIGHT, _PIECE_WEIGHT = 1.0, 0.5, 0.35
_PIECE = 3


class HashingEmbedder(BaseEmbedder):
    def __init__(self, dimension: int = DIMENSION) -> None:
        self.name = f"hashing-{dimension}"
        self._declared = dimension

    def _encode(self, texts: list[str]) -> Vectors:
        return np.array([self._row(text) for text in texts])

    def _row(self, text: str) -> Vectors:
        slots: list[int] = []
        weights: list[float] = []
        previous = 0
        for word in _WORD.findall(text.lower()):
            hashes, signed = _features(word)
            slots += hashes
            weights += signed
            pair = _mix(previous, hashes[0])
            slots.append(pair)
            weights.append(_PAIR_WEIGHT if pair & 1 else -_PAIR_WEIGHT)
            previous = hashes[0]
        # The lowest bit gives the sign, so the slot is taken from the bits above it.
        places = (np.array(slots, np.int64) >> 1) % self.dimension
        return np.bincount(places, weights, self.dimension).astype(np.float32)


@lru_cache(8192)
def _features(word: str) -> tuple[list[int], list[float]]:
    """Hashes of the word and its character pieces, with their weights signed."""
    padded = f"<{word}>"
    pieces = [padded[i : i + _PIECE] for i in range(len(padded) - _PIECE + 1)]
    hashes = [_hash(word)] + [_hash("#" + piece) for piece in pieces]
    sizes = [_WORD_WEIGHT] + [_PIECE_WEIGHT] * len(pieces)
    return hashes, [size if value & 1 else -size for value, size in zip(hashes, sizes, strict=True)]


def _hash(feature: str) -> int:
    # crc32 and not hash(): the same in every process. Its bits alone are not well spread: hence the mixing.
    return _mix(0x9E3779B9, crc32(feature.encode("utf-8", "surrogatepass")))


def _mix(a: int, b: int) -> int:
    value = (a * 0x85EBCA6B ^ b) & 0xFFFFFFFF
    value = (value ^ value >> 16) * 0x7FEB352D & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x846CA68B & 0xFFFFFFFF
    return value ^ value >> 16


def open_embedder(spec: str = "hashing") -> HashingEmbedder:
    match = _SPEC.match(spec)
    dimension = int(match[1] or match[2] or DIMENSION) if match else 0
    if not 8 <= dimension <= 4096:
        usage = "use hashing, hashing-N or hashing?dimension=N, with N from 8 to 4096"
        raise ValidationError(f"embedder {shown_spec(spec)!r}: {usage}")
    return HashingEmbedder(dimension)
