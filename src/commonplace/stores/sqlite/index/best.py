"""The highest of many scores, without sorting them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 64


def best(scores: NDArray[np.float32], limit: int, above: float) -> NDArray[np.intp]:
    """Positions of the `limit` highest over `above`, best first, equal ones in order.

    Looks at the highest of each block first: that bounds what can be among the best without sorting everything.
    """
    blocks = len(scores) // _BLOCK
    if blocks > 2 * limit:
        peaks = scores[: blocks * _BLOCK].reshape(-1, _BLOCK).max(axis=1)
        bound = np.partition(peaks, blocks - limit)[blocks - limit]
        at = np.flatnonzero(scores >= bound) if bound > above else np.flatnonzero(scores > above)
    else:
        at = np.flatnonzero(scores > above)
    kept = scores[at]
    if len(at) > limit:
        within = kept >= np.partition(kept, len(kept) - limit)[len(kept) - limit]
        at, kept = at[within], kept[within]
    return at[np.argsort(-kept, kind="stable")[:limit]]
