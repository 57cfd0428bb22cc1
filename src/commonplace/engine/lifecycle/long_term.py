"""Which of the long-term memories that consolidation made are archived again. Pure.

There are as many of them as there is conversation, so that without an end every recall would search more, for ever.
What someone wrote as long-term memory is never among them, nor what its author asked to keep or someone brought back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
_ScoredMemory = tuple[Memory, Score]


def choose_for_archive(
    memories: Sequence[Memory], capacity: int, now: int, authors: Mapping[str, str]
) -> list[tuple[Memory, Document]]:
    """Of one agent's and one person's, with why: those that were not sure and that nobody has needed, then what is more
    than `capacity` (see `_over`); 0 is without limit. `authors` names by id the principal whose words each holds."""
    gone: list[tuple[Memory, Document]] = []
    left: list[_ScoredMemory] = []
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
    over = _over(left, len(left) - capacity, authors) if capacity else []
    return gone + [(memory, {**found.parts(), "capacity": capacity}) for memory, found in over]


def _over(left: Sequence[_ScoredMemory], count: int, authors: Mapping[str, str]) -> list[_ScoredMemory]:
    """So many, one after another: each time the least worth of the principal who has the most of what is left.
    By worth alone whoever writes the same thing four times, of which all is new, would archive what others have
    long relied on. Having been recalled counts in the worth and no further: chatter that stood fourth under one answer
    would outlive a fact nobody has asked for yet."""
    rows = defaultdict[str, list[_ScoredMemory]](list)  # the least worth last
    for each in sorted(left, key=_by_worth, reverse=True):
        rows[authors.get(each[0].id, "")].append(each)
    over: list[_ScoredMemory] = []
    while rows and len(over) < count:
        author = min(rows, key=lambda name: (-len(rows[name]), _by_worth(rows[name][-1])))
        over.append(rows[author].pop())
        if not rows[author]:
            del rows[author]
    return over


def _by_worth(each: _ScoredMemory) -> tuple[float, int, str]:
    memory, found = each
    return found.total, last_needed(memory), memory.id


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
