"""What engine tests are told with: a subject over each kind of store, and the way to await one thing after another."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.testing.subject import Subject


@pytest.fixture
def subject(over: tuple[Subject, Any]) -> Subject:
    return over[0]


@pytest.fixture
def run(over: tuple[Subject, Any]) -> Any:
    return over[1]
