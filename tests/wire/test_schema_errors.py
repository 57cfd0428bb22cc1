"""Every refusal is one sentence that names the field and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.wire.errors import ValidationError
from commonplace.wire.models import MergeRequest, Message, RecallRequest, RememberRequest
from commonplace.wire.validate import check, parse

REMEMBER = {"agent_id": "alice", "type": "semantic", "content": "Bob likes tea"}
RECALL = {"agent_id": "alice", "query": "tea"}
MERGE = {"agent_id": "alice", "canonical": "m1", "duplicates": ["m2"]}
PROCEDURE = {"id": "m1", "agent_id": "alice", "type": "procedural", "created_at": 0}
RECALLED = {"fusion_used": "rrf", "stores_queried": [], "latency_ms": 0}
TYPES = "one of semantic, episodic, procedural, emotional"
STEP = {"trigger": "go", "source": "a", "dest": "b"}

#: The schema under memorywire/, a document, what is said of it, and the field that is about.
CASES: list[tuple[str, Any, str, str]] = [
    ("operations/remember", {}, "agent_id is required", "agent_id"),
    ("operations/remember", {"agent_id": "alice", "type": "semantic"}, "content is required", "content"),
    ("operations/remember", [], "remember must be an object, not an empty list", "remember"),
    ("operations/remember", "tea", "remember must be an object, not 'tea'", "remember"),
    ("operations/remember", None, "remember must be an object, not null", "remember"),
    ("operations/forget", [1], "forget must be an object, not a list", "forget"),
    ("operations/remember.batch", {"items": [{}] * 1001}, "items must be a list of 1 to 1,000, not of 1,001", "items"),
    ("operations/remember.batch", {"items": []}, "items must be a list of 1 to 1,000, not an empty list", "items"),
    ("operations/remember", {**REMEMBER, "type": "fact"}, f"type must be {TYPES}, not 'fact'", "type"),
    (
        "operations/remember",
        {"agent_id": "alice", "type": "semantic", "contnet": "tea"},
        "unknown field 'contnet' in remember; did you mean 'content'?",
        "contnet",
    ),
    ("operations/remember", {**REMEMBER, "content": ""}, "content must be non-empty text, not ''", "content"),
    ("operations/remember", {**REMEMBER, "content": None}, "content must be non-empty text, not null", "content"),
    (
        "operations/remember",
        {**REMEMBER, "user_id": None},
        "user_id must be text of 1 to 256 characters, not null; leave it out instead",
        "user_id",
    ),
    (
        "operations/remember",
        {**REMEMBER, "agent_id": "a" * 300},
        "agent_id must be text of 1 to 256 characters, not 300 characters",
        "agent_id",
    ),
    (
        "operations/remember",
        {**REMEMBER, "confidence": 1.5},
        "confidence must be a number from 0 to 1, not 1.5",
        "confidence",
    ),
    (
        "operations/remember",
        {**REMEMBER, "confidence": True},
        "confidence must be a number from 0 to 1, not true",
        "confidence",
    ),
    ("operations/remember", {**REMEMBER, "metadata": ["a"]}, "metadata must be an object, not a list", "metadata"),
    (
        "operations/remember",
        {**REMEMBER, "metadata": {"a": float("nan")}},
        "metadata holds a number that is not finite",
        "metadata",
    ),
    (
        "operations/remember",
        {**REMEMBER, "content": "\ud800"},
        "content holds half of a surrogate pair, which is not text",
        "content",
    ),
    (
        "operations/remember",
        {**REMEMBER, "expires_at": "2030-01-01"},
        "expires_at must be a whole number of at least 0, not '2030-01-01'",
        "expires_at",
    ),
    (
        "operations/remember",
        {**REMEMBER, "expires_at": 2**60},
        "expires_at must be a whole number from 0 to 9007199254740991, not 1152921504606846976",
        "expires_at",
    ),
    (
        "operations/remember",
        {**REMEMBER, "approval_required": "yes"},
        "approval_required must be true or false, not 'yes'",
        "approval_required",
    ),
    (
        "operations/remember",
        {**REMEMBER, "embedding": []},
        "embedding must be a non-empty list, not an empty list",
        "embedding",
    ),
    (
        "operations/remember",
        {**REMEMBER, "embedding": [0.5, "x"]},
        "embedding[1] must be a number, not 'x'",
        "embedding[1]",
    ),
    (
        "operations/remember",
        {**REMEMBER, "privacy_intent": {"retain": 0}},
        "privacy_intent.retain must be a whole number of at least 1, not 0",
        "privacy_intent.retain",
    ),
    (
        "operations/remember",
        {**REMEMBER, "privacy_intent": {"keep": 9}},
        "unknown field 'keep' in privacy_intent; allowed are retain, share_with, user_consent_id",
        "privacy_intent.keep",
    ),
    ("operations/recall", {**RECALL, "k": 0}, "k must be a whole number from 1 to 1000, not 0", "k"),
    ("operations/recall", {**RECALL, "k": "5"}, "k must be a whole number from 1 to 1000, not '5'", "k"),
    ("operations/recall", {**RECALL, "k": True}, "k must be a whole number from 1 to 1000, not true", "k"),
    ("operations/recall", {**RECALL, "k": 5.5}, "k must be a whole number from 1 to 1000, not 5.5", "k"),
    ("operations/recall", {**RECALL, "types": ["fact"]}, f"types[0] must be {TYPES}, not 'fact'", "types[0]"),
    ("operations/recall", {**RECALL, "types": "semantic"}, "types must be a list, not 'semantic'", "types"),
    ("operations/recall", {**RECALL, "fusion": "RRF"}, "fusion must be one of rrf, max, weighted, not 'RRF'", "fusion"),
    ("operations/recall", {**RECALL, "query": "q" * 9, "filter": 1}, "filter must be an object, not 1", "filter"),
    (
        "operations/recall",
        {**RECALL, "judge": "z" * 99},
        f"judge must be one of auto, off, always, not {'z' * 37!r}…",
        "judge",
    ),
    ("operations/forget", {"agent_id": "alice"}, "forget needs a non-empty ids or filter", "ids"),
    (
        "operations/forget",
        {"agent_id": "alice", "ids": [], "filter": {}},
        "forget needs a non-empty ids or filter",
        "ids",
    ),
    ("operations/forget", {"agent_id": "alice", "ids": [""]}, "ids[0] must be non-empty text, not ''", "ids[0]"),
    (
        "operations/merge",
        {**MERGE, "duplicates": []},
        "duplicates must be a non-empty list, not an empty list",
        "duplicates",
    ),
    ("operations/expire", {"agent_id": "alice"}, "policy is required", "policy"),
    (
        "operations/expire",
        {"agent_id": "alice", "policy": {}},
        "policy needs at least one of older_than_days, type, confidence_below, no_recall_in_days",
        "policy",
    ),
    (
        "operations/expire",
        {"agent_id": "alice", "policy": {"older_then_days": 3}},
        "unknown field 'older_then_days' in policy; did you mean 'older_than_days'?",
        "policy.older_then_days",
    ),
    ("operations/update", {"agent_id": "alice", "tags": "tea"}, "tags must be a list, not 'tea'", "tags"),
    (
        "operations/governance.review",
        {"operation": "recall", "agent_id": "alice", "request": RECALL},
        "operation must be one of remember, update, forget, merge, statement, attestation, not 'recall'",
        "operation",
    ),
    (
        "operations/governance.review",
        {"operation": "remember", "agent_id": "alice", "request": {**REMEMBER, "type": "fact"}},
        f"request.type must be {TYPES}, not 'fact'",
        "request.type",
    ),
    (
        "operations/governance.review",
        {"operation": "forget", "agent_id": "alice", "request": {"agent_id": "alice"}},
        "request needs a non-empty ids or filter",
        "request.ids",
    ),
    (
        "operations/governance.decision",
        {"approved": 1, "reviewer": "bob", "reviewed_at": 0},
        "approved must be true or false, not 1",
        "approved",
    ),
    ("types/procedural", {**PROCEDURE, "content": 5}, "content must be non-empty text or an object, not 5", "content"),
    ("types/procedural", {**PROCEDURE, "content": {"name": "tea"}}, "content.states is required", "content.states"),
    (
        "types/procedural",
        {**PROCEDURE, "content": {"name": "t", "states": ["a", "b"], "transitions": [{**STEP, "before": "os.system"}]}},
        "unknown field 'before' in content.transitions[0]; allowed are trigger, source, dest, conditions, unless",
        "content.transitions[0].before",
    ),
    (
        "types/procedural",
        {**PROCEDURE, "content": {"name": "t", "states": ["a", "b"], "transitions": [{**STEP, "unless": "os.system"}]}},
        "content.transitions[0].unless must be text matching ^[A-Za-z_][A-Za-z0-9_]*$, not 'os.system'",
        "content.transitions[0].unless",
    ),
    (
        "types/procedural",
        {**PROCEDURE, "content": {"name": "tea", "states": ["a", "a"]}},
        "content.states must not repeat an entry",
        "content.states",
    ),
    (
        "types/procedural",
        {**PROCEDURE, "type": "semantic", "content": "x"},
        "type must be 'procedural', not 'semantic'",
        "type",
    ),
    ("error", {"error": {"code": "not_found"}}, "error.message is required", "error.message"),
    (
        "operations/recall.response",
        {
            "results": [{"id": "m1", "type": "semantic", "content": "tea"}],
            "fusion_used": "rrf",
            "stores_queried": [],
            "latency_ms": 0,
        },
        "results[0].score is required",
        "results[0].score",
    ),
]


@pytest.mark.parametrize(("schema", "document", "sentence", "field"), CASES, ids=[case[2] for case in CASES])
def test_sentence(schema: str, document: Any, sentence: str, field: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        check(f"memorywire/{schema}", document)
    assert refusal.value.message == sentence
    assert refusal.value.details == {"field": field}
    assert refusal.value.to_wire() == {
        "error": {"code": "validation_error", "message": sentence, "details": {"field": field}}
    }


MODELS = [RememberRequest, RecallRequest, MergeRequest]


@pytest.mark.parametrize("model", MODELS)
def test_a_message_is_refused_in_the_same_sentence(model: type[Message]) -> None:
    cases = [case for case in CASES if f"memorywire/{case[0]}" == model.schema_name]
    assert cases
    for _, document, sentence, field in cases:
        with pytest.raises(ValidationError) as refusal:
            parse(model, document)
        assert (refusal.value.message, refusal.value.details) == (sentence, {"field": field})
