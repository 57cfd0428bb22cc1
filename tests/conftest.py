"""What many tests share: a clock that obeys, an embedder without a model, and engines over both stores.

Every test that starts a process carries the mark `process`: tests/spawning.py finds out which.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fork_server
import pytest
from hypothesis import settings
from spawning import running_test, starts_process, watch_spawns
from store_kinds import STORE, STORE_KINDS, open_store

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.recall import judging
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import FakeClock, Subject, open_subject

# No deadline: it is a wall clock, and a busy machine would fail tests.
settings.register_profile("commonplace", max_examples=50, deadline=None)
settings.register_profile("quick", max_examples=15, deadline=None)

collected_key = pytest.StashKey[dict[str, bool]]()


# Where tests put their files if it is there: a file system in memory, on which no commit waits for a disk.
IN_MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 << 30

#: Marks of tests that only run where -m names them.
ON_REQUEST = ("sweep", "cluster")


def pytest_configure(config: pytest.Config) -> None:
    watch_spawns()
    fork_server.install()
    if STORE == "postgresql":
        import postgres_primary

        postgres_primary.install()
        config.pluginmanager.register(postgres_primary)
    judging.SECONDS = 3600.0  # how many a judge reads must not depend on how busy the machine is
    settings.load_profile("quick" if STORE or "not slow" in config.option.markexpr else "commonplace")
    if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ENOUGH_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


@pytest.hookimpl(tryfirst=True)  # before -m takes any away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and starts_process(item):
            item.add_marker("process")
    config.stash[collected_key] = found = {}
    for item in items:
        name = item.nodeid.split("[")[0]
        found[name] = found.get(name, False) or not any(map(item.get_closest_marker, ("slow", "process", *ON_REQUEST)))
    for mark in ON_REQUEST:
        if mark not in config.option.markexpr:
            left_out = [item for item in items if item.get_closest_marker(mark)]
            items[:] = [item for item in items if not item.get_closest_marker(mark)]
            config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    running_test(item)
    try:
        return (yield)
    finally:
        running_test(None)


def pytest_sessionfinish() -> None:
    """End what tests of products have started. Not at the exit of the process: a worker of pytest-xdist has none."""
    if (products := sys.modules.get("products")) is not None:
        products.stop_all()


@pytest.fixture(scope="session")
def collected_tests(pytestconfig: pytest.Config) -> dict[str, bool]:
    """path::name of each test that this run found, even if it leaves it out, and whether `make test-fast` runs it."""
    return pytestconfig.stash[collected_key]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which nothing is kept yet: copying it is quicker than making it anew."""
    folder = tmp_path_factory.mktemp("empty")
    asyncio.run(SqliteStore(folder / "commonplace.db", FakeClock()).close())
    return folder


@pytest.fixture(params=STORE_KINDS)
def over(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """(subject, run) over each kind of store."""
    if request.param == "sqlite":
        shutil.copytree(request.getfixturevalue("empty_store"), tmp_path, dirs_exist_ok=True)
    with open_subject(open_store(request.param, tmp_path, clock), clock) as pair:
        yield pair
