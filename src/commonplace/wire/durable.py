"""The one way to have bytes on the disk itself: after a power cut they are there."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: macOS alone: there fsync gives data to the drive, which may keep it in its cache for long.
FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None) if sys.platform == "darwin" else None


def sync_file(handle: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    if FULL_SYNC is not None:
        with contextlib.suppress(OSError):  # a file system that cannot, such as one of a network: fsync is what is left
            fcntl.fcntl(handle, FULL_SYNC)
            return
    os.fsync(handle)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: a renamed file is there only once its folder is, too."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            sync_file(handle)
        finally:
            os.close(handle)
