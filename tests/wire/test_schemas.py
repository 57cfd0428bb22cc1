"""The schema files: valid, complete, resolvable offline, and portable to clients that know no unions."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.validate import check, portable_schema, schema, schema_names

MEMORYWIRE = [name for name in schema_names() if name.startswith("memorywire/")]
BASE = "https://memorywire.dev/schemas/v0/"


def objects(node: Any) -> list[dict[str, Any]]:
    """Every object in a schema, at any depth."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    return [node, *(found for value in node.values() for found in objects(value))]


def test_all_operations_types_and_the_error_are_there() -> None:
    operations = {"remember", "recall", "forget", "merge", "expire"}
    expected = operations | {f"{name}.response" for name in operations}
    expected |= {"update", "governance.review", "governance.decision", "decide", "remember.batch"}
    expected |= {"decide.many", "decide.many.response", "review.edit", "policies", "policies.dry-run"}
    answered = ("policies", "policies.dry-run", "policies.learned", "policies.revoke")
    expected |= {f"{name}.response" for name in answered}
    expected |= {"get", "list", "history", "audit", "reviews", "review_pending", "graph_query"}
    expected |= {"procedure.show", "procedure.fire", "procedure.reset", "procedure.draw"}
    expected |= {"lifecycle.response", "lifecycle.run", "lifecycle.run.response", "undo", "undo.response"}
    expected |= {"lifecycle.runs", "lifecycle.runs.response", "lifecycle.show.response"}
    expected |= {"procedure.response", "procedure.draw.response"}
    expected |= {"audit.proof", "audit.consistency", "audit.head.response", "audit.key.response"}
    expected |= {"audit.proof.response", "audit.consistency.response"}
    expected |= {"recover", "recover.response", "export", "import", "import.response"}
    expected |= {"kg.history", "kg.path", "kg.neighbors", "stores.response"}
    answers = ["list", "history", "preview", "preview.merge", "remember.batch", "reviews", "decide", "audit"]
    expected |= {f"{name}.response" for name in [*answers, "audit.verify", "health", "status"]}
    expected |= {"kg.assert", "kg.response", "kg.path.response", "kg.retract", "kg.erase", "kg.erase.response"}
    expected |= {"kg.assert.response", "kg.neighbors.response", "update.response"}
    types = {"semantic", "episodic", "procedural", "emotional", "fsm", "memory", "review", "triple"}
    assert set(MEMORYWIRE) == (
        {f"memorywire/operations/{name}" for name in expected}
        | {f"memorywire/types/{name}" for name in types}
        | {"memorywire/error", "memorywire/rpc", "memorywire/rpc.response"}
    )


@pytest.mark.parametrize("name", MEMORYWIRE)
def test_each_is_valid_2020_12_and_says_where_it_lives(name: str) -> None:
    document = schema(name)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"] == BASE + name.removeprefix("memorywire/")
    jsonschema_rs.meta.validate(document)


@pytest.mark.parametrize("name", MEMORYWIRE)
def test_each_field_is_described_and_each_object_is_closed(name: str) -> None:
    document = schema(name)
    for node in objects(document):
        if "properties" in node and node.get("type") == "object":
            assert node["additionalProperties"] is False
            for field, rules in node["properties"].items():
                assert rules["description"].endswith("."), field


@pytest.mark.parametrize("name", MEMORYWIRE)
def test_a_registry_of_our_files_resolves_every_reference_offline(name: str) -> None:
    registry = jsonschema_rs.Registry([(schema(other)["$id"], schema(other)) for other in MEMORYWIRE])
    jsonschema_rs.Draft202012Validator(schema(name), registry=registry)


@pytest.mark.parametrize("name", MEMORYWIRE)
def test_the_portable_form_is_an_object_without_unions(name: str) -> None:
    portable = portable_schema(name)
    jsonschema_rs.meta.validate(portable)
    assert portable["type"] == "object"
    assert "$ref" not in json.dumps(portable)
    forbidden = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$defs", "$schema", "$id"}
    for node in objects(portable):
        assert not forbidden & set(node)
        assert not isinstance(node.get("type"), list)


def test_the_portable_form_keeps_fields_named_like_keywords() -> None:
    assert set(portable_schema("memorywire/operations/remember")["properties"]) == set(
        schema("memorywire/operations/remember")["properties"]
    )


def test_the_callers_copy_is_their_own() -> None:
    schema("memorywire/error")["type"] = "array"
    portable_schema("memorywire/error")["type"] = "array"
    assert schema("memorywire/error")["type"] == portable_schema("memorywire/error")["type"] == "object"


@pytest.mark.parametrize("name", ["nothing", "../models", "memorywire/../error", "/etc/passwd", ""])
def test_a_name_that_is_not_a_schema_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        schema(name)


def test_a_review_follows_the_schema_of_its_operation() -> None:
    review = {"operation": "forget", "agent_id": "alice", "request": {"agent_id": "alice", "ids": ["m1"]}}
    check("memorywire/operations/governance.review", review)
    with pytest.raises(ValidationError, match=r"unknown field 'ids' in request"):
        check("memorywire/operations/governance.review", {**review, "operation": "merge"})
