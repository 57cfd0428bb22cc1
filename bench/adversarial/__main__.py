"""`python -m bench.adversarial`: prints the tables, writes JSON and a plot."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from bench.adversarial.experiment import (
    ATTACKS,
    FUSIONS,
    INJECTED,
    RECOMMENDED,
    SIZES,
    Outcome,
    beyond,
    published_table,
)
from bench.adversarial.plot import plot, plot_router
from bench.adversarial.router import ATTACKS as ROUTER_ATTACKS, WAYS, RouterOutcome, through_router


def main() -> None:
    parser = argparse.ArgumentParser(description="What a rogue store can do to an answer that several stores give.")
    parser.add_argument("--json", type=Path, default=Path("bench/results/adversarial.json"))
    parser.add_argument("--svg", type=Path, default=Path("docs/adversarial.svg"))
    parser.add_argument("--router-svg", type=Path, default=Path("docs/adversarial-router.svg"))
    given = parser.parse_args()
    published, more, routed = published_table(), beyond(), through_router()
    print("As published (§5.2, Table 4): 2 benign stores and 1 rogue, 50 memories, 20 queries\n")
    print("injected  " + "  ".join(f"{fusion:>8}: R@5  leak displ." for fusion in FUSIONS))
    by = {(o.setting.fusion, o.setting.injected): o for o in published}
    for injected in INJECTED:
        row = [by[fusion, injected] for fusion in FUSIONS]
        print(f"{injected:>8}  " + "  ".join(f"{'':8}  {o.recall:.3f} {o.leak:.3f} {o.displaced:.3f}" for o in row))
    print("\nOn lists: RRF, 50 injected, by size of the corpus (R@5 / leak / pushed)\n")
    for rogues in (1, 2):
        for attack in ATTACKS:
            for quorum, checked in ((1, False), (2, False), (1, True), (2, True)):
                row = [o for o in more if _is(o, "rrf", rogues, attack, quorum, checked)]
                name = f"{rogues} of 3, {attack}, quorum {quorum}, {'checked' if checked else 'unchecked'}"
                print(f"{name:<52}" + "   ".join(f"{o.recall:.2f}/{o.leak:.2f}/{o.pushed:.2f}" for o in row))
    print_router(routed)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    document = {"published": [o.document() for o in published], "beyond": [o.document() for o in more]}
    document["router"] = [o.document() for o in routed]
    given.json.write_text(
        json.dumps({**document, "recommended": RECOMMENDED, "sizes": SIZES}, separators=(",", ":")) + "\n"
    )
    given.svg.write_text(plot(more), "utf-8")
    given.router_svg.write_text(plot_router(routed), "utf-8")
    print(f"\nwritten: {given.json}, {given.svg}, {given.router_svg}")


def print_router(outcomes: Sequence[RouterOutcome]) -> None:
    print("\nThrough the router, by size of the corpus (R@5 / leak / pushed)\n")
    for rogues in (1, 2):
        for attack in ROUTER_ATTACKS:
            for routing, fusion, quorum in WAYS:
                row = [
                    o for o in outcomes
                    if (o.setting.routing, o.setting.fusion, o.setting.quorum) == (routing, fusion, quorum)
                    and (o.setting.rogues, o.setting.attack) == (rogues, attack)
                ]  # fmt: skip
                name = f"{rogues} of 3, {attack}, {routing}, {fusion}, quorum {quorum}"
                print(f"{name:<56}" + "   ".join(f"{o.recall:.2f}/{o.leak:.2f}/{o.pushed:.2f}" for o in row))


def _is(outcome: Outcome, fusion: str, rogues: int, attack: str, quorum: int, checked: bool) -> bool:
    s = outcome.setting
    return (s.fusion, s.rogues, s.attack, s.quorum, s.checked) == (fusion, rogues, attack, quorum, checked)


if __name__ == "__main__":
    main()
