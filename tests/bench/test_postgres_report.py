"""The benchmark of PostgreSQL runs, and its page says what was measured and what was only worked out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.peers.publishing import between  # noqa: E402
from bench.postgres.__main__ import measure  # noqa: E402
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
}


def test_the_page_has_every_figure_and_marks_what_is_extrapolated() -> None:
    measured, mark, extrapolated = tables(FOUND).partition("*Extrapolated*")
    assert mark
    assert measured.startswith("*Measured* with `python -m bench.postgres` on 2 cores:")
    assert "| one agent: question, median and 95 % | 2 ms, 9.5 ms | 2 ms, 9.5 ms |" in measured
    assert "| server processes on one database (100 agents) | 1 | 2 | 4 |" in measured
    assert "| `recall` a second, all together | 100 | 180 | 220.5 |" in measured
    assert "| `recall`: how busy the machine's cores were meanwhile | 97% | 97% | 97% |" in measured
    assert "kept of acknowledged | 200 of 200 | 200 of 200 | 200 of 200 |" in measured
    assert "| disk | 7.0 TB |" in extrapolated
    assert "| writing it, one after the other | 46 days |" in extrapolated
    assert "16 cores, agents of 1,000 | 1,600 |" in extrapolated


def test_the_page_has_room_for_them() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    assert "| disk | 7.0 TB |" in between(page, tables(FOUND))


def test_processor_time_is_that_of_the_process_and_its_children() -> None:
    sum(n * n for n in range(300_000))
    assert 0 < seconds_of(os.getpid()) <= seconds_of_tree(os.getpid()) <= busy_seconds()
    assert seconds_of(2**22 + 1) == 0.0  # nobody's


@pytest.mark.slow
@pytest.mark.process
def test_it_runs() -> None:
    found = measure(300, 0.3, counts=(1,))
    assert found["servers"]["1"]["updates"]["lost"] == 0
    assert found["stores"]["1"]["postgresql"]["recall@10"] == 1.0
    assert "| disk |" in tables(found)
