"""What many tests share: a clock that obeys, an embedder without a model, and engines over both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import FakeClock, Subject, open_subject


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture(params=["memory", "sqlite"])
def over(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> Iterator[tuple[Subject, Callable[[Any], Any]]]:
    """(subject, run) over each kind of store."""
    store = InMemory(clock) if request.param == "memory" else SqliteStore(tmp_path / "commonplace.db", clock)
    with open_subject(store, clock) as pair:
        yield pair
