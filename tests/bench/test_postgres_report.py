"""The benchmark of PostgreSQL runs, and its page says what was measured and what was only worked out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.peers.publishing import between  # noqa: E402
from bench.postgres.__main__ import measure  # noqa: E402
from bench.postgres.processor_share import NoControlGroups, limited  # noqa: E402
from bench.postgres.processor_time import busy_seconds, seconds_of, seconds_of_tree  # noqa: E402
from bench.postgres.report import tables  # noqa: E402

STORE = {"p50_ms": 2.0, "p95_ms": 9.5, "processor_ms": 3.0, "recall@10": 1.0, "write_ms": 4.0,
         "write_processor_ms": 8.0, "bytes": 7000}  # fmt: skip
VERB = {"per_second": 100.0, "p50_ms": 8.0, "p95_ms": 20.0, "server_ms": 6.0, "database_ms": 4.0, "busy": 0.97}
SERVERS = {
    count: {
        "recall": {**VERB, "per_second": rate},
        "remember": VERB,
        "updates": {"acknowledged": 200, "kept": 200, "lost": 0},
    }
    for count, rate in (("1", 100.0), ("2", 180.0), ("4", 220.5))
}
FOUND: dict[str, Any] = {
    "command": "python -m bench.postgres",
    "machine": "2 cores",
    "memories": 100_000,
    "stores": {agents: {"embedded": STORE, "postgresql": STORE} for agents in ("1", "100")},
    "servers": SERVERS,
    "limited": {count: {**VERB, "per_second": rate, "held_back": 0.5} for count, rate in (("1", 25.0), ("4", 98.5))},
}


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    """One that does nothing but use a core."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_the_page_has_every_figure_and_marks_what_is_extrapolated() -> None:
    measured, mark, extrapolated = tables(FOUND).partition("*Extrapolated*")
    assert mark
    assert measured.startswith("*Measured* with `python -m bench.postgres` on 2 cores:")
    assert "| one agent: question, median and 95 % | 2 ms, 9.5 ms | 2 ms, 9.5 ms |" in measured
    assert "| server processes on one database (100 agents) | 1 | 2 | 4 |" in measured
    assert "| `recall` a second, all together | 100 | 180 | 220.5 |" in measured
    assert "| `recall`: how busy the machine's cores were meanwhile | 97% | 97% | 97% |" in measured
    assert "kept of acknowledged | 200 of 200 | 200 of 200 | 200 of 200 |" in measured
    assert "| servers that may use 15% of a core each | 1 | 4 |" in measured
    assert "| `recall` a second, all together | 25 | 98.5 |" in measured
    assert "| disk | 7.0 TB |" in extrapolated
    assert "| writing it, one after the other | 46 days |" in extrapolated
    assert "16 cores, agents of 1,000 | 1,600 |" in extrapolated


def test_the_page_has_room_for_them() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    assert "| disk | 7.0 TB |" in between(page, tables(FOUND))


def test_the_page_says_where_servers_could_not_be_limited() -> None:
    without = {name: value for name, value in FOUND.items() if name != "limited"}
    said = tables({**without, "not_limited": "Permission denied at /sys/fs/cgroup"})
    assert "could not be measured there: Permission denied at /sys/fs/cgroup." in said


def test_a_process_has_a_part_of_a_core_and_no_group_is_left(program: subprocess.Popen[bytes]) -> None:
    try:
        with limited([program.pid], 0.2) as held_back:
            before = seconds_of(program.pid)
            while seconds_of(program.pid) - before < 0.1:
                pass
            assert held_back() > 0.3
    except NoControlGroups as reason:
        pytest.skip(f"processes cannot be limited here: {reason}")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/commonplace-bench-{program.pid}"))


def test_processor_time_is_that_of_the_process_and_its_children() -> None:
    sum(n * n for n in range(300_000))
    assert 0 < seconds_of(os.getpid()) <= seconds_of_tree(os.getpid()) <= busy_seconds()
    assert seconds_of(2**22 + 1) == 0.0  # nobody's


@pytest.mark.slow
@pytest.mark.process
def test_it_runs() -> None:
    found = measure(300, 0.001, counts=(1,))  # seconds that may be over before anyone is connected
    assert found["servers"]["1"]["updates"]["lost"] == 0
    assert found["stores"]["1"]["postgresql"]["recall@10"] == 1.0
    assert "limited" in found or found["not_limited"]
    assert "| disk |" in tables(found)
