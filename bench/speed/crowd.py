"""Several processes that write to one file: how long each waits for its turn, and how often it is overtaken."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from pathlib import Path

from bench.speed.measure import percentile
from bench.speed.plan import Plan
from bench.speed.report import Report

PROCESSES, WRITES = 8, 50


def run(plan: Plan) -> Report:
    processes, writes = plan.pick(2, PROCESSES), plan.pick(3, WRITES)
    report = Report(f"{processes} processes, each remembering {writes} times, one file")
    with tempfile.TemporaryDirectory(dir=plan.cache) as folder:
        script = str(Path(__file__).with_name("crowd_writer.py"))
        crowd = [
            subprocess.Popen(
                [sys.executable, script, folder, str(n), str(writes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(processes)
        ]
        for process in crowd:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "a writer could not open the store"
        start = time.monotonic()
        for process in crowd:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        lines = [line.split() for process in crowd for line in process.communicate(timeout=300)[0].splitlines()]
        wall = time.monotonic() - start
    turns = [(int(line[1]), int(line[2])) for line in lines if line[0] == "turn"]
    calls = [float(line[1]) for line in lines if line[0] == "kept"]
    waits = [(served - asked) / 1e6 for asked, served in turns]
    report.add("remembered", len(calls), "writes", at_least=processes * writes)
    report.add("throughput of all together", len(calls) / wall, "/s")
    for name, values in (("waiting for the turn", waits), ("a whole remember", calls)):
        report.add(f"{name}: half wait less than", percentile(values, 0.5), "ms")
        report.add(f"{name}: 95 of 100 wait less than", percentile(values, 0.95), "ms")
        report.add(f"{name}: the longest", max(values), "ms")
    report.add("most often overtaken", _overtaken(turns), "times", at_most=2 * processes)
    return report


def _overtaken(turns: list[tuple[int, int]]) -> int:
    """The most that asked later than someone and were served before them."""
    by_asking = sorted(turns)
    asked = [turn[0] for turn in by_asking]
    worst = 0
    for mine, served in by_asking:
        between = by_asking[bisect_left(asked, mine + 1) : bisect_left(asked, served)]
        worst = max(worst, sum(other < served for _, other in between))
    return worst
