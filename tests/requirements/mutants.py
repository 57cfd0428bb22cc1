"""Breaks the product on purpose, once for every requirement that must hold, and reports what its tests let pass.

    python tests/requirements/mutants.py [--manifest amp] [--only ID …] [--jobs N] [--json FILE]

A row's `mutant` names a file, a text that stands in it once, and what to put in its place. Each is applied to a copy of
the package, and the row's own tests are run against that copy: one that still passes shows nothing. Rows may share a
mutant with `mutant = "OTHER-ID"`. Nothing of the working tree is changed.
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
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
_TIMEOUT = 600  # seconds for the tests of one row: a mutant may also never end, which is noticed, too
_NO_TESTS_RAN = (4, 5)  # pytest's exit codes for a wrong name and for an empty selection


@dataclass(frozen=True)
class Mutant:
    id: str
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
    outcome: str  # killed, survived, or invalid
    detail: str
    seconds: float


def rows(manifests: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for manifest in manifests:
        yield from tomllib.loads(manifest.read_text("utf-8"))["requirement"]


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
            made.append(Mutant(row["id"], given["file"], given["find"], given["replace"], tuple(row["tests"])))
    return made


def try_mutant(mutant: Mutant, copy: Path) -> Verdict:
    """Applied to the copy, tested, and taken back."""
    started = time.monotonic()
    if problem := mutant.problem(copy):
        return Verdict(mutant.id, "invalid", problem, 0.0)
    path = copy / mutant.file
    original = path.read_bytes()
    try:
        path.write_text(path.read_text("utf-8").replace(mutant.find, mutant.replace), "utf-8")
        outcome, detail = _run(mutant.tests, copy)
    finally:
        path.write_bytes(original)
    return Verdict(mutant.id, outcome, detail, round(time.monotonic() - started, 1))


def _run(tests: tuple[str, ...], copy: Path) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed", "its tests did not end"
    if done.returncode in _NO_TESTS_RAN:
        return "invalid", (done.stdout + done.stderr).strip()[-500:]
    return ("survived", "its tests passed") if done.returncode == 0 else ("killed", "")


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
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    given = parser.parse_args()
    manifests = [path for path in sorted(HERE.glob("*.toml")) if not given.manifest or path.stem in given.manifest]
    wanted = [m for m in mutants(manifests) if not given.only or m.id in given.only]
    have = {m.id for m in mutants(manifests)}
    missing = [row["id"] for row in rows(manifests) if needs_mutant(row) and row["id"] not in have]
    verdicts = run_all(wanted, given.jobs)
    bad = [verdict for verdict in verdicts if verdict.outcome != "killed"]
    for verdict in sorted(bad, key=lambda v: v.id):
        print(f"{verdict.outcome:9} {verdict.id}: {verdict.detail}")
    if missing and not given.only:
        print(f"without a mutant: {', '.join(missing)}")
    killed = len(verdicts) - len(bad)
    print(f"{killed} of {len(verdicts)} mutants killed; {len(missing)} requirements have none")
    if given.json:
        given.json.write_text(json.dumps([asdict(v) for v in verdicts], indent=2) + "\n", "utf-8")
    return 1 if bad or (missing and not given.only) else 0


def run_all(wanted: list[Mutant], jobs: int) -> list[Verdict]:
    copies: SimpleQueue[Path] = SimpleQueue()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            copy_tree(Path(folder) / str(number))
            copies.put(Path(folder) / str(number))

        def work(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return try_mutant(mutant, copy)
            finally:
                copies.put(copy)

        for done in as_completed([pool.submit(work, mutant) for mutant in wanted]):
            verdicts.append(done.result())
            if sys.stderr.isatty():
                print(f"\r{len(verdicts)} of {len(wanted)} …", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
