"""What ties the memories found to each other and to others: who is raised for it, and what supports whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.engine.core import Core
from commonplace.engine.types import Query
from commonplace.stores.base import Reach
from commonplace.stores.graph import Instant

#: At most this many supporting ids beside a hit, the nearest first.
SUPPORTING = 20


def hops_unavailable(core: Core, query: Query) -> str | None:
    """Why the hops that were asked for are not followed, if they are not."""
    if not query.hops or "graph" in core.primary.capabilities:
        return None
    return f"hops was not applied: the store {core.primary.name} keeps no links between memories"


async def nearest_distances(core: Core, reach: Reach, query: Query, ids: Sequence[str]) -> dict[str, int]:
    """Of each that has another of them within the query's hops, how far the nearest is.

    What the query filters out is not walked through.
    """
    if not query.hops or hops_unavailable(core, query):
        return {}
    linked = await core.primary.linked(reach, ids, query.hops, _instant(core, query), 0)
    return smallest_distances(linked)


async def supporting_ids(core: Core, reach: Reach, query: Query, ids: Sequence[str]) -> dict[str, list[str]]:
    """What is tied to each within the query's hops: the nearest first, of those equally near other hits first."""
    if not query.hops or not ids or hops_unavailable(core, query):
        return {}
    linked = await core.primary.linked(reach, ids, query.hops, _instant(core, query), SUPPORTING)
    return {id: nearest_ids(near, linked) for id, near in linked.items()}


def smallest_distances(linked: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    near = {id: [distance for other, distance in reached.items() if other in linked] for id, reached in linked.items()}
    return {id: min(distances) for id, distances in near.items() if distances}


def nearest_ids(near: Mapping[str, int], hits: Mapping[str, object]) -> list[str]:
    return sorted(near, key=lambda other: (near[other], other not in hits))[:SUPPORTING]


def _instant(core: Core, query: Query) -> Instant:
    """Which statements count: those of now, or of the past that is read."""
    at = query.snapshot.at if query.snapshot is not None else query.as_of
    return Instant(core.clock()) if at is None else Instant(at, given=True)
