"""What a merge makes of several memories. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from commonplace.engine.memory.retention import bound
from commonplace.wire.record import EVERYONE, Memory

Strategy = Literal["keep_canonical", "merge_content", "keep_highest_confidence"]


@dataclass(slots=True)
class MergeResult:
    survivor: Memory
    losers: list[Memory]
    changed: bool  # whether the survivor differs from how it was


def combine(canonical: Memory, duplicates: Sequence[Memory], strategy: Strategy) -> MergeResult:
    if strategy == "keep_canonical":
        return MergeResult(canonical, list(duplicates), changed=False)
    everyone = [canonical, *duplicates]
    if strategy == "keep_highest_confidence":
        survivor = min(everyone, key=lambda m: (-m.confidence, m.created_at, m.id))
        return MergeResult(survivor, [m for m in everyone if m.id != survivor.id], changed=False)
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
    survivor = bound(survivor, everyone)
    privacy = {name: value for name, value in survivor.privacy.items() if name != "share_with"}
    names = shared_with(everyone)
    survivor = replace(survivor, privacy={**privacy, "share_with": names} if names else privacy)
    return MergeResult(survivor, list(duplicates), changed=True)


def shared_with(memories: Sequence[Memory]) -> list[str]:
    """Who may be shown the text of all of these at once: whoever may be shown each of them."""
    given = [list(memory.privacy.get("share_with") or ()) for memory in memories]
    names = dict.fromkeys(name for each in given for name in each)
    return [name for name in names if all(name in each or EVERYONE in each for each in given)]
