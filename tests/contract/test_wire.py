"""Another Commonplace as a replica: a real server on another port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from free_ports import free_port
from server_process import ServerProcess, run_server

from commonplace.plugins import open_replica
from commonplace.stores.base import Store
from commonplace.testing import FakeClock, ReplicaContract
from commonplace.wire.record import system_clock

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("other")) as server:
        yield server


def test_a_server_is_not_its_own_replica(tmp_path: Path) -> None:
    """Each copy would be a memory of its own, to be copied again."""
    port = free_port()
    own = f"memorywire+http://127.0.0.1:{port}?name=myself&timeout=30"
    stores = ("--store", f"sqlite://{tmp_path}/m.db", "--store", own)
    with run_server(tmp_path, "--port", str(port), *stores) as server:
        asked = {"agent_id": "a", "type": "semantic", "content": "Alice drinks tea"}
        kept = server.post("/v0/remember", asked).json
        assert kept["stores"] == ["sqlite"]
        assert "under the same id" in kept["errors"][0]["error"]
        assert len(server.get("/v0/memories?agent_id=a").json["memories"]) == 1
        found = server.post("/v0/recall", {"agent_id": "a", "query": "what does Alice drink?"}).json
        assert [hit["content"] for hit in found["results"]] == ["Alice drinks tea"]
        assert "errors" not in found
        assert "under the same id" in server.get("/v0/stores").json["stores"][1]["last_error"]


def test_two_servers_that_copy_each_other_have_one_copy_each(tmp_path: Path) -> None:
    ports = free_port(), free_port()

    def stores(mine: int) -> tuple[str, ...]:
        other = f"memorywire+http://127.0.0.1:{ports[1 - mine]}?name=other&timeout=30"
        own = f"sqlite://{tmp_path}/{mine}.db"
        return ("--port", str(ports[mine]), "--store", own, "--store", other)

    folders = [tmp_path / "0", tmp_path / "1"]
    with run_server(folders[0], *stores(0)) as one, run_server(folders[1], *stores(1)) as two:
        asked = {"agent_id": "a", "type": "semantic", "content": "Alice drinks tea"}
        kept = one.post("/v0/remember", asked).json
        assert (kept["stores"], kept.get("errors")) == (["sqlite", "other"], None)
        for server in (one, two):
            held = server.get("/v0/memories?agent_id=a").json["memories"]
            assert [memory["content"] for memory in held] == ["Alice drinks tea"]
            found = server.post("/v0/recall", {"agent_id": "a", "query": "what does Alice drink?"}).json
            assert (len(found["results"]), found.get("errors")) == (1, None)
        erased = one.post("/v0/forget", {"agent_id": "a", "ids": [kept["id"]], "hard_delete": True}).json
        assert erased["forgotten_ids"] == [kept["id"]]
        for server in (one, two):
            assert server.get("/v0/memories?agent_id=a").json["memories"] == []


class TestWire(ReplicaContract):
    durable = True
    writers = 8
    url = ""

    @pytest.fixture(autouse=True)
    def address(self, other_server: ServerProcess) -> None:
        self.url = other_server.url

    def open_store(self, tmp_path: Path, clock: FakeClock) -> Store:
        clock.now = max(clock.now, system_clock())  # the server has a clock of its own
        return open_replica(f"memorywire+{self.url}", clock)
