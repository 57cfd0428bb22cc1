"""What an embedder must do, and what most of them have in common.

Caching and batching are `cache.CachedEmbedder`, around any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from commonplace.wire.errors import Unavailable

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Deterministic: the same text always gives the same vector. Loads its model at the first `embed`."""

    @property
    def name(self) -> str:
        """Identifies the vectors: two embedders with the same name must give the same ones."""

    @property
    def dimension(self) -> int:
        """Some embedders have to embed once to know it, so reading it (and isinstance does) may load a model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), float32, rows of length 1. Called from any thread, one at a time; from
        several at once if it has an attribute `concurrent` that says how many texts it embeds beside one another."""


class Encoding(NamedTuple):
    """One text as late interaction wants it, beside its vector."""

    vector: Vectors  # (dimension,), of length 1
    tokens: Vectors  # (tokens, token_dimension), rows of length 1
    weights: Vectors  # (tokens,): how much each counts in a question, above 0
    kept: NDArray[np.bool_]  # (tokens,): whether it is worth keeping of a memory


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """One whose pass over a text gives a vector for each of its tokens as well."""

    @property
    def token_dimension(self) -> int:
        """Even."""

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """As `embed`, with the tokens; the vectors are the same."""


@runtime_checkable
class Unloadable(Protocol):
    """An embedder that holds memory worth giving back; the next `embed` loads it again."""

    def unload(self) -> None:
        """Give that memory back."""


@runtime_checkable
class LocalModel(Protocol):
    """An embedder whose model is files on this machine."""

    @property
    def installed(self) -> bool:
        """Whether they are there; they are not read."""

    def problems(self) -> list[str]:
        """What is wrong with them, a sentence each."""


class DimensionCheck:
    """An embedder that can be told the dimension by whoever has vectors of it, and then loads or asks nothing for it:
    a model that is missing, or a server that is down, must keep nobody from what is kept. Another answer is refused."""

    _declared: int | None = None  # the dimension, where it is known without embedding anything

    def expect_dimension(self, dimension: int) -> None:
        self._declared = self._declared or dimension

    def _check_dimension(self, vectors: Vectors, name: str) -> None:
        if self._declared not in (None, vectors.shape[1]):
            said = f"{name} answered {vectors.shape[1]} dimensions, not {self._declared}"
            raise Unavailable(f"{said}; if its model is another now, `commonplace reindex` makes the vectors anew")


class BaseEmbedder(DimensionCheck):
    """An embedder made of one function, `_encode`, from texts to rows of numbers of any length."""

    name: str

    @cached_property
    def dimension(self) -> int:
        return self._declared or self._embed(["dimension"]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed(list(texts)) if texts else np.zeros((0, self.dimension), np.float32)

    def _embed(self, texts: list[str]) -> Vectors:
        vectors = unit_rows(self._encode(texts), count=len(texts), source=self.name)
        self._check_dimension(vectors, self.name)
        return vectors

    def _encode(self, texts: list[str]) -> Any:
        raise NotImplementedError


class ModelEmbedder(BaseEmbedder):
    """One whose model `_load` gives at the first text, and again after `unload`."""

    _model: Any = None

    def unload(self) -> None:
        self._model = None

    def _loaded_model(self) -> Any:
        if self._model is None:
            self._model = self._load()
        return self._model

    def _load(self) -> Any:
        raise NotImplementedError


def unit_rows(rows: Any, *, count: int, source: str) -> Vectors:
    """What a model answered, as rows of length 1; a row of zeros becomes the first axis."""
    try:
        vectors: Vectors = np.array(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise Unavailable(f"{source} did not answer with vectors of numbers") from error
    if count == 0 and vectors.size == 0:
        return vectors.reshape(0, vectors.shape[1] if vectors.ndim == 2 else 0)
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise Unavailable(f"{source} answered shape {list(vectors.shape)} for {count} texts")
    if not np.isfinite(vectors).all():
        raise Unavailable(f"{source} answered with numbers that are not finite")
    # In float64: squares of float32 values can overflow or vanish before the root is taken.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    vectors[lengths[:, 0] == 0, 0] = 1.0
    lengths[lengths == 0] = 1.0
    vectors /= lengths.astype(np.float32)
    return vectors
