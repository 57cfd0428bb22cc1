"""python -m bench.quality [tune|multilingual] [--shared FOLDER] [--locomo FILE] [--embedder SPEC] [--judge FILE]"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from bench.quality import fitting, measuring, multilingual
from bench.quality.judging import RememberedJudge
from bench.quality.sources import Sources
from commonplace.judges.minilm import MODEL


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description="Does recall find the right memories?")
    parser.add_argument("what", nargs="?", choices=("measure", "tune", "multilingual"), default="measure")
    shared = os.environ.get("COMMONPLACE_BENCH_DATA")
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(shared) if shared else None,
        help="a folder with microbench.json and locomo-dev.json [COMMONPLACE_BENCH_DATA]",
    )
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations, instead of the folder's")
    parser.add_argument("--embedder", default="encoder")
    parser.add_argument("--judge", type=Path, default=MODEL, help="another judge's file (ONNX), to tune with")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--quick", action="store_true", help="without the ablations")
    parser.add_argument("--write", action="store_true", help="tune: put the weights where the engine reads them")
    given = parser.parse_args()
    sources = Sources.of(given.shared, given.locomo, given.embedder)
    if given.what == "tune":
        asyncio.run(fitting.tune(sources, RememberedJudge(given.judge), write=given.write))
    elif given.what == "multilingual":
        asyncio.run(multilingual.fit_multilingual(sources, write=given.write))
    else:
        asyncio.run(measuring.measure(sources, given.out, quick=given.quick))


if __name__ == "__main__":
    main()
