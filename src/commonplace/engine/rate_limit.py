"""How often something may be done: token buckets, refilled by the clock they are given. Pure but for that clock."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from commonplace.wire.errors import RateLimited

_REMEMBERED = 10_000  # who is longest unheard of is forgotten first; a full bucket loses nothing by it


@dataclass(slots=True)
class _Level:
    left: float
    at: float


class TokenBucket:
    """`per_second` on average, `burst` at once; kept apart for each key."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = max(burst, 1.0)
        self._clock = clock
        self._levels: OrderedDict[Hashable, _Level] = OrderedDict()

    def spend(self, key: Hashable, amount: float = 1.0) -> float:
        """0.0 when it was spent; otherwise nothing was, and this many seconds must pass first."""
        if wait := self.wait(key, amount):
            return wait
        self._levels[key].left -= amount
        return 0.0

    def wait(self, key: Hashable, amount: float = 1.0) -> float:
        """How many seconds must pass before that much can be spent."""
        now = self._clock()
        level = self._levels.get(key)
        if level is None:
            level = self._levels[key] = _Level(self.burst, now)
            if len(self._levels) > _REMEMBERED:
                self._levels.popitem(last=False)
        else:
            self._levels.move_to_end(key)
            level.left = min(self.burst, level.left + (now - level.at) * self.per_second)
            level.at = now
        return max(0.0, amount - level.left) / self.per_second


def per_minute(count: int, clock: Callable[[], float] = time.monotonic) -> TokenBucket | None:
    """`count` a minute, all of them at once if need be; None when there is no limit."""
    return TokenBucket(count / 60, count, clock) if count > 0 else None


def rate_limited(seconds: float, what: str) -> RateLimited:
    wait = max(1, int(seconds) + (seconds % 1 > 0))
    return RateLimited(f"{what}; try again in {wait} s", retry_after=wait)
