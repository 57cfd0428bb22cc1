"""The rows no segment has yet, in memory: arrays that only grow, so that a search may keep what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.sqlite.index.query import Flags, IndexRow
from commonplace.stores.sqlite.index.segment import Part, Postings


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


class TailPart(Part):
    """The tail as it was at one moment; reads like a segment."""

    codes = None
    name = "tail"
    first_expiry = 1  # unknown: always look
    hashes: NDArray[np.uint64]
    owners: NDArray[np.uint32]

    def __init__(self, columns: dict[str, _Column]) -> None:
        self._set_columns({name: column.values for name, column in columns.items()})
        self.nbytes = sum(column.nbytes for column in columns.values())

    def postings(self, terms: NDArray[np.uint64]) -> list[Postings | None]:
        found: list[Postings | None] = []
        for term in terms:
            at = np.flatnonzero(self.hashes == term)
            found.append((self.owners[at], self.weights[at]) if len(at) else None)
        return found


_DTYPES = {
    "mids": np.int64,
    "seqs": np.int64,
    "created": np.int64,
    "expires": np.int64,
    "users": np.uint64,
    "types": np.uint8,
    "lengths": np.uint32,
    "vector_docs": np.uint32,
    "vectors": np.float32,
    "hashes": np.uint64,
    "owners": np.uint32,
    "weights": np.uint8,
}


class Tail:
    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        widths = {"vectors": dimension}
        self._columns = {name: _Column(dtype, widths.get(name)) for name, dtype in _DTYPES.items()}
        self._live = _Column(np.bool_)
        self._positions: dict[int, int] = {}  # by mid, of what lives
        self.size = 0

    @property
    def live(self) -> Flags:
        return self._live.values

    def part(self) -> TailPart:
        return TailPart(self._columns)

    def mark_dead(self, mids: NDArray[np.int64]) -> None:
        if self._positions:
            for mid in mids.tolist():
                if (position := self._positions.pop(mid, None)) is not None:
                    self.live[position] = False

    def extend(self, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        start, columns = self.size, self._columns
        columns["mids"].extend([row.mid for row in rows])
        columns["seqs"].extend([row.seq for row in rows])
        columns["created"].extend([row.created_at for row in rows])
        columns["expires"].extend([row.expires_at for row in rows])
        columns["users"].extend(np.array([row.user for row in rows], np.uint64))
        columns["types"].extend([row.type for row in rows])
        self._extend_terms([row.terms or b"" for row in rows])
        self._extend_vectors([row.vectors or b"" for row in rows])
        self._live.extend(np.ones(len(rows), bool))
        self._positions.update((row.mid, start + i) for i, row in enumerate(rows))
        self.size += len(rows)

    def _extend_terms(self, blobs: list[bytes]) -> None:
        hashes, tf, counts = text.decode_all(blobs)
        owners = np.repeat(np.arange(len(blobs)), counts)
        lengths = np.bincount(owners, tf, minlength=len(blobs)).astype(np.uint32)
        self._columns["hashes"].extend(hashes)
        self._columns["weights"].extend(text.code(tf, lengths[owners]))
        self._columns["owners"].extend(owners + self.size)
        self._columns["lengths"].extend(lengths)

    def _extend_vectors(self, blobs: list[bytes]) -> None:
        stride = 4 * self._dimension
        held = [blob if _is_usable(blob, stride) else b"" for blob in blobs]
        if any(held):
            docs = np.repeat(np.arange(len(blobs)) + self.size, [len(blob) // stride for blob in held])
            self._columns["vectors"].extend(np.frombuffer(b"".join(held), "<f4").reshape(-1, self._dimension))
            self._columns["vector_docs"].extend(docs)


def _is_usable(blob: bytes, stride: int) -> bool:
    if not blob or not stride or len(blob) % stride:
        return False
    # A vector that is no number would be no one's neighbour and hide those of others.
    return bool(np.isfinite(np.frombuffer(blob, "<f4")).all())
