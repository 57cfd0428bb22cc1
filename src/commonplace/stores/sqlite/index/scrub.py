"""Overwriting erased rows where they lie, so that erasing one memory does not rewrite a million."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from commonplace.stores.sqlite.index.segment import Identity, Segment, header


def scrub(path: Path, identity: Identity, erased: Sequence[tuple[int, int]]) -> int:
    """Remove all that came from these (mid, seq) from the file; how many rows were found.

    The mid itself stays: it keeps the order, and says no more than the erasure mark does.
    """
    if not erased:
        return 0
    segment = Segment(path, identity, writable=True)
    marks = dict(erased)
    rows = segment.find(np.unique(np.array(list(marks), np.int64)))
    rows = np.array([at for at in rows.tolist() if 0 < segment.seqs[at] <= marks[int(segment.mids[at])]], np.int64)
    if not len(rows):
        return 0
    gone = np.zeros(segment.size + 1, bool)
    gone[rows] = True
    vectors = np.flatnonzero(gone[segment.vector_docs])
    segment.vectors[vectors] = 0
    segment.codes[vectors] = 0
    _scrub_postings(segment, gone)
    for column in (segment.created, segment.expires, segment.users, segment.lengths, segment.types):
        column[rows] = 0
    segment.seqs[rows] = 0  # last: a row that still has one is scrubbed again
    expiries = segment.expires[segment.expires > 0]
    first_expiry = int(expiries.min()) if len(expiries) else 0
    if first_expiry != segment.first_expiry:
        start = header(identity, segment.counts, first_expiry, segment.last_seq, segment.nbytes)
        segment.map[: len(start)] = start
    segment.map.flush()
    with path.open("r+b") as file:
        os.fsync(file.fileno())
    return len(rows)


def _scrub_postings(segment: Segment, gone: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
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
            segment.terms[at:end] = neighbour  # also where the word stood in for others scrubbed before
