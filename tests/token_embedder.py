"""An embedder with token vectors that needs no model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commonplace.embedders.base import Encoding
from commonplace.embedders.hashing import HashingEmbedder

TOKEN_DIMENSION = 16


class HashingTokens(HashingEmbedder):
    """Each word is a token; "the" is not worth keeping."""

    token_dimension = TOKEN_DIMENSION
    reads_speakers = True

    def __init__(self, dimension: int = 256) -> None:
        super().__init__(dimension)
        self._words = HashingEmbedder(TOKEN_DIMENSION)
        self.passes: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.passes.append(list(texts))
        return [
            self._encoding(vector, text.split() or [""]) for vector, text in zip(self.embed(texts), texts, strict=True)
        ]

    def _encoding(self, vector: np.ndarray, words: list[str]) -> Encoding:
        kept = np.array([word.lower() != "the" for word in words])
        weights = np.array([len(word) + 1 for word in words], np.float32)
        return Encoding(vector.copy(), self._words.embed(words), weights, kept if kept.any() else ~kept)
