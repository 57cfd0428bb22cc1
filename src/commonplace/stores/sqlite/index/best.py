"""The highest of many scores, without sorting them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 64


def best(scores: NDArray[np.float32], limit: int, above: float) -> NDArray[np.intp]:
    """Positions of the `limit` highest over `above`, best first, equal ones in order.

    Looks at the highest of each block first: that bounds what can be among the best without sorting everything.
    """
    at = highest(scores, limit, above)
    return at[np.argsort(-scores[at], kind="stable")[:limit]]


def highest(scores: NDArray[np.float32], limit: int, above: float = -np.inf) -> NDArray[np.intp]:
    """Positions of the `limit` highest over `above` and of what equals the last of them, in order of position."""
    blocks = len(scores) // _BLOCK
    if blocks > 2 * limit:
        peaks = scores[: blocks * _BLOCK].reshape(-1, _BLOCK).max(axis=1)
        bound = np.partition(peaks, blocks - limit)[blocks - limit]
        at = np.flatnonzero(scores >= bound) if bound > above else np.flatnonzero(scores > above)
    else:
        at = np.flatnonzero(scores > above)
    if len(at) > limit:
        kept = scores[at]
        at = at[kept >= np.partition(kept, len(kept) - limit)[len(kept) - limit]]
    return at
