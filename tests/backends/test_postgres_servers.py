"""Four servers on one database, each a process of its own: whichever is asked, no update is lost and none is counted
twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest
from postgres_databases import empty_database
from server_process import ServerProcess, run_server

from bench.http_load import Client, ready
from bench.postgres.server_processes import serving
from commonplace import SyncMemory

pytestmark = [pytest.mark.process, pytest.mark.slow]

T = TypeVar("T")
SERVERS, CLIENTS, EACH = 4, 8, 6
AGENT = "counted"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    with empty_database() as url, ExitStack() as stack:
        folders = [tmp_path_factory.mktemp(f"server-{n}") for n in range(SERVERS)]
        yield [stack.enter_context(run_server(folder, COMMONPLACE_STORE=url)) for folder in folders]


def remember(server: ServerProcess, content: str) -> str:
    kept = server.post("/v0/remember", {"agent_id": AGENT, "type": "semantic", "content": content})
    assert kept.status == 200, kept.body
    id: str = kept.json["id"]
    return id


def look_up(server: ServerProcess, id: str, of: str = "") -> Any:
    found = server.get(f"/v0/memories/{id}{of}?agent_id={AGENT}")
    assert found.status == 200, found.body
    return found.json


def change(server: ServerProcess, id: str, **fields: Any) -> int:
    """The status of the answer. Where others change it all the time one may be told to try again: then it is tried."""
    while True:
        answer = server.call("PATCH", f"/v0/memories/{id}", {"agent_id": AGENT, **fields})
        if answer.status != 503:
            return answer.status
        assert "kept changing while this was being done; try again" in answer.json["error"]["message"]


def all_at_once(servers: list[ServerProcess], work: Callable[[ServerProcess, int], T]) -> list[T]:
    """What every client's work comes to; each client is of one server, and of each server there are several."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(lambda n: work(servers[n % SERVERS], n), range(CLIENTS)))


def check_ledger(servers: list[ServerProcess]) -> None:
    for server in servers:
        verified = server.get("/v0/audit/verify").json
        assert verified["ok"], verified


def test_every_update_that_is_acknowledged_is_a_version_of_its_own(servers: list[ServerProcess]) -> None:
    id = remember(servers[0], "nobody yet")

    def tell(server: ServerProcess, client: int) -> list[str]:
        said = [f"client {client}, {n}" for n in range(EACH)]
        assert [change(server, id, content=content) for content in said] == [200] * EACH
        return said

    said = [content for each in all_at_once(servers, tell) for content in each]
    for server in servers:
        versions = look_up(server, id, "/history")["versions"]
        assert [version["version"] for version in versions] == list(range(1, len(said) + 2))
        assert sorted(version["content"] for version in versions[1:]) == sorted(said)
    check_ledger(servers)


def test_what_is_counted_by_reading_and_writing_back_is_counted_once(servers: list[ServerProcess]) -> None:
    """With the version that was read: whoever comes second is refused, and reads again."""
    id = remember(servers[0], "0")

    def count(server: ServerProcess, client: int) -> None:
        done = 0
        while done < EACH:
            seen = look_up(server, id)
            status = change(server, id, content=str(int(seen["content"]) + 1), expected_version=seen["version"])
            assert status in (200, 409)
            done += status == 200

    all_at_once(servers, count)
    for server in servers:
        assert look_up(server, id)["content"] == str(CLIENTS * EACH)
        contents = [version["content"] for version in look_up(server, id, "/history")["versions"]]
        assert contents == [str(n) for n in range(CLIENTS * EACH + 1)]
    check_ledger(servers)


def test_a_memory_that_one_acknowledged_is_there_for_every_other_at_once(servers: list[ServerProcess]) -> None:
    def write(server: ServerProcess, client: int) -> list[str]:
        ids = []
        for n in range(EACH):
            ids.append(remember(server, f"note {n} of client {client}"))
            other = servers[(client + 1 + n) % SERVERS]
            assert look_up(other, ids[-1])["content"] == f"note {n} of client {client}"
        return ids

    ids = {id for each in all_at_once(servers, write) for id in each}
    assert len(ids) == CLIENTS * EACH
    for server in servers:
        listed = server.get(f"/v0/memories?agent_id={AGENT}&limit=1000").json["memories"]
        assert ids <= {memory["id"] for memory in listed}
    check_ledger(servers)


def test_the_servers_of_the_benchmark_keep_what_they_are_given_in_the_database() -> None:
    """A folder that is named means its own store: servers of before measured files there, and said nothing of it."""
    content = "Alice measures the servers"
    with empty_database() as url, serving(url, 1, os.getpid()) as started:
        asyncio.run(_kept(started.ports[0], content))
        with SyncMemory(AGENT, stores=[url]) as memory:
            assert [held["content"] for held in memory.list()["memories"]] == [content]


async def _kept(port: int, content: str) -> None:
    await ready(port)
    line = await Client.open(port)
    status, said = await line.ask("POST", "/v0/remember", {"agent_id": AGENT, "type": "semantic", "content": content})
    line.close()
    assert status == 200, said
