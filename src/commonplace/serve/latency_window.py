"""How long requests took during the last hour, minute by minute: what a person looks at when it feels slow."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

MINUTES = 60
_SAMPLES = 256  # kept of a minute; of more, as many at random


@dataclass(slots=True)
class _Minute:
    number: int
    count: int = 0
    samples: list[float] = field(default_factory=list)


class LatencyWindow:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: dict[str, deque[_Minute]] = {}

    def add(self, operation: str, seconds: float) -> None:
        now = int(self._clock() // 60)
        minutes = self._minutes.setdefault(operation, deque(maxlen=MINUTES))
        if not minutes or minutes[-1].number != now:
            minutes.append(_Minute(now))
        minute = minutes[-1]
        minute.count += 1
        if len(minute.samples) < _SAMPLES:
            minute.samples.append(seconds)
        elif (place := random.randrange(minute.count)) < _SAMPLES:
            minute.samples[place] = seconds

    def series(self) -> Mapping[str, Sequence[tuple[int, int, float, float]]]:
        """Of each operation that was asked for: (minute in ms, requests, median ms, 95th percentile ms)."""
        first = int(self._clock() // 60) - MINUTES
        found = {}
        for operation, minutes in sorted(self._minutes.items()):
            points = [_point(minute) for minute in minutes if minute.number > first]
            if points:
                found[operation] = points
        return found


def _point(minute: _Minute) -> tuple[int, int, float, float]:
    ordered = sorted(minute.samples)
    middle, high = ordered[len(ordered) // 2], ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    return minute.number * 60_000, minute.count, middle * 1000, high * 1000
