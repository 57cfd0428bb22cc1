"""Another Commonplace as a replica: a real server on another port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
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
