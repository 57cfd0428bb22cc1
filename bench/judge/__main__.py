"""python -m bench.judge calibrate | measure | train | export"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from commonplace.judges.minilm import MODEL


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.judge", description="The judge and the relevance of hits.")
    commands = parser.add_subparsers(dest="command", required=True)
    calibrated = commands.add_parser("calibrate", help="fit engine/recall/relevance.json anew")
    measure = commands.add_parser("measure", help="measure on the corpus's test questions")
    measure.add_argument("--split", choices=("tune", "test"), default="test")
    measure.add_argument("--plot", help="write the reliability plot here (PNG)")
    calibrated.add_argument(
        "--judged-share", type=float, default=0.34, help="of all questions so many may need the judge"
    )
    for command in (calibrated, measure):
        command.add_argument("--embedder", default="encoder")
        command.add_argument("--judge", type=Path, default=MODEL, help="another judge's file (ONNX)")
    train = commands.add_parser("train", help="train the judge anew (extra: train)")
    try:
        from bench.judge import train as training
    except ImportError as error:
        training, missing = None, error.name
    else:
        training.arguments(train)
    export = commands.add_parser("export", help="weights that `train` wrote as the ONNX file that ships")
    export.add_argument("weights", type=Path)
    export.add_argument("out", type=Path)
    chosen = parser.parse_args()
    if chosen.command in ("train", "export"):
        if training is None:
            raise SystemExit(f"training needs the extra `train` ({missing} is missing)")
        if chosen.command == "train":
            training.main(chosen)
        else:
            from bench.judge.export import export as write
            from bench.judge.network import load

            write(load(chosen.weights), chosen.out)
        return
    from bench.quality.judging import RememberedJudge
    from commonplace.embedders.registry import open_embedder

    embedder, judge = open_embedder(chosen.embedder), RememberedJudge(chosen.judge)
    if embedder is None:
        raise SystemExit("there is no relevance without an embedder; name one")
    if chosen.command == "calibrate":
        from bench.judge import calibrate

        entries = calibrate.calibrate(embedder, judge, chosen.judged_share)
        calibrate.write(entries)
        json.dump(entries, sys.stdout, indent=2)
        print()
    else:
        from bench.judge import measure as measuring

        measuring.main(embedder, judge, chosen.split, chosen.plot)


if __name__ == "__main__":
    main()
