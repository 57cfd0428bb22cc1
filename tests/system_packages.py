"""Programs of others that tests use, installed from Debian's packages where they are missing and that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 280  # of the 300 that one test has
_LOCK = Path(tempfile.gettempdir()) / "commonplace-test-packages.lock"
#: There while systemd runs the machine, which starts a server as soon as its package is installed.
_SERVICE_MANAGER = Path("/run/systemd/system")


class NotInstalled(Exception):
    """Says why, and what to do about it."""


def find_program(*names: str) -> Path | None:
    return next((Path(found) for name in names if (found := shutil.which(name))), None)


def require_program(*names: str, packages: Sequence[str] = (), serves: bool = False) -> Path:
    """Where one of these is. `packages` bring it, by default the one of its name; one that `serves` is only installed
    where that does not start it."""
    if (found := find_program(*names)) is not None:
        return found
    wanted = ["apt-get", "install", "-y", "--no-install-recommends", *(packages or names[:1])]
    advice = f"`{' '.join(wanted)}`"
    if shutil.which("apt-get") is None:
        raise NotInstalled(
            f"there is no {names[0]} here, and no apt-get to install it with: install it, run this again"
        )
    if serves and _SERVICE_MANAGER.exists():
        raise NotInstalled(f"there is no {names[0]} here, and installing it would start it: see to that with {advice}")
    said = ""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run on all cores, and dpkg serves one at a time
        for command in (wanted, ["apt-get", "update", "-qq"], wanted):
            if (found := find_program(*names)) is not None:  # another one has seen to it meanwhile, or the first try
                return found
            said = _run(command)
    if (found := find_program(*names)) is None:
        raise NotInstalled(f"{names[0]} could not be installed with {advice}: {said}")
    return found


def _run(command: Sequence[str]) -> str:
    """The last line of what it said."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=quiet)
    except subprocess.TimeoutExpired:
        return f"it took longer than {_SECONDS} s"
    return "".join((done.stderr or done.stdout).strip().splitlines()[-1:])
