"""The first recall of a fresh process, from the moment it is started to the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.speed import stores
from bench.speed.material import COMMON
from bench.speed.plan import Plan
from bench.speed.report import Report, tracked

ROOT = Path(__file__).resolve().parents[2]
MAX_MS = 300.0


def run(plan: Plan) -> Report:
    report = Report("First recall of a fresh process, no embedding")
    for size in [size for size in plan.sizes if size >= 100_000] or plan.sizes[-1:]:
        store = plan.store(size)
        fresh(plan, store)  # compiled files and the page cache are warm from here on
        runs = [fresh(plan, store) for _ in tracked(range(plan.pick(2, 11)), "fresh processes", plan.pick(2, 11))]
        parts = {
            "interpreter": [r["began"] - r["spawned"] for r in runs],
            "imports": [r["imported"] - r["began"] for r in runs],
            "open": [r["opened"] - r["imported"] for r in runs],
            "first search": [r["answered"] - r["opened"] for r in runs],
        }
        name = f"{size:,} memories"
        total = median(r["answered"] - r["spawned"] for r in runs) * 1e3
        report.add(f"{name}: from start to answer", total, "ms", at_most=MAX_MS if size == 100_000 else None)
        for part, seconds in parts.items():
            report.add(f"{name}: of it, {part}", median(seconds) * 1e3, "ms")
        report.add(f"{name}: CPU until the answer", median(r["cpu"] for r in runs) * 1e3, "ms")
        report.add(f"{name}: fastest of {len(runs)}", min(r["answered"] - r["spawned"] for r in runs) * 1e3, "ms")
    return report


def fresh(plan: Plan, store: stores.Kept, *more: str) -> dict[str, Any]:
    query = COMMON[0]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.NamedTemporaryFile(suffix=".f32") as vector:
        vector.write(plan.material.vectors[0].tobytes())
        vector.flush()
        command = [sys.executable, str(Path(__file__).with_name("first_recall.py")), str(store.folder), stores.BIG]
        if "memory" in more:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
        spawned = time.monotonic()
        done = subprocess.run(
            [*command, query, plan.material.embedder, vector.name, *more],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
    return {"spawned": spawned, **json.loads(done.stdout)}
