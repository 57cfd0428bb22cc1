"""Which segments to merge."""

from __future__ import annotations

from collections.abc import Sequence

#: Rows the tail may hold before it becomes a segment.
FLUSH = 1024


def first_to_merge(sizes: Sequence[int]) -> int:
    """Everything from this one on becomes one segment; the last size is the tail's.

    A segment is rewritten only together with at least twice its own size of newer rows, so it at least triples
    each time: few segments, and each row is rewritten a logarithmic number of times.
    """
    newer = 0
    start = len(sizes) - 1
    for i in range(len(sizes) - 1, -1, -1):
        if 2 * sizes[i] <= newer:
            start = i
        newer += sizes[i]
    return start
