"""The rows no segment has yet, in memory: arrays that only grow, so that a search may keep what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.sqlite.index.query import IndexRow
from commonplace.stores.sqlite.index.segment import Postings, one_vector_each


class _Column:
    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._held = np.empty((64,) if width is None else (64, width), dtype)
        self.size = 0

    def extend(self, values: Any) -> None:
        end = self.size + len(values)
        if end > len(self._held):
            grown = np.empty((max(end, 2 * len(self._held)), *self._held.shape[1:]), self._held.dtype)
            grown[: self.size] = self._held[: self.size]
            self._held = grown
        self._held[self.size : end] = values
        self.size = end

    @property
    def values(self) -> NDArray[Any]:
        return self._held[: self.size]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes


class TailPart:
    """The tail as it was at one moment; reads like a segment."""

    codes = None
    name = "tail"

    def __init__(self, columns: dict[str, _Column]) -> None:
        self.mids: NDArray[np.int64] = columns["mids"].values
        self.seqs: NDArray[np.int64] = columns["seqs"].values
        self.created: NDArray[np.int64] = columns["created"].values
        self.expires: NDArray[np.int64] = columns["expires"].values
        self.users: NDArray[np.uint64] = columns["users"].values
        self.types: NDArray[np.uint8] = columns["types"].values
        self.lengths: NDArray[np.uint32] = columns["lengths"].values
        self.vector_docs: NDArray[np.uint32] = columns["vector_docs"].values
        self.vectors: NDArray[np.float32] = columns["vectors"].values
        self.hashes: NDArray[np.uint64] = columns["hashes"].values
        self.owners: NDArray[np.uint32] = columns["owners"].values
        self.weights: NDArray[np.uint8] = columns["weights"].values
        self.size = len(self.mids)
        self.nbytes = sum(column.nbytes for column in columns.values())
        self.single = one_vector_each(self.vector_docs, self.size)
        self.first_expiry = 1  # unknown: always look

    def postings(self, terms: NDArray[np.uint64]) -> list[Postings | None]:
        found: list[Postings | None] = []
        for term in terms:
            at = np.flatnonzero(self.hashes == term)
            found.append((self.owners[at], self.weights[at]) if len(at) else None)
        return found


class Tail:
    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._columns = {
            "mids": _Column(np.int64),
            "seqs": _Column(np.int64),
            "created": _Column(np.int64),
            "expires": _Column(np.int64),
            "users": _Column(np.uint64),
            "types": _Column(np.uint8),
            "lengths": _Column(np.uint32),
            "vector_docs": _Column(np.uint32),
            "vectors": _Column(np.float32, dimension),
            "hashes": _Column(np.uint64),
            "owners": _Column(np.uint32),
            "weights": _Column(np.uint8),
        }
        self.size = 0
        self.place: dict[int, int] = {}

    def part(self) -> TailPart:
        return TailPart(self._columns)

    def extend(self, rows: Sequence[IndexRow]) -> int:
        """Append these; the sum of their lengths."""
        start, columns = self.size, self._columns
        columns["mids"].extend([row.mid for row in rows])
        columns["seqs"].extend([row.seq for row in rows])
        columns["created"].extend([row.created_at for row in rows])
        columns["expires"].extend([row.expires_at for row in rows])
        columns["users"].extend(np.array([row.user for row in rows], np.uint64))
        columns["types"].extend([row.type for row in rows])
        total = self._extend_terms([row.terms or b"" for row in rows])
        self._extend_vectors([row.vectors or b"" for row in rows])
        self.place.update((row.mid, start + i) for i, row in enumerate(rows))
        self.size += len(rows)
        return total

    def _extend_terms(self, blobs: list[bytes]) -> int:
        hashes, tf, counts = text.decode_all(blobs)
        owners = np.repeat(np.arange(len(blobs)), counts)
        lengths = np.bincount(owners, tf, minlength=len(blobs)).astype(np.uint32)
        self._columns["hashes"].extend(hashes)
        self._columns["weights"].extend(text.code(tf, lengths[owners]))
        self._columns["owners"].extend(owners + self.size)
        self._columns["lengths"].extend(lengths)
        return int(lengths.sum())

    def _extend_vectors(self, blobs: list[bytes]) -> None:
        stride = 4 * self._dimension
        usable = [bool(blob) and stride > 0 and len(blob) % stride == 0 for blob in blobs]
        if any(usable):
            # A vector that is no number would be no one's neighbour and hide those of others.
            usable = [
                ok and bool(np.isfinite(np.frombuffer(blob, "<f4")).all())
                for blob, ok in zip(blobs, usable, strict=True)
            ]
            held = [blob if ok else b"" for blob, ok in zip(blobs, usable, strict=True)]
            joined = np.frombuffer(b"".join(held), "<f4").reshape(-1, self._dimension)
            docs = np.repeat(np.arange(len(blobs)) + self.size, [len(blob) // stride for blob in held])
            self._columns["vectors"].extend(joined)
            self._columns["vector_docs"].extend(docs)
