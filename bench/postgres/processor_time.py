"""Seconds of processor time, from /proc: what a request costs, however busy the machine is, and how busy it is."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Of all cores together, whoever had them, since the machine was started."""
    user, nice, system, _idle, _iowait, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:8])
    return (user + nice + system + sum(rest)) / _TICKS


def seconds_of(process: int) -> float:
    return sum(_times(process)[:2])


def seconds_of_tree(process: int) -> float:
    """With its children: those that are there, and those that were."""
    return sum(_times(process)) + sum(map(seconds_of, _children(process)))


def _times(process: int) -> list[float]:
    """Its own in user and system mode, and those of its children that have ended; nothing once it is gone."""
    try:
        # The name, in brackets, may hold anything.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [0.0] * 4
    return [int(field) / _TICKS for field in fields[11:15]]


def _children(process: int) -> list[int]:
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]
