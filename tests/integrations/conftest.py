"""What the tests of every adapter share: memories here and on a server, rules that stage and refuse, docs' programs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from adapter_cases import RULES
from server_process import ServerProcess, run_server

from commonplace import Memory, RemoteMemory, SyncMemory, SyncRemoteMemory
from commonplace.blocking import BlockingMemory
from commonplace.wire.record import Principal

ROOT = Path(__file__).parents[2]
AGENT = "assistant"
#: Every test of an adapter is one of both: over a memory in this process, and over one that a server keeps.
PLACES = ["here", pytest.param("server", marks=pytest.mark.process)]


class TenantServer:
    """A server whose every token opens a tenant of its own, in which there is nothing yet."""

    def __init__(self, server: ServerProcess, operator: SyncMemory) -> None:
        self.url = server.url
        self._server, self._operator = server, operator
        self._numbers = itertools.count(1)

    def new_token(self) -> str:
        made = make_token(self._operator, f"tenant-{next(self._numbers)}")
        while self._server.get("/v0/status", token=made).status == 401:
            pass  # it looks for tokens that it does not know a few times a second
        return made


def make_token(operator: SyncMemory, tenant: str) -> str:
    async def make() -> str:
        engine = await operator.async_memory.engine()
        return (await engine.tokens.create(Principal(), tenant=tenant, role="admin", name="alice"))[1]

    return operator.run(make())


@pytest.fixture(scope="session")
def tenant_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantServer]:
    data = tmp_path_factory.mktemp("server")
    with SyncMemory(data=data, embedder="hashing") as operator:
        make_token(operator, "local")  # first: while there is none at all, a server is open, and its one tenant is this
        with run_server(data) as server:
            yield TenantServer(server, operator)


@pytest.fixture(params=PLACES)
def open_memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], BlockingMemory]]:
    """Opens another empty memory each time."""
    opened: list[BlockingMemory] = []

    def open_one() -> BlockingMemory:
        if request.param == "here":
            opened.append(SyncMemory(agent_id=AGENT, data=tmp_path / f"data-{len(opened)}", embedder="hashing"))
        else:
            server = request.getfixturevalue("tenant_server")
            opened.append(SyncRemoteMemory(server.url, server.new_token(), agent_id=AGENT))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def memory(open_memory: Callable[[], BlockingMemory]) -> BlockingMemory:
    return open_memory()


@pytest.fixture(params=PLACES)
def async_memory(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Memory | RemoteMemory]:
    """To be entered in the loop that it is used in."""
    if request.param == "here":
        return Memory(agent_id=AGENT, data=tmp_path / "async", embedder="hashing")
    server = request.getfixturevalue("tenant_server")
    return RemoteMemory(server.url, server.new_token(), agent_id=AGENT)


@pytest.fixture
def governed(memory: BlockingMemory) -> BlockingMemory:
    memory.set_policies(RULES)
    return memory


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingMemory]:
    """A memory that keeps nothing of `NOT_KEPT`."""
    monkeypatch.setenv("COMMONPLACE_REDACTION_MODE", "reject")
    with SyncMemory(agent_id=AGENT, data=tmp_path / "strict", embedder="hashing") as memory:
        memory.set_policies(RULES)
        yield memory


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs the programs of a page in order, over a fresh folder, and gives the names they leave behind."""

    def run(page: str) -> dict[str, Any]:
        programs = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
        assert programs, page
        monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "documented"))
        monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
        names: dict[str, Any] = {}
        exec("\n".join(programs), names)
        return names

    return run
