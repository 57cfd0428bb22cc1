"""Installs the products that backends are tested on, each set into an environment of its own beside the repository's.

`.venv-backends` has ours with mem0 and Cognee, and runs the tests; `.venv-letta` has the Letta server alone, whose
versions fit nobody else's. uv installs them, which takes a fraction of pip's time; where it cannot, pip is asked, which
knows the indexes of whoever has configured it. A product that cannot be installed is named, and ends the run.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TESTS, LETTA = ROOT / ".venv-backends", ROOT / ".venv-letta"
#: The environment, what it is for, and what is asked for: all that goes into one place at once, so that it fits.
SETS = (
    (TESTS, "the tests, mem0 and Cognee", ("-e", ".[fast,test,mem0,cognee]")),
    (LETTA, "the Letta server", ("-r", str(HERE / "letta-server.lock"))),
)


def installed(environment: Path, wanted: tuple[str, ...]) -> Path:
    """The file that says that this set is there, as it is asked for now."""
    asked = hashlib.sha256(repr(wanted).encode())
    for file in (ROOT / "pyproject.toml", *(Path(each) for each in wanted if each.endswith(".lock"))):
        asked.update(file.read_bytes())
    return environment / f".installed-{asked.hexdigest()[:16]}"


def install(environment: Path, wanted: tuple[str, ...]) -> str | None:
    """Why it could not be installed, if it could not."""
    stamp = installed(environment, wanted)
    if stamp.exists():
        return None
    if not (environment / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    said = []
    for installer in (
        ("uv", "pip", "install", "--quiet", "--python", python),
        ("pip", "--disable-pip-version-check", "--quiet", "--python", python, "install", "--prefer-binary"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *installer, *wanted], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            stamp.touch()
            return None
        said.append(f"{installer[0]}: {(done.stderr.strip().splitlines() or ['it did not say why'])[-1]}")
    return "; ".join(said)


def main() -> int:
    missing = [
        (environment, what, wanted) for environment, what, wanted in SETS if not installed(environment, wanted).exists()
    ]
    for environment, what, _ in missing:
        print(f"Installing {what} into {environment.name} (once, some minutes) …", flush=True)
    with ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(lambda each: install(each[0], each[2]), missing))
    failed = [(what, why) for (_, what, _), why in zip(missing, outcomes, strict=True) if why]
    for what, why in failed:
        print(f"NOT INSTALLED, so that it cannot be tested: {what}: {why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
