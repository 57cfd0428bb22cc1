"""`python -m bench`: the speed of the embedded store, beside what it is meant to be."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

from bench.speed.plan import Plan
from bench.speed.report import Report
from commonplace.embedders.registry import open_embedder
from commonplace.wire.errors import Fault

BENCHMARKS = ("write", "vector", "hybrid", "disk", "start", "growth", "crowd", "mcp")
RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    plan, chosen = _planned(arguments)
    plan.cache.mkdir(parents=True, exist_ok=True)
    _note_what_is_missing(plan)
    missed = []
    for name in chosen:
        start = time.monotonic()
        report: Report = importlib.import_module(f"bench.speed.{name}").run(plan)
        report.show()
        report.write(plan.results, name)
        missed += [f"{name}: {figure.name}" for figure in report.figures if figure.met is False]
        print(f"  ({time.monotonic() - start:.0f} s; {plan.results / f'{name}.json'})", flush=True)
    print("\nEvery target was met." if not missed else "\nMissed:\n  " + "\n  ".join(missed))
    return 0


def _planned(arguments: list[str] | None) -> tuple[Plan, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("benchmark", nargs="*", help=f"some of {', '.join(BENCHMARKS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="at most 100,000 memories; a few minutes")
    parser.add_argument("--tiny", action="store_true", help="only shows that the benchmarks run; figures mean nothing")
    parser.add_argument("--cache", type=Path, help="where loaded stores are kept between runs", metavar="DIR")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON is written", metavar="DIR")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.benchmark if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    cache = options.cache or Path(tempfile.gettempdir()) / "commonplace-bench-speed"
    plan = Plan(cache, options.results)
    if options.quick:
        plan.sizes, plan.large = plan.sizes[:-1], plan.large[:-1]
    if options.tiny:
        plan.sizes, plan.large, plan.tiny, plan.model, plan.embedded = (50, 200), (200,), True, None, 100
    return plan, options.benchmark or list(BENCHMARKS)


def _note_what_is_missing(plan: Plan) -> None:
    """Sizes the disk cannot take, and the model, are done without; the reader is told."""
    for size in plan.without_room():
        print(f"not enough room under {plan.cache} for {size:,} memories: left out (--cache names another place)")
        plan.sizes = tuple(s for s in plan.sizes if s != size)
        plan.large = tuple(s for s in plan.large if s != size)
    if plan.model is not None:
        try:
            embedder = open_embedder(plan.model)
            assert embedder is not None
            embedder.embed(["is the model there?"])
        except Fault as fault:
            print(f"{fault.message}; vectors are made by hashing, so recall@10 says little")
            plan.model = None


if __name__ == "__main__":
    sys.exit(main())
