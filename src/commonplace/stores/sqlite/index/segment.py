"""The segment file: a header, then aligned arrays that are searched where they lie.

Rows are in order of `mid`. A file never changes once a manifest names it, except that erased rows are
overwritten in place (`erase_rows`); its size never changes.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.stores.fixed_point import FixedPoint
from commonplace.stores.text import ANALYSER
from commonplace.wire.durable import sync_file

MAGIC = b"CPSEGMNT"
FORMAT = 2
_HEADER = struct.Struct("<8sII16sqIQQQQQqqQ")
_HEADER_BYTES = 192
_ALIGN = 64

#: What each row has, in the order of the file.
ROW_COLUMNS = dict.fromkeys(("mids", "seqs", "created", "expires"), "<i8")
ROW_COLUMNS |= {"users": "<u8", "lengths": "<u4", "types": "u1"}

Postings = tuple[NDArray[np.uint32], NDArray[np.uint8]]
#: Terms ascending, a number for each, then documents and weights of all of them.
TermLists = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint8]]


class IndexDamage(Exception):
    """A file is not what the manifest or the store says it is; the scope is rebuilt from rows."""


class OtherVersion(IndexDamage):
    """Made for another version, embedder or store, as after an upgrade or a reindex: nothing is wrong with it."""


@dataclass(slots=True, frozen=True)
class SegmentIdentity:
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
    token_bytes: int


def code_bytes(dimension: int) -> int:
    """One bit per dimension, in whole 64-bit words."""
    return -(-dimension // 64) * 8


def signs(vectors: NDArray[Any]) -> NDArray[np.uint8]:
    """The codes of vectors: one bit per dimension, padded to whole words."""
    bits = np.packbits(vectors > 0, axis=1)
    missing = code_bytes(vectors.shape[1]) - bits.shape[1]
    return np.pad(bits, ((0, 0), (0, missing))) if missing else bits


def layout(counts: Counts, dimension: int) -> tuple[dict[str, tuple[str, tuple[int, ...], int]], int]:
    """(dtype, shape, offset) of every array, and the size of the file."""
    v = counts.vectors
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        **{name: (kind, (counts.rows,)) for name, kind in ROW_COLUMNS.items()},
        "vector_docs": ("<u4", (v,)),
        "codes": ("u1", (v, code_bytes(dimension))),
        "vectors": ("<i2", (v, dimension)),
        "token_offsets": ("<u8", (v + 1,)),
        "tokens": ("u1", (counts.token_bytes,)),
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


def header(identity: SegmentIdentity, counts: Counts, expires: NDArray[np.int64], last_seq: int, size: int) -> bytes:
    given = expires[expires > 0]
    first_expiry = int(given.min()) if len(given) else 0
    made_for = (identity.digest(), identity.generation, identity.dimension)
    packed = _HEADER.pack(MAGIC, FORMAT, ANALYSER, *made_for, *astuple(counts), first_expiry, last_seq, size)
    return (packed + struct.pack("<I", zlib.crc32(packed))).ljust(_HEADER_BYTES, b"\0")


def arrays(buffer: Any, counts: Counts, dimension: int) -> dict[str, NDArray[Any]]:
    placed, _ = layout(counts, dimension)
    return {
        name: np.frombuffer(buffer, dtype, int(np.prod(shape)), offset).reshape(shape)
        for name, (dtype, shape, offset) in placed.items()
    }


class Part:
    """What a segment and the tail have in common: an array for each column, one place per row or per vector."""

    name: str
    size: int  # rows
    nbytes: int
    first_expiry: int
    mids: NDArray[np.int64]
    seqs: NDArray[np.int64]
    created: NDArray[np.int64]
    expires: NDArray[np.int64]
    users: NDArray[np.uint64]
    types: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    vector_docs: NDArray[np.uint32]
    vectors: FixedPoint
    codes: NDArray[np.uint8] | None
    token_offsets: NDArray[np.uint64]  # where in `tokens` those of each vector's text begin, and the end
    tokens: NDArray[np.uint8]
    weights: NDArray[np.uint8]
    single: bool  # one vector each, the usual case, in which vectors and rows have the same numbers

    def _set_columns(self, columns: dict[str, NDArray[Any]]) -> None:
        vars(self).update(columns)
        self.size = len(self.mids)
        docs = self.vector_docs
        self.single = len(docs) == self.size and bool((docs == np.arange(self.size, dtype=np.uint32)).all())

    def token_sizes(self) -> NDArray[np.int64]:
        """How many bytes the tokens of each vector's text take."""
        offsets = self.token_offsets.astype(np.int64)
        sizes = offsets[1:] - offsets[:-1]
        if (sizes < 0).any() or offsets[0] or offsets[-1] != len(self.tokens):
            raise IndexDamage(f"{self.name}: the tokens are not where it says")
        return sizes

    def postings(self, terms: NDArray[np.uint64]) -> list[Postings | None]:
        """The documents that have each term; None for a term that does not occur."""
        raise NotImplementedError

    def posting_lists(self) -> TermLists:
        """All of them, with where those of each term start, and the end."""
        raise NotImplementedError


class Segment(Part):
    """One file, mapped. Deaths of its rows are kept elsewhere."""

    codes: NDArray[np.uint8]
    terms: NDArray[np.uint64]
    offsets: NDArray[np.uint64]
    docs: NDArray[np.uint32]

    def __init__(self, path: Path, identity: SegmentIdentity, *, writable: bool = False) -> None:
        try:
            with path.open("r+b" if writable else "rb") as file:
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                self.map = mmap.mmap(file.fileno(), 0, access=access)
        except ValueError as error:  # an empty file cannot be mapped
            raise IndexDamage(f"{path.name}: {error}") from None
        self.name = path.name
        self.counts, self.first_expiry, self.last_seq = self._checked_header(identity)
        self.nbytes = len(self.map)
        self._set_columns(arrays(self.map, self.counts, identity.dimension))
        if not writable:
            # A copy: another process may erase from the file before this one has heard of the erasure.
            self.lengths = self.lengths.copy()

    def _checked_header(self, identity: SegmentIdentity) -> tuple[Counts, int, int]:
        raw = self.map[:_HEADER_BYTES]
        if len(raw) < _HEADER_BYTES:
            raise IndexDamage(f"{self.name}: shorter than a header")
        packed = raw[: _HEADER.size]
        (crc,) = struct.unpack_from("<I", raw, _HEADER.size)
        magic, fmt, analyser, store, generation, dimension, *rest = _HEADER.unpack(packed)
        if magic != MAGIC or fmt != FORMAT or crc != zlib.crc32(packed):
            raise IndexDamage(f"{self.name}: not a segment of this format")
        if analyser != ANALYSER or store != identity.digest():
            raise IndexDamage(f"{self.name}: made by another analyser or for another store")
        if generation != identity.generation or dimension != identity.dimension:
            raise IndexDamage(f"{self.name}: made with another embedder")
        *counted, first_expiry, last_seq, size = rest
        counts = Counts(*counted)
        if size != len(self.map) or layout(counts, dimension)[1] != size:
            raise IndexDamage(f"{self.name}: has {len(self.map)} bytes, not {size}")
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

    def posting_lists(self) -> TermLists:
        return self.terms, self.offsets.astype(np.int64), self.docs, self.weights


def erase_rows(path: Path, identity: SegmentIdentity, erased: Sequence[tuple[int, int]]) -> None:
    """Overwrite all that came from these (mid, seq), where it lies: erasing one row does not rewrite a million.

    The mid itself stays: it keeps the order, and says no more than the erasure mark does. So does the room it took.
    """
    if not erased:
        return
    segment = Segment(path, identity, writable=True)
    marks = dict(erased)
    rows = segment.find(np.unique(np.array(list(marks), np.int64)))
    rows = np.array([at for at in rows.tolist() if 0 < segment.seqs[at] <= marks[int(segment.mids[at])]], np.int64)
    if not len(rows):
        return
    gone = np.zeros(segment.size + 1, bool)
    gone[rows] = True
    vectors = np.flatnonzero(gone[segment.vector_docs])
    segment.vectors[vectors] = 0
    segment.codes[vectors] = 0
    ends = np.cumsum(segment.token_sizes())[vectors]
    for start, end in zip(segment.token_offsets[vectors].tolist(), ends.tolist(), strict=True):
        segment.tokens[start:end] = 0
    _erase_postings(segment, gone)
    for column in (segment.created, segment.expires, segment.users, segment.lengths, segment.types):
        column[rows] = 0
    segment.seqs[rows] = 0  # last: a row that still has one is erased again
    start = header(identity, segment.counts, segment.expires, segment.last_seq, segment.nbytes)
    if start != segment.map[: len(start)]:
        segment.map[: len(start)] = start
    segment.map.flush()
    with path.open("r+b") as file:
        sync_file(file.fileno())


def _erase_postings(segment: Segment, gone: NDArray[np.bool_]) -> None:
    hit = np.flatnonzero(gone[segment.docs])
    segment.docs[hit] = segment.size
    segment.weights[hit] = 0
    touched = np.unique(np.searchsorted(segment.offsets, hit.astype(np.uint64), "right") - 1)
    for at in touched.tolist():
        span = slice(int(segment.offsets[at]), int(segment.offsets[at + 1]))
        if (segment.docs[span] == segment.size).all():
            # The word was only there. Its neighbour's hash keeps the order, and the neighbour is found first.
            word, neighbour = segment.terms[at], segment.terms[at - 1] if at else np.uint64(0)
            end = int(np.searchsorted(segment.terms, word, "right"))
            segment.terms[at:end] = neighbour  # also where the word stood in for others erased before
