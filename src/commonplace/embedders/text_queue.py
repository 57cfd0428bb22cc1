"""Texts that wait to be embedded, and whose turn it is: questions before what is written, each tenant in turn.

Not thread-safe by itself; `cache.CachedEmbedder` holds its lock around every call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum

from commonplace.embedders.base import Encoding

#: No embedder reads more of a text than this, so a longer one costs no more.
_MAX_COST = 2_000


class Lane(IntEnum):
    """What a text is embedded for; the lower goes first."""

    QUERY = 0  # someone waits for an answer
    WRITE = 1  # someone waits for an acknowledgement
    BACKGROUND = 2  # nobody waits


#: Texts that may wait before another is refused: of one tenant, and of all.
MAX_WAITING = {Lane.QUERY: (256, 1024), Lane.WRITE: (1024, 4096)}


@dataclass(slots=True, eq=False)
class PendingText:
    """One text that one tenant's callers wait for."""

    key: bytes
    text: str
    tenant: str
    lane: Lane
    waiters: int = 0
    future: Future[Encoding] = field(default_factory=Future)


class TextQueue:
    def __init__(self) -> None:
        self._lanes: dict[Lane, OrderedDict[str, OrderedDict[bytes, PendingText]]] = {
            lane: OrderedDict() for lane in Lane
        }
        self._sizes = dict.fromkeys(Lane, 0)

    def __len__(self) -> int:
        return sum(self._sizes.values())

    def add(self, pending: PendingText) -> None:
        self._lanes[pending.lane].setdefault(pending.tenant, OrderedDict())[pending.key] = pending
        self._sizes[pending.lane] += 1

    def withdraw(self, pending: PendingText) -> bool:
        """Whether it was still waiting."""
        texts = self._lanes[pending.lane].get(pending.tenant)
        if texts is None or texts.pop(pending.key, None) is None:
            return False
        self._sizes[pending.lane] -= 1
        if not texts:
            del self._lanes[pending.lane][pending.tenant]
        return True

    def promote(self, pending: PendingText, lane: Lane) -> None:
        """Someone who goes before those it waited with wants it, too."""
        if lane < pending.lane and self.withdraw(pending):
            pending.lane = lane
            self.add(pending)

    def is_full(self, tenant: str, lane: Lane) -> bool:
        if lane not in MAX_WAITING:
            return False
        own, most = MAX_WAITING[lane]
        return self._sizes[lane] >= most or len(self._lanes[lane].get(tenant, ())) >= own

    def waiting(self, lanes: Iterable[Lane]) -> bool:
        return any(self._sizes[lane] for lane in lanes)

    def take(self, count: int, chars: int, lanes: Iterable[Lane] = Lane) -> list[PendingText]:
        """The next batch: of one lane, a text from each tenant in turn, at least one and not much to compute."""
        lane = next((lane for lane in lanes if self._sizes[lane]), None)
        taken: list[PendingText] = []
        if lane is None:
            return taken
        tenants = self._lanes[lane]
        while tenants and len(taken) < count:
            tenant, texts = next(iter(tenants.items()))
            pending = next(iter(texts.values()))
            chars -= min(len(pending.text), _MAX_COST)
            if taken and chars < 0:
                break
            self.withdraw(pending)
            if tenant in tenants:
                tenants.move_to_end(tenant)
            taken.append(pending)
        return taken

    def clear(self) -> list[PendingText]:
        left = [p for tenants in self._lanes.values() for texts in tenants.values() for p in texts.values()]
        for pending in left:
            self.withdraw(pending)
        return left
