"""Installs the products that backends are tested on, each set into an environment of its own beside the repository's.

`.venv-backends` has ours with mem0 and Cognee, and runs the tests; `.venv-letta` has the Letta server alone, whose
versions fit nobody else's. What cannot be had is said and left out: its tests are skipped and its column says so.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TESTS, LETTA = ROOT / ".venv-backends", ROOT / ".venv-letta"
#: The environment, what it is for, and what pip is told: one set after the other, so that one can fail alone.
SETS = (
    (TESTS, "the tests and mem0", ("-e", ".[fast,test,mem0]")),
    (TESTS, "Cognee", ("-e", ".[cognee]")),
    (LETTA, "the Letta server", ("-r", str(HERE / "letta-server.lock"))),
)


def installed(environment: Path, arguments: tuple[str, ...]) -> Path:
    """The file that says that this set is there, as it is asked for now."""
    asked = hashlib.sha256(repr(arguments).encode())
    for file in (ROOT / "pyproject.toml", *(Path(each) for each in arguments if each.endswith(".lock"))):
        asked.update(file.read_bytes())
    return environment / f".installed-{asked.hexdigest()[:16]}"


def install(environment: Path, arguments: tuple[str, ...]) -> str | None:
    """Why it could not be installed, if it could not."""
    stamp = installed(environment, arguments)
    if stamp.exists():
        return None
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    quiet = ("--disable-pip-version-check", "--quiet", "install", "--prefer-binary")
    done = subprocess.run(
        [str(python), "-m", "pip", *quiet, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["pip did not say why"])[-1]
    stamp.touch()
    return None


def main() -> int:
    failed = {}
    for environment, what, arguments in SETS:
        if not installed(environment, arguments).exists():
            print(f"Installing {what} into {environment.name} (once, some minutes) …", flush=True)
        if why := install(environment, arguments):
            failed[what] = why
            print(f"NOT INSTALLED, and not tested: {what}: {why}", flush=True)
    return 1 if "the tests and mem0" in failed else 0


if __name__ == "__main__":
    sys.exit(main())
