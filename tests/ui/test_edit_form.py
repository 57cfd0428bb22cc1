"""What a reviewer types: only what differs from what was asked for is a change."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.ui import edit_form
from commonplace.wire.errors import ValidationError

REMEMBER: dict[str, Any] = {
    "operation": "remember",
    "request": {
        "agent_id": "a", "type": "semantic", "content": "Bob\nmoved", "confidence": 1.0,
        "metadata": {"tags": ["x", "y"], "room": 3, "kind": "lesson"},
    },
}  # fmt: skip


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    for review in (
        REMEMBER,
        {"operation": "update", "request": {"content": "x", "metadata": {"tags": ["kept"]}}},
        {"operation": "forget", "request": {"ids": ["1", "2"]}},
        {"operation": "forget", "request": {"filter": {"type": "semantic"}}, "diff": {"removed": [{"id": "1"}]}},
        {"operation": "merge", "request": {"duplicates": ["1"], "strategy": "merge_content"}},
        {"operation": "statement", "request": {"subject": "a", "predicate": "is", "object": "b"}},
        {"operation": "attestation", "request": {}},
    ):
        assert edit_form.changes(review, edit_form.given(review)) == {}


def test_what_was_typed_becomes_values() -> None:
    now = {**edit_form.given(REMEMBER), "content": "Bob stayed", "tags": "x, , z", "confidence": "0.5"}
    assert edit_form.changes(REMEMBER, now) == {"content": "Bob stayed", "tags": ["x", "z"], "confidence": 0.5}
    now = {**edit_form.given(REMEMBER), "metadata": '{"room": 4}', "type": "episodic", "title": "Home"}
    assert edit_form.changes(REMEMBER, now) == {"metadata": {"room": 4}, "type": "episodic", "title": "Home"}
    forget = {"operation": "forget", "request": {"ids": ["1", "2"]}}
    now = {**edit_form.given(forget), "ids": "1\n", "hard_delete": "yes"}
    assert edit_form.changes(forget, now) == {"ids": ["1"], "hard_delete": True}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("confidence", "high", "confidence must be a number"),
        ("metadata", "{", "metadata must be JSON"),
        ("metadata", "[1]", "metadata must be a JSON object"),
        ("metadata", "[" * 100_000, "metadata must be JSON"),
        ("type", "wrong", "type must be one of"),
    ],
)
def test_what_cannot_be_is_said(name: str, text: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        edit_form.changes(REMEMBER, {**edit_form.given(REMEMBER), name: text})
