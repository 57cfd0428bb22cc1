"""How often a system makes the disk write for one memory, counted from outside by strace, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from bench.peers.environment import ROOT, Environment
from bench.speed.material import Material

FEW, MORE = 5, 25
_CALLS = "fsync,fdatasync,sync_file_range,msync"


def syncs_per_remember(environment: Environment, name: str, material: Material, work: Path) -> float | None:
    """What twenty more memories add, so that opening and closing do not count."""
    if not shutil.which("strace"):
        return None
    few, more = (_counted(environment, name, material, work, count) for count in (FEW, MORE))
    return None if few is None or more is None else (more - few) / (MORE - FEW)


def _counted(environment: Environment, name: str, material: Material, work: Path, count: int) -> int | None:
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        vectors, log, data = Path(folder) / "vectors.npy", Path(folder) / "calls", Path(folder) / "data"
        data.mkdir()
        np.save(vectors, material.vectors[:count])
        command = [environment.interpreter(name), "-m", "bench.peers.first", name, str(data)]
        command += [str(material.dimension), "remember", str(count), str(vectors)]
        watched = ["strace", "-f", "-qq", "-e", f"trace={_CALLS}", "-e", "signal=none", "-o", str(log), *command]
        try:
            done = subprocess.run(watched, cwd=ROOT, env=environment.variables(name), capture_output=True, timeout=180)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode:
            return None
        # A call that another thread interrupts is shown twice: unfinished, then resumed.
        return sum(_is_sync(line) and "resumed" not in line for line in log.read_text(errors="replace").splitlines())


def _is_sync(line: str) -> bool:
    return any(f" {call}(" in line for call in _CALLS.split(","))
