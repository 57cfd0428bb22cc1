"""What engine tests are told with: a subject over each kind of store, and the way to await one thing after another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_kinds import STORE_KINDS, open_store

from commonplace.testing.subject import FakeClock, Subject, open_subject


@pytest.fixture
def subject(over: tuple[Subject, Any]) -> Subject:
    return over[0]


@pytest.fixture
def run(over: tuple[Subject, Any]) -> Any:
    return over[1]


@pytest.fixture(params=STORE_KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Subject, Any]]:
    """As `over`: another store, empty, whose clock is a day ahead, for what is moved."""
    clock = FakeClock()
    clock.advance(86_400_000)
    (tmp_path / "target").mkdir()
    with open_subject(open_store(request.param, tmp_path / "target", clock), clock) as pair:
        yield pair
