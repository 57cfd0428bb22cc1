"""What an update makes of a memory."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.memory.change import changed, check_update
from commonplace.engine.types import Update
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory

BEFORE = Memory(
    "id", "local", "agent", "semantic", "Bob lives in Rome", metadata={"tags": ["x"], "n": 1}, tags=["x"], title="Bob",
    privacy={"retain": 5, "share_with": ["carol"]}, expires_at=9,
)  # fmt: skip


@pytest.mark.parametrize(
    ("update", "after"),
    [
        ({"content": "Bob moved"}, {"content": "Bob moved"}),
        ({"confidence": 0.0}, {"confidence": 0.0}),
        ({"expires_at": 7}, {"expires_at": 7}),
        ({"tags": ["y"]}, {"tags": ["y"], "metadata": {"tags": ["y"], "n": 1}}),
        ({"tags": []}, {"tags": [], "metadata": {"tags": [], "n": 1}}),
        ({"metadata": {}}, {"metadata": {}, "tags": [], "title": None}),
        ({"metadata": {"title": "T", "n": 2}}, {"metadata": {"title": "T", "n": 2}, "tags": [], "title": "T"}),
        ({"metadata": {"m": 2}, "tags": ["y"]}, {"metadata": {"m": 2}, "tags": ["y"], "title": None}),
        ({"privacy_intent": {"share_with": ["*"]}}, {"privacy": {"retain": 5, "share_with": ["*"]}}),
        ({"privacy_intent": {"share_with": []}}, {"privacy": {"retain": 5}}),
    ],
)  # fmt: skip
def test_what_is_given_changes_and_the_rest_stays(update: dict[str, Any], after: dict[str, Any]) -> None:
    now = changed(BEFORE, Update("agent", "id", **update))
    differs = {n for n in Memory.__dataclass_fields__ if getattr(now, n) != getattr(BEFORE, n)}
    assert {name: getattr(now, name) for name in after} == after
    assert differs <= set(after)


@pytest.mark.parametrize("dialect", ["memorywire", "amp"])
def test_a_kind_that_only_reading_added_is_not_kept(dialect: str) -> None:
    lesson = Memory("id", "local", "agent", "semantic", "x", kind="lesson", provenance={"dialect": dialect})
    now = changed(lesson, Update("agent", "id", metadata={"kind": "lesson", "n": 1}))
    assert now.metadata == ({"n": 1} if dialect == "amp" else {"kind": "lesson", "n": 1})


@pytest.mark.parametrize("fields", [{}, {"expected_version": 1}, {"approval_required": True, "reasoning": "why"}])
def test_an_update_must_change_something(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="nothing to change"):
        check_update(Update("agent", "id", **fields))
