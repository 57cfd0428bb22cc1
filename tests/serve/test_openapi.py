"""The description of the API is one that generators of other people's can use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from server_process import PROTOCOLS

from commonplace.serve import openapi
from commonplace.wire.validate import schema_names

DOCUMENT = openapi.document(PROTOCOLS)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_operation_has_a_name_of_its_own_that_is_a_name() -> None:
    names = Counter(operation["operationId"] for operation in OPERATIONS.values())
    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name in names if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)] == []


def test_every_schema_is_called_as_a_type_is() -> None:
    assert [name for name in SCHEMAS if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)] == []
    keys = Counter(openapi._key(name) for name in schema_names())
    assert [key for key, count in keys.items() if count > 1] == [], "two schemas would be one"
    assert {"Memory", "RememberRequest", "RememberResponse", "RecallResponse", "AmpRecord", "ErrorResponse"} <= set(
        SCHEMAS
    )


def test_every_reference_leads_to_a_schema_with_a_name() -> None:
    found = set(references(DOCUMENT))
    assert len(found) > 50
    refusals = {f"#/components/responses/{name}" for name in DOCUMENT["components"]["responses"]}
    assert [ref for ref in found - refusals if ref.removeprefix("#/components/schemas/") not in SCHEMAS] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_what_it_takes_answers_and_refuses(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"].endswith(".")
    assert operation["tags"]
    good = [status for status in operation["responses"] if status < "300"]
    assert good
    for status, given in operation["responses"].items():
        refusal = given.get("$ref", "").removeprefix("#/components/responses/")
        response = DOCUMENT["components"]["responses"][refusal] if refusal else given
        assert response["description"]
        assert bool(refusal) == (status >= "400"), status
        if status not in ("204",):
            content = response.get("content", {})
            assert status in good or "$ref" in content["application/json"]["schema"], status
    for parameter in operation.get("parameters", ()):
        assert parameter["schema"], parameter["name"]
        assert parameter["description"].endswith("."), parameter["name"]
        assert "in question" not in parameter["description"], "which says nothing that its name does not"
    asked = re.findall(r"\{(\w+)\}", name)
    assert asked == [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]


def test_what_a_program_needs_is_typed() -> None:
    """Answers without a schema are those that have none to have."""
    bare = [name for name, operation in OPERATIONS.items() for status, answer in operation["responses"].items()
            if status < "300" and status != "204" and "content" not in answer]  # fmt: skip
    assert bare == []


def fields(rules: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every field that a schema declares, at whichever depth; a condition on one is no declaration."""
    if not isinstance(rules, dict):
        return
    for name, field in rules.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        yield from fields(rules.get(inner), f"{path}[]")


def test_every_schema_and_every_field_of_one_says_what_it_is() -> None:
    assert [name for name, rules in SCHEMAS.items() if not rules.get("description", "").endswith(".")] == []
    every = dict(found for name, rules in SCHEMAS.items() for found in fields(rules, name))
    assert len(every) > 300
    assert [name for name, rules in every.items() if "$ref" not in rules and not rules.get("description")] == []


def test_what_a_parameter_is_by_default_is_said() -> None:
    limit = next(each for each in OPERATIONS["GET /v0/memories"]["parameters"] if each["name"] == "limit")
    assert (limit["schema"]["default"], limit["description"]) == (100, "How many memories at most.")
    filter = next(each for each in OPERATIONS["GET /v0/memories"]["parameters"] if each["name"] == "filter")
    assert filter["description"].endswith("Written as a JSON object.")
