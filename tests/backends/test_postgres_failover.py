"""A Patroni cluster loses its leader three times while servers of ours write to it and read from it.

Nobody waits for a time here: what is asserted is what was acknowledged, in which order, and that it is there.
`python -m pytest -m cluster tests/backends/test_postgres_failover.py -s` also says how long each outage was.
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from patroni_cluster import PatroniCluster, until
from server_process import ServerProcess, run_server

pytestmark = [pytest.mark.cluster, pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900)]

DATABASE = "memories"
WRITERS, READERS = 3, 2
FAILOVERS = 3
#: What is said of a read while no standby has all that was seen; without its reason where it is not known yet who asks,
#: as that is looked up in the store, too.
READS_WAIT = ("is known to have all that was seen here", "the store could not be read")


@pytest.fixture(scope="module")
def cluster() -> Iterator[PatroniCluster]:
    started = PatroniCluster().start()
    try:
        with psycopg.connect(started.url(target_session_attrs="read-write"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {DATABASE}")
        yield started
    finally:
        started.remove()


@dataclass
class Load:
    """Clients that write as fast as they are answered, and read, each on a connection of its own."""

    server: ServerProcess
    acknowledged: dict[str, str] = field(default_factory=dict)  # id → text
    sent: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    reads: int = 0  # answered, by the first reader
    unread: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        clients = [(self._write, n) for n in range(WRITERS)] + [(self._read, n) for n in range(READERS)]
        self._threads = [threading.Thread(target=what, args=(n,), daemon=True) for what, n in clients]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        for n in itertools.count():
            if self._over.is_set():
                return
            text = f"writer {writer} counted to {n}"
            self.sent.add(text)
            status, answer = self._post("/v0/remember", counted(f"agent-{writer}", text))
            if status == 200:
                self.acknowledged[answer["id"]] = text
            else:
                self.refused.append(f"{status}: {answer}")
                self._over.wait(0.1)  # as a client does that is told to try again

    def _read(self, reader: int) -> None:
        while not self._over.is_set():
            asked = {"agent_id": f"agent-{reader}", "query": "what was counted to?", "k": 3}
            status, answer = self._post("/v0/recall", asked)
            if status != 200:
                self.unread.append(f"{status}: {answer}")
            elif reader == 0:
                self.reads += 1
            self._over.wait(0.02)  # or a minute without a leader has more recalls than may wait for the ledger

    def _post(self, path: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def wait_for_writes(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= wanted, f"{more} more writes; refused last: {self.refused[-1:]}")


def counted(agent: str, text: str) -> dict[str, str]:
    return {"agent_id": agent, "type": "episodic", "content": text}


def commit_as_anyone(cluster: PatroniCluster, load: Load) -> int:
    """A plain client's write, repeated until the cluster takes it: how many reads were answered while it did not."""
    before = during = load.reads

    def is_taken() -> bool:
        nonlocal during
        try:
            with psycopg.connect(cluster.url(target_session_attrs="read-write", connect_timeout="5")) as db:
                db.execute("CREATE TABLE IF NOT EXISTS probe(n integer)")
                db.execute("INSERT INTO probe VALUES(1)")
            return True
        except psycopg.Error:
            during = load.reads
            return False

    until(is_taken, "a commit of a plain client")
    return during - before


def test_a_leader_killed_under_load_costs_no_acknowledged_write(cluster: PatroniCluster, tmp_path: Path) -> None:
    url = cluster.url(DATABASE, reads="any")
    with run_server(tmp_path, COMMONPLACE_STORE=url) as server:
        load = Load(server)
        load.start()
        answered: list[int] = []  # reads without a leader, of each failover
        for n in range(FAILOVERS):
            load.wait_for_writes(50)
            lost = cluster.wait_for_leader()
            began = time.monotonic()
            lost.kill()
            answered.append(commit_as_anyone(cluster, load))
            seconds = time.monotonic() - began
            # As soon as a plain client's write is taken ours are: by the same process, with no one's help.
            text = f"after failover {n}"
            load.sent.add(text)
            answer = server.post("/v0/remember", counted("agent-x", text))
            assert answer.status == 200, answer.body
            load.acknowledged[answer.json["id"]] = text
            assert server.get(f"/v0/memories/{answer.json['id']}?agent_id=agent-x").json["content"] == text
            print(
                f"failover {n + 1}: no writes for {seconds:.1f} s, "
                f"{answered[-1]} reads of one client answered meanwhile; "
                f"{len(load.acknowledged)} writes acknowledged so far, {len(load.refused)} refused"
            )
            cluster.restart(lost)
            cluster.wait_until_whole()
        load.wait_for_writes(50)
        load.stop()
        # What a leader that died had shown may never have reached a standby: then reads wait for the next leader. After
        # one failover of three at least a standby has it all, and answers more than the read that was under way.
        assert max(answered) > 1
        assert [each for each in load.unread if not any(sentence in each for sentence in READS_WAIT)] == []
        assert server.process.poll() is None
    check_everything_is_there(url, load, tmp_path)


def check_everything_is_there(url: str, load: Load, folder: Path) -> None:
    """Asked of a new process, so that nothing is known but what the cluster kept."""
    kept: list[tuple[str, str]] = []
    with run_server(folder / "another", COMMONPLACE_STORE=url) as server:
        for agent in [*(f"agent-{n}" for n in range(WRITERS)), "agent-x"]:
            page: dict[str, Any] = {"next_cursor": ""}
            while (cursor := page.get("next_cursor")) is not None:
                page = server.get(f"/v0/memories?{urlencode({'agent_id': agent, 'limit': 1000} | _at(cursor))}").json
                kept += [(memory["id"], memory["content"]) for memory in page["memories"]]
        assert server.get("/v0/audit/verify").json["ok"]
    assert load.acknowledged.items() <= dict(kept).items()
    # Of those that nobody could be told about some were kept: each as it was sent, and once.
    assert sorted(text for _, text in kept) == sorted({text for _, text in kept})
    assert {text for _, text in kept} <= load.sent


def _at(cursor: str) -> dict[str, str]:
    return {"cursor": cursor} if cursor else {}
