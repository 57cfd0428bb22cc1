"""A question put to a snapshot: conditions first, then the best by meaning and the best by words, with both scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commonplace.stores import text
from commonplace.stores.exact_search import top
from commonplace.stores.sqlite.index import vector_search
from commonplace.stores.sqlite.index.query import Flags, Hit, IndexQuery
from commonplace.stores.sqlite.index.scope import Shard, Snapshot
from commonplace.stores.sqlite.index.segment import Segment
from commonplace.stores.sqlite.index.tail import TailPart

Scores = NDArray[np.float32]


def search(snapshot: Snapshot, query: IndexQuery) -> list[Hit]:
    if query.limit <= 0 or not snapshot.count:
        return []
    masks = [visible(shard, query) for shard in snapshot.shards]
    chosen: set[tuple[int, int]] = set()
    if query.vector is not None:
        chosen.update(vector_search.nearest(snapshot.shards, masks, query.vector, query.limit))
    scores: list[Scores | None] = [None] * len(snapshot.shards)
    if len(query.terms):
        scores = keyword_scores(snapshot, query.terms)
        chosen.update(_best_by_keywords(snapshot.shards, masks, scores, query.limit))
    hits: list[Hit] = []
    for i, shard in enumerate(snapshot.shards):
        docs = np.array(sorted(doc for j, doc in chosen if j == i), np.int64)
        if not len(docs):
            continue
        found = scores[i]
        keywords = found[docs].tolist() if found is not None else None
        if keywords is None:
            keywords = [0.0 if len(query.terms) else None] * len(docs)
        cosines = vector_search.cosines_of(shard.part, docs, query.vector)
        hits += map(Hit, shard.part.mids[docs].tolist(), cosines, keywords)
    return hits


def visible(shard: Shard, query: IndexQuery) -> Flags | None:
    """Which rows the question may see (one flag more, as in `Shard`); None for all of them."""
    part = shard.part
    tests = []
    if query.types is not None:
        table = np.zeros(256, bool)
        table[list(query.types)] = True
        tests.append(table[part.types])
    if query.user is not None:
        tests.append(part.users == np.uint64(query.user))
    if query.created_from is not None:
        tests.append(part.created >= query.created_from)
    if query.now is not None and 0 < part.first_expiry <= query.now:
        tests.append((part.expires == 0) | (part.expires > query.now))
    if query.allowed is not None:
        tests.append(_allowed(part, query.allowed))
    if not tests:
        return None if shard.alive == part.size else shard.live
    mask = shard.live.copy()
    for test in tests:
        mask[:-1] &= test
    return mask


def _allowed(part: Segment | TailPart, allowed: NDArray[np.int64]) -> Flags:
    flags = np.zeros(part.size, bool)
    if not len(allowed):
        return flags
    if isinstance(part, Segment) and len(allowed) < part.size // 16:
        flags[part.find(allowed)] = True  # a few among many: look those up instead of every row
        return flags
    at = np.searchsorted(allowed, part.mids)
    at[at == len(allowed)] = 0
    return np.equal(allowed[at], part.mids, out=flags)


def keyword_scores(snapshot: Snapshot, terms: Sequence[int]) -> list[Scores | None]:
    """BM25 of every row of each shard; None where no term occurs. Statistics are those of all that lives."""
    wanted = np.array(terms, np.uint64)
    postings = [shard.part.postings(wanted) for shard in snapshot.shards]
    table = text.impact_table(snapshot.total_length / snapshot.count)
    scores: list[Scores | None] = [None] * len(snapshot.shards)
    for k in range(len(wanted)):
        found = [(i, lists[k]) for i, lists in enumerate(postings)]
        containing = 0
        for i, lists in found:
            if lists is not None:
                shard = snapshot.shards[i]
                whole = shard.alive == shard.part.size
                containing += len(lists[0]) if whole else int(np.count_nonzero(shard.live[lists[0]]))
        weights = np.float32(text.idf(snapshot.count, containing)) * table
        for i, lists in found:
            if lists is not None:
                held = scores[i]
                if held is None:
                    held = scores[i] = np.zeros(snapshot.shards[i].part.size + 1, np.float32)
                docs, codes = lists
                held[docs] += weights[codes]
    return scores


def _best_by_keywords(
    shards: Sequence[Shard], masks: Sequence[Flags | None], scores: Sequence[Scores | None], limit: int
) -> list[tuple[int, int]]:
    ranked: list[tuple[float, int, int, int]] = []
    for i, (shard, mask, held) in enumerate(zip(shards, masks, scores, strict=True)):
        if held is None:
            continue
        usable = held[:-1] if mask is None else held[:-1] * mask[:-1]
        docs = top(usable, limit, above=0.0)
        mids = shard.part.mids[docs].tolist()
        values = usable[docs].tolist()
        ranked += [(-v, mid, i, doc) for v, mid, doc in zip(values, mids, docs.tolist(), strict=True)]
    ranked.sort()
    return [(i, doc) for _, _, i, doc in ranked[:limit]]
