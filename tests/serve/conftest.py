"""Servers that live as long as the tests: one open, one that asks for tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from server_process import ServerProcess, run_server, token


@pytest.fixture(scope="session")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("open")) as server:
        yield server


@pytest.fixture
def no_rules_left(open_server: ServerProcess) -> Iterator[None]:
    """Rules are among what is sent, and the server is everyone's."""
    yield
    assert open_server.call("PUT", "/v0/policies", {"rules": []}).status == 200


@dataclass
class TokenServer:
    """A server for two tenants, and the tokens that were made for it, by name."""

    server: ServerProcess
    tokens: dict[str, str] = field(default_factory=dict)


TENANTS = ("acme", "globex")
AGENTS = ("ada", "bea", "cid")


def make_tokens(data: Path) -> dict[str, str]:
    made = {"operator": token(data, "--role", "admin", "--name", "operator")}
    for tenant in TENANTS:
        made[tenant] = token(data, "--role", "admin", "--tenant", tenant, "--name", f"{tenant}-admin")
        for agent in AGENTS:
            made[f"{tenant}/{agent}"] = token(
                data, "--role", "reviewer", "--tenant", tenant, "--agents", agent, "--name", f"{tenant}-{agent}"
            )
    made["acme/reader"] = token(data, "--role", "reader", "--tenant", "acme", "--name", "acme-reader")
    made["acme/writer"] = token(data, "--role", "writer", "--tenant", "acme", "--name", "acme-writer")
    return made


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    data = tmp_path_factory.mktemp("guarded")
    made = make_tokens(data)
    with run_server(data) as server:
        yield TokenServer(server, made)
