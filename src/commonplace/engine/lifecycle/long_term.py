"""Which of the long-term memories that consolidation made are archived again. Pure.

There are as many of them as there is conversation, so that without an end every recall would search more, for ever.
What someone wrote as long-term memory is never among them, nor what its author asked to keep or someone brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commonplace.engine.lifecycle.consolidator import KEEP, KEPT_FROM, Score, score
from commonplace.engine.memory.undelete import RESTORED
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

#: For so long what was not sure has the time to be needed: to be recalled, or said again.
UNUSED_MS = 30 * DAY_MS
_HALF_LIFE = 90 * DAY_MS  # of long-term memory, as of the importance of a drawer

Document = dict[str, Any]


def choose_for_archive(memories: Sequence[Memory], capacity: int, now: int) -> list[tuple[Memory, Document]]:
    """Of one agent's and one person's, with why: those that were not sure and that nobody has needed, then the least
    worth of what is more than `capacity`; 0 is without limit."""
    gone: list[tuple[Memory, Document]] = []
    left: list[tuple[Memory, Score]] = []
    for memory in memories:
        if _is_kept(memory):
            continue
        unused, found = now - last_needed(memory), worth(memory, now)
        # As if it were decided now, when its newness is gone and what became of it is known.
        standing = replace(found, recency=0.0)
        if unused >= UNUSED_MS and standing.total < KEPT_FROM:
            gone.append((memory, {**standing.parts(), "unused_days": unused // DAY_MS}))
        else:
            left.append((memory, found))
    left.sort(key=lambda each: (each[1].total, last_needed(each[0]), each[0].id))
    over = left[: max(len(left) - capacity, 0)] if capacity else []
    return gone + [(memory, {**found.parts(), "capacity": capacity}) for memory, found in over]


def worth(memory: Memory, now: int) -> Score:
    return score(memory, said_again(memory), now - last_needed(memory), _HALF_LIFE)


def last_needed(memory: Memory) -> int:
    """When it was written, changed, said again or recalled."""
    return max(memory.created_at, memory.updated_at, memory.last_recalled_at or 0)


def said_again(memory: Memory) -> int:
    """How many more notes said the same, at once or later."""
    chain, merged = memory.provenance.get("chain", ()), memory.provenance.get("merged", ())
    return max(len(chain) - 1, 0) + len(merged)


def _is_kept(memory: Memory) -> bool:
    return memory.metadata.get(KEEP) is True or RESTORED in memory.provenance
