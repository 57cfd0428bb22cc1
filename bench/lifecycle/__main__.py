"""`python -m bench.lifecycle`: half a year of conversation with and without the jobs, and what they cost meanwhile."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.lifecycle.cost import measure, measure_dream
from bench.lifecycle.simulation import KINDS, World, live_through
from commonplace.embedders.registry import open_embedder
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Clock

RESULTS = Path(__file__).resolve().parents[1] / "results" / "lifecycle.json"
#: Thousands of units of work, each on the disk before the next, would take most of the time.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
_WORLDS: dict[str, dict[str, Any]] = {
    "without jobs": {"jobs": False},
    "with jobs": {},
    "jobs that crash": {"crash": True},
    "little room": {"crash": True, "capacity": 60},  # which is used up in less than half a year
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lifecycle", description=__doc__)
    parser.add_argument("--days", type=int, default=180)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", default="encoder", help="as in COMMONPLACE_EMBEDDER")
    parser.add_argument("--only", choices=("life", "cost", "dream"), help="one part of it")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON is written", metavar="FILE")
    options = parser.parse_args(arguments)
    found: dict[str, object] = {}
    if options.only in (None, "life"):
        found["life"] = [world.document() for world in _live(options.days, options.seed, options.embedder)]
    if options.only in (None, "cost"):
        found["cost"] = _shown(asyncio.run(measure(options.embedder)))
    if options.only in (None, "dream"):
        found["dream"] = _shown(asyncio.run(measure_dream(options.embedder)))
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"({options.results})")
    return 0


def _shown(figures: dict[str, float]) -> dict[str, float]:
    print("\n".join(f"{name:<58}{value:>12,.2f}" for name, value in figures.items()))
    return figures


def _live(count: int, seed: int, embedder: str) -> list[World]:
    columns = {"notes": 7, "live": 7, "most": 7, "long": 7, "lost": 6, "worse": 7, "recall@5": 10, "crashes": 9, "s": 6}
    print(" " * 18 + "".join(name.rjust(width) for name, width in columns.items()))
    worlds = []
    for name, how in _WORLDS.items():
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            world = asyncio.run(
                live_through(
                    _opener(Path(folder)), open_embedder(embedder), name=name, count=count, seed=seed, told=_dot, **how
                )
            )
        worlds.append(world)
        figures = f"{world.notes:>7,}{world.live:>7,}{world.most_live:>7,}{world.long_term:>7,}{len(world.lost):>6}"
        figures += f"{len(world.worse):>7}{world.recall_at_5:>10.3f}{world.crashes:>9}{time.monotonic() - start:>6.0f}"
        print(f"\r{name:<18}{figures}", flush=True)
        for said in (*world.lost[:5], *world.worse[:5]):
            print(f"  {said}")
        print("  day" + " " * 13 + "".join(f"{day:>7}" for day in world.live_on_day))
        for kind in (*KINDS, "all"):
            print(f"  {kind:<16}" + "".join(f"{counts[kind]:>7}" for counts in world.live_on_day.values()))
    return worlds


def _opener(folder: Path) -> Callable[[Clock], SqliteStore]:
    return lambda clock: SqliteStore(folder / "commonplace.db", clock=clock)


def _dot(day: int) -> None:
    if sys.stderr.isatty():
        print(f"\rday {day + 1}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
