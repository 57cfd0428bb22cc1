"""`python -m bench.peers`: Commonplace beside other memories, in one run on one machine."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.peers import corpus, measures, publishing
from bench.peers.comparison import unexplained
from bench.peers.conversation import Failed, Kept, Talk
from bench.peers.environment import ROOT, prepare
from bench.peers.report import ratios_table, tables
from bench.peers.results import Results, parse_size
from bench.peers.running import Plan, Rows, run_size
from bench.peers.syncs import syncs_per_remember
from bench.peers.systems import SYSTEMS
from bench.speed.material import gather
from commonplace.embedders.registry import DEFAULT, open_embedder
from commonplace.wire.errors import Fault, ValidationError

RESULTS = ROOT / "bench" / "results"
FOLDER = ROOT / ".bench-peers"


def main(arguments: list[str] | None = None) -> int:
    options = _parsed(arguments)
    if options.publish:
        return _publish(options.results)
    began = time.monotonic()
    say = _speaker(began)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever is told to stop tells its children, too
    try:
        plan = _planned(options, say)
    except Fault as fault:
        print(f"{fault.message}", file=sys.stderr)
        return 1
    results = _begun(options, plan)
    try:
        for size in options.sizes:
            if size in results.complete and options.resume:
                say(f"{size:,}: taken from {options.results}")
                continue
            _one_size(plan, results, size, options.results, say)
        if not options.no_quality:
            _quality(plan, results, options.results, say)
        if not options.no_syncs:
            _syncs(plan, results, options.results, say)
    except KeyboardInterrupt:
        print("\nstopped; what was measured is kept, --resume goes on", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(plan.work, ignore_errors=True)
    results.minutes = round((time.monotonic() - began) / 60, 1)
    file = results.write(options.results)
    print(tables(results))
    print(ratios_table(results))
    for each in unexplained(results):
        at = "" if each.size is None else f" at {each.size:,}"
        print(f"unexplained: {each.measure.title} of {SYSTEMS[each.system].title}{at} is {each.ratio:.2f} × ours")
    print(f"\n({results.minutes} min; {file}; `python -m bench.peers --publish` renews the page)")
    return 0


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--sizes", type=_sizes, default="1k,10k", help="1k,10k,100k or other numbers (1k,10k)")
    parser.add_argument("--systems", type=_systems, default=",".join(SYSTEMS), help=f"some of {','.join(SYSTEMS)}")
    parser.add_argument("--calls", type=int, default=100, help="of each measure and system, at most 100")
    parser.add_argument("--cap", type=float, default=12.0, help="seconds for one measure of a slow system")
    parser.add_argument("--starts", type=int, default=3, help="fresh processes of each at each size")
    parser.add_argument("--embed-up-to", type=_size, default="100k", help="load ours from texts up to this size (100k)")
    parser.add_argument("--texts", type=int, default=10_000, help="how many texts are embedded; more are made of these")
    parser.add_argument("--embedder", default=DEFAULT, help=f"for ours, and those without one ({DEFAULT})")
    parser.add_argument("--split", choices=("tune", "test"), default="test", help="the half of the corpus to report")
    parser.add_argument("--no-quality", action="store_true", help="without the corpus")
    parser.add_argument("--no-syncs", action="store_true", help="without counting what the disk is made to do")
    parser.add_argument("--resume", action="store_true", help="keep the sizes that an earlier run has measured")
    parser.add_argument("--publish", action="store_true", help="measure nothing: results into docs/benchmarks.md")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the peers' environment and data", metavar="DIR")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where JSON is written", metavar="DIR")
    options = parser.parse_args(arguments)
    options.command = " ".join(("python -m bench.peers", *(sys.argv[1:] if arguments is None else arguments)))
    return options


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _sizes(text: str) -> list[int]:
    return sorted({_size(part) for part in text.split(",")})


def _systems(text: str) -> list[str]:
    wanted = text.split(",")
    for name in wanted:
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"there is no system {name!r}; there are {', '.join(SYSTEMS)}")
    return [name for name in SYSTEMS if name in wanted]


def _speaker(began: float) -> Callable[[str], None]:
    """Every step on a line of its own, with the time since the beginning."""
    return lambda what: print(f"  {time.monotonic() - began:6.0f} s  {what}", file=sys.stderr, flush=True)


def _planned(options: argparse.Namespace, say: Callable[[str], None]) -> Plan:
    environment = prepare(options.folder, options.systems, options.embedder)
    for name, why in environment.missing.items():
        say(f"{SYSTEMS[name].title} is left out: {why}")
    embedder = open_embedder(options.embedder)
    if embedder is None:
        raise ValidationError("peers are compared by meaning: name an embedder", field="embedder")
    embedder.embed(["is the model there?"])
    folder = options.folder / "material"
    material = gather(folder, embedder, options.texts)
    kept = Kept(folder, len(material.texts))
    work = options.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    plan = Plan(environment, options.systems, material, kept, work, options.calls, options.cap, starts=options.starts)
    plan.embedded = options.embed_up_to
    return plan


def _begun(options: argparse.Namespace, plan: Plan) -> Results:
    results = Results(command=options.command, embedder=plan.material.embedder, split=options.split)
    results.versions = dict(plan.environment.versions)
    earlier = Results.read(options.results) if options.resume else None
    if earlier and results.same_subject(earlier):
        results.sizes, results.complete = earlier.sizes, earlier.complete
        results.quality, results.syncs = earlier.quality, earlier.syncs
        results.versions = {**earlier.versions, **results.versions}
    elif earlier:
        aside = earlier.write(options.results / "earlier")
        print(f"the earlier results are of other versions: they are kept in {aside}", file=sys.stderr)
    return results


def _one_size(plan: Plan, results: Results, size: int, folder: Path, say: Callable[[str], None]) -> None:
    def keep(rows: Rows) -> None:
        results.sizes[size] = rows
        results.write(folder)

    keep(run_size(plan, size, say, keep))
    results.complete = sorted({*results.complete, size})
    results.write(folder)


def _quality(plan: Plan, results: Results, folder: Path, say: Callable[[str], None]) -> None:
    questions = [question for _, question in corpus.questions()]
    # The three doors give the same; memories of ours are also shown with what is known beside their texts.
    asked = [(name, name, False) for name in plan.systems if not SYSTEMS[name].ours]
    asked = [*([("sdk", "sdk", True), ("sdk, texts alone", "sdk", False)] if "sdk" in plan.systems else []), *asked]
    for title, name, fields in asked:
        if why := plan.environment.missing.get(name):
            results.quality[title] = {"failed": why}
            continue
        say(f"the corpus: {title}")
        plan.work.mkdir(parents=True, exist_ok=True)
        talk = Talk(plan.environment, name, plan.kept, plan.work / "corpus.log")
        try:
            given = talk.ask("quality", seconds=600, folder=str(plan.work / title.replace(", ", "-")), fields=fields)
            results.quality[title] = dict(measures.quality(given["answers"], questions, results.split))
        except Failed as failed:
            results.quality[title] = {"failed": str(failed)}
        finally:
            talk.end()
        results.write(folder)


def _syncs(plan: Plan, results: Results, folder: Path, say: Callable[[str], None]) -> None:
    for name in plan.systems:
        if name not in plan.environment.missing:
            say(f"what the disk is made to do: {SYSTEMS[name].title}")
            results.syncs[name] = syncs_per_remember(plan.environment, name, plan.material, plan.work)
    results.write(folder)


def _publish(folder: Path) -> int:
    results = Results.read(folder)
    if results is None:
        print(f"there are no results in {folder}; `make bench-peers` measures", file=sys.stderr)
        return 1
    for file in publishing.publish(results):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
