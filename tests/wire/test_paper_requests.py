"""The five requests as the memorywire paper has them: what each needs, takes, assumes and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.dialects.memorywire.dispatch import prepare
from commonplace.wire.errors import ValidationError
from commonplace.wire.models import ExpireRequest, ForgetRequest, MergeRequest, Message, RecallRequest, RememberRequest
from commonplace.wire.validate import parse

MODELS: dict[str, type[Message]] = {
    "remember": RememberRequest, "recall": RecallRequest, "forget": ForgetRequest, "merge": MergeRequest,
    "expire": ExpireRequest,
}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "remember": {"agent_id": "agent", "type": "semantic", "content": "tea"},
    "recall": {"agent_id": "agent", "query": "tea"},
    "forget": {"agent_id": "agent", "ids": ["m1"]},
    "merge": {"agent_id": "agent", "canonical": "m1", "duplicates": ["m2"]},
    "expire": {"agent_id": "agent", "policy": {"type": "semantic"}},
}
#: Each optional field with what it is when it is left out, and values that it takes.
OPTIONAL: list[tuple[str, str, Any, list[Any]]] = [
    ("remember", "user_id", None, ["alice"]),
    ("remember", "metadata", None, [{"any": {"json": [1, None, "é"]}}]),
    ("remember", "confidence", 1.0, [0, 0.5, 1]),
    ("remember", "source", None, ["chat"]),
    ("remember", "expires_at", None, [1_800_000_000_000]),
    ("remember", "approval_required", False, [True, False]),
    ("recall", "user_id", None, ["alice"]),
    ("recall", "k", 5, [1, 1000]),
    ("recall", "types", None, [["semantic", "episodic", "procedural", "emotional"], ["episodic"]]),
    ("recall", "hops", 0, [0, 1, 2, 3]),
    ("recall", "fusion", "rrf", ["rrf", "max", "weighted"]),
    ("recall", "filter", None, [{"team": "core"}]),
    ("recall", "fresher_than_days", None, [0, 30]),
    ("forget", "user_id", None, ["alice"]),
    ("forget", "filter", None, [{"team": "core"}]),
    ("forget", "hard_delete", False, [True, False]),
    ("forget", "reason", None, ["asked for it"]),
    ("merge", "strategy", "keep_canonical", ["keep_canonical", "merge_content", "keep_highest_confidence"]),
    ("expire", "action", "forget", ["forget", "archive", "demote"]),
]
REFUSED: list[tuple[str, str, list[Any]]] = [
    ("remember", "agent_id", ["", "a" * 257, 5]),
    ("remember", "type", ["fact", "", ["semantic"]]),
    ("remember", "content", ["", 5]),
    ("remember", "confidence", [-0.1, 1.1, "high"]),
    ("remember", "expires_at", [-1, 1.5, "tomorrow"]),
    ("remember", "metadata", ["x", [1]]),
    ("recall", "query", ["", 5]),
    ("recall", "k", [0, 1001, 2.5]),
    ("recall", "types", [["fact"], "semantic"]),
    ("recall", "hops", [-1, 4]),
    ("recall", "fusion", ["sum", ""]),
    ("recall", "fresher_than_days", [-1]),
    ("merge", "duplicates", [[], "m2"]),
    ("merge", "strategy", ["newest"]),
    ("expire", "action", ["erase"]),
    ("expire", "policy", [{"older_than_days": 0}, {"confidence_below": 1.1}, {"no_recall_in_days": 0}, {"age": 3}, {}]),
]


@pytest.mark.parametrize("operation", MODELS)
def test_a_request_with_what_it_needs_is_taken_and_without_any_of_it_refused(operation: str) -> None:
    needed = NEEDED[operation]
    message = parse(MODELS[operation], needed)
    assert {name: getattr(message, name) for name in needed if name != "policy"}.items() <= needed.items()
    for name in needed:
        with pytest.raises(ValidationError, match=name):
            parse(MODELS[operation], {other: value for other, value in needed.items() if other != name})


@pytest.mark.parametrize(("operation", "field", "default", "values"), OPTIONAL)
def test_an_optional_field_has_its_default_and_takes_its_values(
    operation: str, field: str, default: Any, values: list[Any]
) -> None:
    assert getattr(parse(MODELS[operation], NEEDED[operation]), field) == default
    for value in values:
        assert getattr(parse(MODELS[operation], {**NEEDED[operation], field: value}), field) == value


@pytest.mark.parametrize(("operation", "field", "values"), REFUSED)
def test_a_value_that_a_field_cannot_have_is_refused_by_its_name(operation: str, field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValidationError, match=field):
            parse(MODELS[operation], {**NEEDED[operation], field: value})


@pytest.mark.parametrize("scope", [{}, {"ids": []}, {"filter": {}}, {"ids": [], "filter": {}}, {"user_id": "alice"}])
def test_a_forget_must_say_what(scope: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="needs a non-empty ids or filter"):
        parse(ForgetRequest, {"agent_id": "agent", **scope})


@pytest.mark.parametrize("operation", ["recall", "expire"])
def test_recall_and_expire_know_no_approval(operation: str) -> None:
    with pytest.raises(ValidationError, match="approval_required"):
        parse(MODELS[operation], {**NEEDED[operation], "approval_required": True})


@pytest.mark.parametrize("operation", MODELS)
def test_a_mistake_opens_no_store(operation: str) -> None:
    with pytest.raises(ValidationError, match="unheard_of"):
        prepare(operation, {**NEEDED[operation], "unheard_of": 1})
