"""What a merge makes of several memories. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from commonplace.engine.expiry import bound
from commonplace.wire.record import Memory

Strategy = Literal["keep_canonical", "merge_content", "keep_highest_confidence"]


@dataclass(slots=True)
class Merged:
    survivor: Memory
    losers: list[Memory]
    changed: bool  # whether the survivor differs from how it was


def combine(canonical: Memory, duplicates: Sequence[Memory], strategy: Strategy) -> Merged:
    if strategy == "keep_canonical":
        return Merged(canonical, list(duplicates), changed=False)
    everyone = [canonical, *duplicates]
    if strategy == "keep_highest_confidence":
        survivor = min(everyone, key=lambda m: (-m.confidence, m.created_at, m.id))
        return Merged(survivor, [m for m in everyone if m.id != survivor.id], changed=False)
    oldest_first = sorted(everyone, key=lambda m: (m.created_at, m.id))
    metadata: dict[str, Any] = {}
    for memory in oldest_first:
        metadata |= memory.metadata
    by_age = [canonical, *(m for m in oldest_first if m.id != canonical.id)]
    survivor = replace(
        canonical,
        content="\n".join(dict.fromkeys(m.content for m in by_age)),
        metadata=metadata,
        tags=list(dict.fromkeys(tag for m in oldest_first for tag in m.tags)),
        confidence=max(m.confidence for m in everyone),
    )
    return Merged(bound(survivor, everyone), list(duplicates), changed=True)
