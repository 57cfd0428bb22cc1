"""`python -m bench.postgres [--memories 100000]`: prints the figures, writes JSON and, with --docs, docs/scaling.md.

The same entries go into both stores, one agent with all of them or a hundred agents, and the same questions are asked;
then 1, 2 and 4 servers answer on one database, and again with a part of a core for each. Twenty minutes for 100,000
memories on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "backends"))

from postgres_server import PostgresServer

from bench.peers.publishing import between
from bench.postgres import server_processes, side_by_side
from bench.postgres.corpus import Corpus
from bench.postgres.processor_share import NoControlGroups
from bench.postgres.report import tables

PAGE = Path("docs/scaling.md")
_DURABLE = (
    "synchronous_commit=on", "shared_buffers=1GB", "max_wal_size=8GB", "max_connections=200",
    "maintenance_work_mem=1GB", "listen_addresses=127.0.0.1", "unix_socket_directories=", "logging_collector=off",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load on the servers")
    parser.add_argument("--results", type=Path, default=Path("bench/results/postgres.json"))
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {PAGE}")
    given = parser.parse_args()
    found = measure(given.memories, given.seconds)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(tables(found))
    if given.docs:
        PAGE.write_text(between(PAGE.read_text("utf-8"), tables(found)), "utf-8")


def measure(memories: int, seconds: float, counts: Sequence[int] = (1, 2, 4)) -> dict[str, Any]:
    load = os.getloadavg()[0]
    found: dict[str, Any] = {
        "command": f"python -m bench.postgres --memories {memories} --seconds {seconds:g}",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}) that had a load of {load:.1f} before",
        "memories": memories,
        "stores": {},
        "servers": {},
    }
    corpus = Corpus(memories)
    server = PostgresServer(_DURABLE, folder=tempfile.gettempdir()).start()
    try:
        postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
        for agents in (1, 100):
            url = server.url(server.create_database())
            found["stores"][str(agents)] = side_by_side.compare(corpus, agents, url, postmaster)
        for count in counts:
            found["servers"][str(count)] = server_processes.measure(url, count, seconds, postmaster)
        try:
            found["limited"] = {
                str(count): server_processes.measure_limited(url, count, seconds, postmaster) for count in counts
            }
        except NoControlGroups as reason:
            found["not_limited"] = str(reason)
    finally:
        server.remove()
    return found


if __name__ == "__main__":
    main()
