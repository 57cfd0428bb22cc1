"""`python -m bench.redaction`: credentials caught and missed, service by service."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.redaction.report import document, measure, table

RESULTS = Path(__file__).resolve().parents[1] / "results" / "redaction.json"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.redaction", description=__doc__)
    parser.add_argument("--samples", type=int, default=20, help="of every service in every surrounding")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", action="store_true", help="also measure what redaction costs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON is written", metavar="FILE")
    options = parser.parse_args(arguments)
    families = measure(options.samples, options.seed)
    print(table(families))
    found = document(families)
    if options.speed:
        from bench.redaction.speed import microseconds, share_of_remember

        found |= {"microseconds": microseconds(), "share_of_remember": share_of_remember()}
        print("\n".join(f"{name}: {spent:.0f} µs" for name, spent in found["microseconds"].items()))
        print(f"share of a remember: {found['share_of_remember']:.1%}")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(f"({options.results})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
