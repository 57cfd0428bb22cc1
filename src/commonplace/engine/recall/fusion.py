"""Several stores' ranked lists made one, exactly as the paper has it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from commonplace.engine.types import Fusion

RRF_K = 60
OVERFETCH = 4
HOP_STEP = 0.1

#: One store's list: (id, raw score), best first.
RankedList = Sequence[tuple[str, float]]
#: The same, where None is a place that nobody has.
RankedPlaces = Sequence[tuple[str, float] | None]


def with_missing(listed: RankedList, own: RankedList, missing: Set[str], limit: int) -> RankedPlaces:
    """A store's list as if it had what it cannot have: each at the place and with the score that the primary's `own`
    list gives it. The rest moves down, or its ranks would be better than those of a store that has everything."""
    held = {rank: pair for rank, pair in enumerate(own[:limit]) if pair[0] in missing}
    if not held:
        return listed
    rest = iter(listed)
    length = min(max(len(listed) + len(held), max(held) + 1), limit)
    return [held.get(rank) or next(rest, None) for rank in range(length)]


def fuse(
    lists: Mapping[str, RankedPlaces],
    how: Fusion = "rrf",
    *,
    weights: Mapping[str, float] | None = None,
    quorum: int = 1,
) -> list[tuple[str, float]]:
    """Every id once, best first; ids found by fewer than `quorum` stores are left out."""
    share: Callable[[str, int, float], float] = {
        "rrf": lambda store, rank, score: 1.0 / (RRF_K + rank),
        "max": lambda store, rank, score: score,
        "weighted": lambda store, rank, score: (weights or {}).get(store, 1.0) * score,
    }[how]
    fused: dict[str, float] = {}
    seen: dict[str, int] = {}
    for store, ranked in lists.items():
        for rank, place in enumerate(ranked):
            if place is None:
                continue
            id, score = place
            gained = share(store, rank, score)
            fused[id] = max(fused.get(id, gained), gained) if how == "max" else fused.get(id, 0.0) + gained
            seen[id] = seen.get(id, 0) + 1
    # Python's sort is stable, so equal scores keep the order of the first list that named them.
    return sorted(((id, score) for id, score in fused.items() if seen[id] >= quorum), key=lambda item: -item[1])


def boost_hops(fused: Sequence[tuple[str, float]], distances: Mapping[str, int]) -> list[tuple[str, float]]:
    """Raise items that have a neighbour in the set, once, by their smallest distance; adds no new items."""
    boosted = [(id, score * (1 + HOP_STEP / (1 + distances[id])) if id in distances else score) for id, score in fused]
    return sorted(boosted, key=lambda item: -item[1])
