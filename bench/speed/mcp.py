"""A client that spawns `commonplace mcp`: how long until it is answered, what that takes, and what a call costs."""

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

HERE = Path(__file__).parent
SPAWNS = 10
MAX_MS, MAX_MB, MAX_SHARE, MAX_FIRST_MS = 300.0, 60.0, 0.25, 1500.0
_MB = 1024.0
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Client:
    """As little as a client can be, so that what is measured is the server."""

    def __init__(self, *command: str, **settings: str) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.spawned = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, *command], env={**environment, **settings}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, method: str, params: dict[str, Any], id: int = 1) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def greet(self) -> float:
        """Seconds from the spawn to the answer."""
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert "result" in self.ask("initialize", params)
        return time.monotonic() - self.spawned

    def ready(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def call(self, tool: str, **arguments: Any) -> Any:
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer
        return answer["result"]["structuredContent"]

    @property
    def resident_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / _MB

    @property
    def cpu(self) -> float:
        """Seconds of all its threads."""
        own = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(own[11]) + int(own[12])) / _TICKS

    def leave(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def run(plan: Plan) -> Report:
    report = Report("An MCP client that spawns the server")
    if not Path("/proc/self/status").exists():
        report.note("left out: memory and CPU of another process are read from /proc, which is not here")
        return report
    with tempfile.TemporaryDirectory() as folder:
        _spawning(report, plan, folder)
        _calling(report, plan, folder)
    _recalling(report, plan)
    return report


def _spawning(report: Report, plan: Plan, folder: str) -> None:
    count = plan.pick(2, SPAWNS)
    for name in ("commonplace", "trusty", "all"):
        seconds, greeted, opened = [], [], []
        for turn in tracked(range(count + 1), f"spawns of {name}", count + 1):
            client = Client("-m", "commonplace.cli", "mcp", "--tools", name, "--data", folder)
            took = client.greet()
            if turn:  # the first warms the file cache
                seconds.append(took)
                greeted.append(client.resident_mb)
                client.ready()
                client.call("palace_list") if name == "trusty" else client.call("list")
                opened.append(client.resident_mb)
            client.leave()
        ours = name == "commonplace"
        report.add(f"{name}: from spawn to the answer to initialize", median(seconds) * 1e3, "ms",
                   at_most=MAX_MS)  # fmt: skip
        if ours:
            report.add("slowest of them", max(seconds) * 1e3, "ms")
            report.add("resident at that moment", median(greeted), "MB")
        report.add(f"{name}: resident with the store open, before the first recall", median(opened), "MB",
                   at_most=MAX_MB)  # fmt: skip


def _calling(report: Report, plan: Plan, folder: str) -> None:
    """The same trivial tool on both loops, in turns, asked by the same client."""
    calls, rounds = plan.pick(20, 500), plan.pick(1, 6)
    # -P, because this folder has an `mcp` of its own
    ours, theirs = Client("-P", str(HERE / "echo_ours.py"), folder), Client("-P", str(HERE / "echo_sdk.py"))
    spawned = {"ours": ours.greet(), "sdk": theirs.greet()}
    for client in (ours, theirs):
        client.ready()
        for _ in range(calls):
            client.call("echo", text="warm")
    cpu: dict[str, list[float]] = {"ours": [], "sdk": []}
    wall: dict[str, list[float]] = {"ours": [], "sdk": []}
    for _ in tracked(range(rounds), "rounds of calls", rounds):
        for name, client in (("ours", ours), ("sdk", theirs)):
            before, began = client.cpu, time.monotonic()
            for _ in range(calls):
                client.call("echo", text="Alice is allergic to peanuts")
            cpu[name].append((client.cpu - before) / calls)
            wall[name].append((time.monotonic() - began) / calls)
    memory = {"ours": ours.resident_mb, "sdk": theirs.resident_mb}
    ours.leave()
    theirs.leave()
    share = sum(cpu["ours"]) / max(sum(cpu["sdk"]), 1e-9)
    report.add("tools/call: CPU of the server, ours", sum(cpu["ours"]) / rounds * 1e3, "ms")
    report.add("tools/call: CPU of the server, the SDK's", sum(cpu["sdk"]) / rounds * 1e3, "ms")
    report.add("tools/call: ours as a share of the SDK's", share, "×", at_most=None if plan.tiny else MAX_SHARE)
    report.add("tools/call: from asking to the answer, ours", median(wall["ours"]) * 1e3, "ms")
    report.add("tools/call: from asking to the answer, the SDK's", median(wall["sdk"]) * 1e3, "ms")
    report.add("a trivial server: spawn to initialize, ours", spawned["ours"] * 1e3, "ms")
    report.add("a trivial server: spawn to initialize, the SDK's", spawned["sdk"] * 1e3, "ms")
    report.add("a trivial server: resident, ours", memory["ours"], "MB")
    report.add("a trivial server: resident, the SDK's", memory["sdk"], "MB")


def _recalling(report: Report, plan: Plan) -> None:
    size = 100_000 if 100_000 in plan.sizes else plan.sizes[-1]
    store = plan.store(size)
    seconds, memory, cpu = [], [], []
    for turn in tracked(range(plan.pick(2, 6)), "first recalls", plan.pick(2, 6)):
        client = Client("-m", "commonplace.cli", "mcp", "--data", str(store.folder), "--agent", stores.BIG)
        client.greet()
        client.ready()
        found = client.call("recall", query=COMMON[0])
        if turn:
            seconds.append(time.monotonic() - client.spawned)
            memory.append(client.resident_mb)
            cpu.append(client.cpu)
        client.leave()
        assert "results" in found
    name = f"{size:,} memories"
    with_model = plan.model is not None
    target = MAX_FIRST_MS if with_model and size == 100_000 else None
    report.add(f"{name}: from spawn to the answer of the first recall", median(seconds) * 1e3, "ms", at_most=target)
    report.add(f"{name}: fastest of {len(seconds)}", min(seconds) * 1e3, "ms")
    report.add(f"{name}: CPU until the answer", median(cpu) * 1e3, "ms")
    report.add(f"{name}: resident after it", median(memory), "MB")
    if not with_model:
        report.note("without the embedding model: vectors are made by hashing")
