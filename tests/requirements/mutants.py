"""Breaks the product on purpose, once for every requirement that must hold, and reports what its tests let pass.

    python tests/requirements/mutants.py [--manifest amp] [--only ID …] [--jobs N] [--trust] [--json FILE]

A row's `mutant` names a file, a text that stands in it once, and what to put in its place. Each is applied to a copy of
the package, and the row's own tests are run against that copy: where all of them still pass, they show nothing. Before
that they are run without it: where one fails even so, it shows nothing either. Nor does a mutant that keeps the tests
from being collected. Rows may share a mutant with `mutant = "OTHER-ID"`. Nothing of the working tree is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
_TIMEOUT = 600  # seconds for the tests of one row: a mutant may also never end, which is noticed, too
_FAILED = 1  # pytest's exit code when tests ran and some failed; above that, they did not run as they should
_SLOWEST = 5  # rows that the summary names


@dataclass(frozen=True)
class Mutant:
    id: str
    manifest: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]

    def problem(self, root: Path = ROOT) -> str | None:
        """Why it cannot be applied."""
        path = root / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        if (count := path.read_text("utf-8").count(self.find)) != 1:
            return f"its text stands {count} times in {self.file}; it must stand there once"
        return "it changes nothing" if self.find == self.replace else None


@dataclass(frozen=True)
class Verdict:
    id: str
    manifest: str
    outcome: str  # killed, survived, or invalid
    detail: str  # the test that killed it, or what is wrong
    seconds: float


def rows(manifests: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for manifest in manifests:
        for row in tomllib.loads(manifest.read_text("utf-8"))["requirement"]:
            yield {**row, "manifest": manifest.stem}


def needs_mutant(row: dict[str, Any]) -> bool:
    return row["level"] == "MUST" and row["status"] == "done"


def mutants(manifests: Iterable[Path]) -> list[Mutant]:
    found = list(rows(manifests))
    by_id = {row["id"]: row for row in found}
    made = []
    for row in found:
        given = row.get("mutant")
        if isinstance(given, str):
            given = by_id[given]["mutant"]
        if given is not None:
            change = (given["file"], given["find"], given["replace"])
            made.append(Mutant(row["id"], row["manifest"], *change, tuple(row["tests"])))
    return made


def try_mutant(mutant: Mutant, copy: Path) -> Verdict:
    """Applied to the copy, tested, and taken back."""
    started = time.monotonic()

    def verdict(outcome: str, detail: str) -> Verdict:
        return Verdict(mutant.id, mutant.manifest, outcome, detail, round(time.monotonic() - started, 1))

    if problem := mutant.problem(copy):
        return verdict("invalid", problem)
    path = copy / mutant.file
    original = path.read_bytes()
    try:
        path.write_text(path.read_text("utf-8").replace(mutant.find, mutant.replace), "utf-8")
        code, output = _pytest(copy, ["-x", *mutant.tests], _TIMEOUT)
    except subprocess.TimeoutExpired:
        return verdict("killed", "its tests did not end")
    finally:
        path.write_bytes(original)
    if code == 0:
        return verdict("survived", "its tests passed")
    failed = _failures(output)
    if code != _FAILED or not failed:
        return verdict("invalid", f"its tests did not run: {output.strip()[-500:]}")
    return verdict("killed", failed[0])


def fail_unchanged(wanted: Iterable[Mutant], copy: Path, jobs: int) -> set[str]:
    """Of the tests that these rows name, those that fail in a copy in which nothing is changed."""
    tests = sorted({test for mutant in wanted for test in mutant.tests})
    code, output = _pytest(copy, ["-n", str(jobs), *tests]) if tests else (0, "")
    failed = set(_failures(output))
    if code > _FAILED or (code and not failed):
        raise SystemExit(f"the tests cannot be run: {output.strip()[-2000:]}")
    return failed


def _pytest(copy: Path, arguments: list[str], timeout: float | None = None) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-rfE", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _failures(output: str) -> list[str]:
    """The tests that pytest's summary names, without their parameters."""
    marks = ("FAILED ", "ERROR ")
    named = [line.split(" ", 1)[1] for line in output.splitlines() if line.startswith(marks)]
    return [name.split(" - ")[0].split("[")[0] for name in named if "::" in name]


def copy_tree(target: Path) -> None:
    """What the tests need; the package and the tests lie there as they lie here."""
    ignored = shutil.ignore_patterns("__pycache__", ".venv", ".git", ".mypy_cache", ".ruff_cache", "*.egg-info")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, target / path.name)
    bench = target / "bench"
    if (ROOT / "bench").is_dir():
        bench.symlink_to(ROOT / "bench")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", action="append", help="only this one, such as amp; may be repeated")
    parser.add_argument("--only", nargs="*", help="only these requirements")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trust", action="store_true", help="do not run the tests without any mutant first")
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    given = parser.parse_args()
    manifests = sorted(HERE.glob("*.toml"))
    chosen = {path.stem for path in manifests if not given.manifest or path.stem in given.manifest}
    made = [m for m in mutants(manifests) if m.manifest in chosen]
    wanted = [m for m in made if not given.only or m.id in given.only]
    have = {m.id for m in made}
    due = [row["id"] for row in rows(manifests) if row["manifest"] in chosen and needs_mutant(row)]
    missing = [id for id in due if id not in have]
    verdicts = run_all(wanted, given.jobs, trust=given.trust)
    bad = [verdict for verdict in verdicts if verdict.outcome != "killed"]
    for verdict in sorted(bad, key=lambda v: v.id):
        print(f"{verdict.outcome:9} {verdict.id}: {verdict.detail}")
    if missing and not given.only:
        print(f"without a mutant: {', '.join(missing)}")
    print(summary(verdicts, [] if given.only else missing))
    if given.json:
        given.json.write_text(json.dumps([asdict(v) for v in verdicts], indent=2) + "\n", "utf-8")
    return 1 if bad or (missing and not given.only) else 0


def summary(verdicts: Sequence[Verdict], missing: Sequence[str]) -> str:
    """Killed of how many, for each manifest and for all; and what took longest."""
    lines = []
    for manifest in sorted({v.manifest for v in verdicts}):
        mine = [v for v in verdicts if v.manifest == manifest]
        killed = sum(v.outcome == "killed" for v in mine)
        lines.append(f"{manifest:12} {killed:4} of {len(mine)} killed {sum(v.seconds for v in mine):7.0f} s")
    slowest = sorted(verdicts, key=lambda v: -v.seconds)[:_SLOWEST]
    if len(verdicts) > _SLOWEST:
        lines.append("slowest: " + ", ".join(f"{v.id} {v.seconds:.0f} s" for v in slowest))
    killed = sum(v.outcome == "killed" for v in verdicts)
    lines.append(f"{killed} of {len(verdicts)} mutants killed; {len(missing)} requirements have none")
    return "\n".join(lines)


def run_all(wanted: list[Mutant], jobs: int, *, trust: bool = False) -> list[Verdict]:
    """`trust`: that their tests pass where nothing is changed."""
    copies: SimpleQueue[Path] = SimpleQueue()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            copy_tree(Path(folder) / str(number))
            copies.put(Path(folder) / str(number))
        _progress("running the tests without any mutant …")
        broken = set() if trust else fail_unchanged(wanted, Path(folder) / "0", jobs)

        def work(mutant: Mutant) -> Verdict:
            if failing := sorted(broken.intersection(mutant.tests)):
                return Verdict(mutant.id, mutant.manifest, "invalid", f"{failing[0]} fails without it", 0.0)
            copy = copies.get()
            try:
                return try_mutant(mutant, copy)
            finally:
                copies.put(copy)

        for done in as_completed([pool.submit(work, mutant) for mutant in wanted]):
            verdicts.append(verdict := done.result())
            alive = sum(v.outcome != "killed" for v in verdicts)
            _progress(f"{len(verdicts)} of {len(wanted)}, {alive} not killed; {verdict.id} {verdict.seconds:.0f} s")
    _progress("")
    return verdicts


def _progress(line: str) -> None:
    """One line that is written over; nothing where it would fill a log."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
