"""The segment file: a header, then aligned arrays that are searched where they lie.

Rows are in order of `mid`. A file never changes once a manifest names it, except that erased rows are
overwritten in place (see `scrub`); its size never changes.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.text import ANALYSER

MAGIC = b"CPSEGMNT"
FORMAT = 1
_HEADER = struct.Struct("<8sII16sqIQQQQqqQ")
_HEADER_BYTES = 192
_ALIGN = 64

Postings = tuple[NDArray[np.uint32], NDArray[np.uint8]]


class Damaged(Exception):
    """A file is not what the manifest or the store says it is; the scope is rebuilt from rows."""


@dataclass(slots=True, frozen=True)
class Identity:
    """What derived data must have been made from to be of use."""

    store_id: str
    generation: int
    dimension: int  # 0 without an embedder

    def digest(self) -> bytes:
        return blake2b(self.store_id.encode(), digest_size=16).digest()


@dataclass(slots=True, frozen=True)
class Counts:
    rows: int
    vectors: int
    terms: int
    postings: int


def code_bytes(dimension: int) -> int:
    """One bit per dimension, in whole 64-bit words."""
    return -(-dimension // 64) * 8


def layout(counts: Counts, dimension: int) -> tuple[dict[str, tuple[str, tuple[int, ...], int]], int]:
    """(dtype, shape, offset) of every array, and the size of the file."""
    n, v = counts.rows, counts.vectors
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "mids": ("<i8", (n,)),
        "seqs": ("<i8", (n,)),
        "created": ("<i8", (n,)),
        "expires": ("<i8", (n,)),
        "users": ("<u8", (n,)),
        "lengths": ("<u4", (n,)),
        "types": ("u1", (n,)),
        "vector_docs": ("<u4", (v,)),
        "codes": ("u1", (v, code_bytes(dimension))),
        "vectors": ("<f4", (v, dimension)),
        "terms": ("<u8", (counts.terms,)),
        "offsets": ("<u8", (counts.terms + 1,)),
        "docs": ("<u4", (counts.postings,)),
        "weights": ("u1", (counts.postings,)),
    }
    placed, at = {}, _HEADER_BYTES
    for name, (dtype, shape) in shapes.items():
        placed[name] = (dtype, shape, at)
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        at += -(-size // _ALIGN) * _ALIGN
    return placed, at


def header(identity: Identity, counts: Counts, first_expiry: int, last_seq: int, size: int) -> bytes:
    packed = _HEADER.pack(
        MAGIC, FORMAT, ANALYSER, identity.digest(), identity.generation, identity.dimension,
        counts.rows, counts.vectors, counts.terms, counts.postings, first_expiry, last_seq, size,
    )  # fmt: skip
    return (packed + struct.pack("<I", zlib.crc32(packed))).ljust(_HEADER_BYTES, b"\0")


def arrays(buffer: Any, counts: Counts, dimension: int) -> dict[str, NDArray[Any]]:
    placed, _ = layout(counts, dimension)
    return {
        name: np.frombuffer(buffer, dtype, int(np.prod(shape)), offset).reshape(shape)
        for name, (dtype, shape, offset) in placed.items()
    }


def one_vector_each(vector_docs: NDArray[np.uint32], rows: int) -> bool:
    """The usual case, in which vectors and rows have the same numbers."""
    return len(vector_docs) == rows and bool((vector_docs == np.arange(rows, dtype=np.uint32)).all())


class Segment:
    """One file, mapped. Deaths of its rows are kept elsewhere."""

    def __init__(self, path: Path, identity: Identity, *, writable: bool = False) -> None:
        try:
            with path.open("r+b" if writable else "rb") as file:
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self.map = mmap.mmap(file.fileno(), 0, access=access)
        except ValueError as error:  # an empty file cannot be mapped
            raise Damaged(f"{path.name}: {error}") from None
        self.name = path.name
        self.counts, self.first_expiry, self.last_seq = self._checked_header(identity)
        held = arrays(self.map, self.counts, identity.dimension)
        self.mids: NDArray[np.int64] = held["mids"]
        self.seqs: NDArray[np.int64] = held["seqs"]
        self.created: NDArray[np.int64] = held["created"]
        self.expires: NDArray[np.int64] = held["expires"]
        self.users: NDArray[np.uint64] = held["users"]
        self.types: NDArray[np.uint8] = held["types"]
        self.vector_docs: NDArray[np.uint32] = held["vector_docs"]
        self.codes: NDArray[np.uint8] = held["codes"]
        self.vectors: NDArray[np.float32] = held["vectors"]
        self.terms: NDArray[np.uint64] = held["terms"]
        self.offsets: NDArray[np.uint64] = held["offsets"]
        self.docs: NDArray[np.uint32] = held["docs"]
        self.weights: NDArray[np.uint8] = held["weights"]
        # A copy: another process may scrub the file before this one has heard of the erasure.
        self.lengths: NDArray[np.uint32] = held["lengths"] if writable else held["lengths"].copy()
        self.size = self.counts.rows
        self.nbytes = len(self.map)
        self.single = one_vector_each(self.vector_docs, self.size)

    def _checked_header(self, identity: Identity) -> tuple[Counts, int, int]:
        raw = self.map[:_HEADER_BYTES]
        if len(raw) < _HEADER_BYTES:
            raise Damaged(f"{self.name}: shorter than a header")
        packed = raw[: _HEADER.size]
        (crc,) = struct.unpack_from("<I", raw, _HEADER.size)
        magic, fmt, analyser, store, generation, dimension, *rest = _HEADER.unpack(packed)
        if magic != MAGIC or fmt != FORMAT or crc != zlib.crc32(packed):
            raise Damaged(f"{self.name}: not a segment of this format")
        if analyser != ANALYSER or store != identity.digest():
            raise Damaged(f"{self.name}: made by another analyser or for another store")
        if generation != identity.generation or dimension != identity.dimension:
            raise Damaged(f"{self.name}: made with another embedder")
        counts = Counts(*rest[:4])
        first_expiry, last_seq, size = rest[4:]
        if size != len(self.map) or layout(counts, dimension)[1] != size:
            raise Damaged(f"{self.name}: has {len(self.map)} bytes, not {size}")
        return counts, first_expiry, last_seq

    def find(self, mids: NDArray[np.int64]) -> NDArray[np.intp]:
        """Positions of those of `mids` that are here."""
        at = np.searchsorted(self.mids, mids)
        at[at == self.size] = 0
        return at[self.mids[at] == mids] if self.size else at[:0]

    def postings(self, terms: NDArray[np.uint64]) -> list[Postings | None]:
        """A doc of `size` stands for one that was erased."""
        found: list[Postings | None] = []
        total = len(self.terms)
        for at, term in zip(np.searchsorted(self.terms, terms).tolist(), terms, strict=True):
            if at < total and self.terms[at] == term:
                span = slice(int(self.offsets[at]), int(self.offsets[at + 1]))
                found.append((self.docs[span], self.weights[span]))
            else:
                found.append(None)
        return found
