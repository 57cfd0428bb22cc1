"""Timers for a machine that is never quiet: CPU rather than wall, turns taken, medians."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any


@contextmanager
def no_collection() -> Iterator[None]:
    """Garbage is collected before, not during: whoever happens to trip the collector would pay for all."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu(work: Callable[[], Any]) -> float:
    """Seconds of all threads of this process, in user code and in the kernel."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(
    works: dict[str, Callable[[Any], Any]], items: Sequence[Any], rounds: int = 1, block: int = 10
) -> dict[str, float]:
    """Median CPU seconds of each on the same items. They take turns after each block, so that all meet the same
    weather, but none finds its caches emptied by the other at every single call."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    with no_collection():
        for _ in range(rounds):
            for start in range(0, len(items), block):
                for name, work in works.items():
                    taken[name] += [cpu(lambda: work(item)) for item in items[start : start + block]]  # noqa: B023
    return {name: median(seconds) for name, seconds in taken.items()}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def memory() -> dict[str, int]:
    """Bytes of this process: all it has mapped, its fair share of it, and what is its own alone."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        import resource

        return {"Rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}
    sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:] if line.endswith("kB")}
    own = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    return {"Rss": sizes["Rss"], "Pss": sizes["Pss"], "Anonymous": sizes.get("Anonymous", 0), "Private": own}
