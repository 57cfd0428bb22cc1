"""A part of one core for each of several processes, as containers with a limit have it: by the kernel's control groups.

On a machine with few cores one server and the database already use all of them, so that more servers can add nothing.
Where each may use only a part of a core, what they add can be seen there, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 10_000  # short, so that who has used up its part waits milliseconds and not tenths of a second


class NoControlGroups(Exception):
    """This user, or this kernel, cannot limit processes so."""


@contextmanager
def limited(processes: Sequence[int], share: float) -> Iterator[Callable[[], float]]:
    """Each of these may use so much of a core. Gives in how many of their periods they had used it up, from 0 to 1."""
    made: list[Path] = []
    try:
        try:
            for process in processes:
                made.append(_make(f"commonplace-bench-{process}", share))
                (made[-1] / "cgroup.procs").write_text(str(process))
        except OSError as error:
            raise NoControlGroups(f"{error.strerror or error} at {error.filename or _GROUPS}") from error
        yield lambda: sum(map(_held_back, made)) / len(made)
    finally:
        for group, process in zip(made, processes, strict=False):
            _remove(group, process)


def _make(name: str, share: float) -> Path:
    quota = round(share * _PERIOD_US)
    if (_GROUPS / "cgroup.controllers").exists():  # version 2
        group = _GROUPS / name
        group.mkdir()
        (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
    else:
        group = _GROUPS / "cpu" / name
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    return group


def _held_back(group: Path) -> float:
    said = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(said["nr_throttled"]) / max(int(said["nr_periods"]), 1)


def _remove(group: Path, process: int) -> None:
    """A group goes when nobody is in it: whoever still is goes back to where all are."""
    if Path(f"/proc/{process}").exists():
        (group.parent / "cgroup.procs").write_text(str(process))
    os.rmdir(group)
