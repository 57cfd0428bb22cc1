"""Schemas and models: each schema accepts and refuses what its rules say, and its message has the same fields."""

from __future__ import annotations

import copy
import typing
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from commonplace.wire import models
from commonplace.wire.errors import ValidationError
from commonplace.wire.models import Message, PrivacyIntent, RememberRequest, RememberResponse, Request, dump
from commonplace.wire.validate import _inlined, check, parse, schema_names

MODELS: dict[str, type[Message]] = {
    model.schema_name: model
    for model in vars(models).values()
    if isinstance(model, type) and issubclass(model, Message) and model.schema_name
}

_MEMORY = {"id": "m1", "agent_id": "alice", "content": "tea", "created_at": 0}
_READ = {
    **_MEMORY, "type": "semantic", "updated_at": 0, "version": 1, "status": "live", "confidence": 1, "metadata": {},
}  # fmt: skip
_REVIEW = {
    "id": "r1", "operation": "forget", "agent_id": "alice", "created_at": 0, "status": "pending", "requested_by": "bob",
}  # fmt: skip
_HASH = "0" * 64
_TRIPLE = {
    "id": "t1", "agent_id": "alice", "subject": "tea", "predicate": "is", "object": "hot", "valid_from": 0,
    "confidence": 1, "asserted_by": "bob",
}  # fmt: skip
SMALLEST: dict[str, dict[str, Any]] = {
    "memorywire/operations/remember": {"agent_id": "alice", "type": "semantic", "content": "tea"},
    "memorywire/operations/remember.response": {"id": "m1", "stored_at": 0, "stores": [], "pending_approval": False},
    "memorywire/operations/recall": {"agent_id": "alice", "query": "tea"},
    "memorywire/operations/recall.response": {
        "results": [],
        "fusion_used": "rrf",
        "stores_queried": [],
        "latency_ms": 0,
    },
    "memorywire/operations/forget": {"agent_id": "alice", "ids": ["m1"]},
    "memorywire/operations/forget.response": {"forgotten_ids": [], "stores": [], "hard_delete": False},
    "memorywire/operations/merge": {"agent_id": "alice", "canonical": "m1", "duplicates": ["m2"]},
    "memorywire/operations/merge.response": {
        "canonical": "m1",
        "merged_count": 0,
        "strategy_used": "keep_canonical",
        "stores": [],
    },
    "memorywire/operations/expire": {"agent_id": "alice", "policy": {"type": "semantic"}},
    "memorywire/operations/expire.response": {"matched_count": 0, "action_taken": "forget", "stores": []},
    "memorywire/operations/update": {"agent_id": "alice"},
    "memorywire/operations/export": {},
    "memorywire/operations/import": {},
    "memorywire/operations/import.response": {
        "format": "commonplace",
        "dry_run": False,
        "written": {},
        "known": {},
        "updated": {},
        "staged": 0,
        "redacted": {},
        "left_out": [],
        "broken": [],
        "broken_count": 0,
        "agents": {},
    },
    "memorywire/operations/lifecycle.run": {},
    "memorywire/operations/lifecycle.run.response": {
        "job": "expire",
        "dry_run": False,
        "at": 0,
        "duration_ms": 0,
        "counts": {},
        "error": None,
        "run_id": None,
        "actions": [],
    },
    "memorywire/operations/lifecycle.response": {"jobs": []},
    "memorywire/operations/lifecycle.runs": {},
    "memorywire/operations/lifecycle.runs.response": {"runs": []},
    "memorywire/operations/lifecycle.show.response": {
        "id": "r1",
        "job": "dream",
        "by": "local",
        "at": 0,
        "duration_ms": None,
        "counts": {},
        "error": None,
        "undone_at": None,
        "undone_by": None,
        "actions": [],
        "action_count": 0,
    },
    "memorywire/operations/undo": {},
    "memorywire/operations/undo.response": {"restored_ids": [], "unchanged_ids": []},
    "memorywire/operations/procedure.show": {"id": "m1"},
    "memorywire/operations/procedure.draw": {"id": "m1"},
    "memorywire/operations/procedure.fire": {"trigger": "push"},
    "memorywire/operations/procedure.reset": {},
    "memorywire/operations/procedure.response": {
        "id": "m1",
        "agent_id": "alice",
        "version": 1,
        "name": "door",
        "state": "shut",
        "initial": "shut",
        "states": ["shut"],
        "possible": [],
    },
    "memorywire/operations/procedure.draw.response": {"id": "m1", "format": "svg", "drawing": ""},
    "memorywire/operations/governance.review": {
        "operation": "merge",
        "agent_id": "alice",
        "request": {"agent_id": "alice", "canonical": "m1", "duplicates": ["m2"]},
    },
    "memorywire/operations/governance.decision": {"approved": True, "reviewer": "bob", "reviewed_at": 0},
    "memorywire/types/semantic": {**_MEMORY, "type": "semantic"},
    "memorywire/types/episodic": {**_MEMORY, "type": "episodic"},
    "memorywire/types/procedural": {**_MEMORY, "type": "procedural"},
    "memorywire/types/emotional": {**_MEMORY, "type": "emotional"},
    "memorywire/types/fsm": {"name": "x", "states": ["idle"]},
    "memorywire/types/memory": _READ,
    "memorywire/operations/update.response": _READ,
    "memorywire/operations/list.response": {"memories": [_READ]},
    "memorywire/operations/history.response": {"versions": [_READ]},
    "memorywire/operations/preview.response": {"memories": [_READ]},
    "memorywire/operations/preview.merge.response": {"survivor": _READ, "losers": []},
    "memorywire/operations/remember.batch": {"items": [{}]},
    "memorywire/operations/remember.batch.response": {
        "results": [{"error": {"code": "conflict", "message": "used before"}}]
    },
    "memorywire/types/review": _REVIEW,
    "memorywire/operations/reviews": {},
    "memorywire/operations/review_pending": {},
    "memorywire/operations/audit": {},
    "memorywire/operations/get": {"agent_id": "alice", "id": "m1"},
    "memorywire/operations/history": {"agent_id": "alice", "id": "m1"},
    "memorywire/operations/list": {"agent_id": "alice"},
    "memorywire/operations/graph_query": {"agent_id": "alice", "subject": "tea"},
    "memorywire/operations/kg.history": {"agent_id": "alice", "subject": "tea"},
    "memorywire/operations/kg.path": {"agent_id": "alice", "start": "tea", "end": "hot"},
    "memorywire/operations/kg.neighbors": {"agent_id": "alice", "memory_id": "m1"},
    "memorywire/operations/reviews.response": {"reviews": [_REVIEW]},
    "memorywire/operations/decide": {"approved": True},
    "memorywire/operations/decide.many": {"ids": ["r1"], "approved": True},
    "memorywire/operations/decide.many.response": {"results": [{"id": "r1", "status": "approved"}]},
    "memorywire/operations/review.edit": {"request": {}},
    "memorywire/operations/policies": {"rules": []},
    "memorywire/operations/policies.response": {"rules": [], "configured": []},
    "memorywire/operations/policies.dry-run": {"rules": []},
    "memorywire/operations/policies.dry-run.response": {"looked_at": 0, "counts": {}, "caught": []},
    "memorywire/operations/policies.learned.response": {"learned": []},
    "memorywire/operations/policies.revoke.response": {"id": "x", "revoked": True},
    "memorywire/operations/decide.response": {**_REVIEW, "approved": True, "reviewer": "bob", "reviewed_at": 0},
    "memorywire/operations/audit.response": {"entries": []},
    "memorywire/operations/audit.proof": {"entry": 1},
    "memorywire/operations/audit.proof.response": {
        "entry": 1,
        "size": 1,
        "leaf_hash": _HASH,
        "path": [],
        "root": _HASH,
    },
    "memorywire/operations/audit.consistency": {"from": 0},
    "memorywire/operations/audit.consistency.response": {
        "from": 0,
        "to": 1,
        "from_root": _HASH,
        "to_root": _HASH,
        "path": [],
    },
    "memorywire/operations/audit.head.response": {
        "tenant": "t",
        "size": 0,
        "root": _HASH,
        "at": 0,
        "key_id": "k",
        "signature": "s",
    },
    "memorywire/operations/audit.key.response": {
        "key_id": "k",
        "public_key": "p",
        "algorithm": "ed25519",
        "retired": [],
    },
    "memorywire/operations/audit.verify.response": {"ok": True, "entries": 0, "head": ""},
    "memorywire/operations/recover": {},
    "memorywire/operations/recover.response": {"affected": [], "erased": 0},
    "memorywire/operations/health.response": {"status": "ok", "version": "1", "store": "sqlite", "capabilities": []},
    "memorywire/operations/stores.response": {"stores": []},
    "memorywire/operations/status.response": {"version": "1", "agents": {}, "memories": 0, "pending_reviews": 0},
    "memorywire/types/triple": _TRIPLE,
    "memorywire/operations/kg.assert.response": {**_TRIPLE, "replaced": _TRIPLE},
    "memorywire/operations/kg.assert": {"agent_id": "alice", "subject": "tea", "predicate": "is", "object": "hot"},
    "memorywire/operations/kg.response": {"subject": "tea", "triples": [_TRIPLE]},
    "memorywire/operations/kg.path.response": {"start": "tea", "end": "hot", "triples": [_TRIPLE]},
    "memorywire/operations/kg.retract": {"agent_id": "alice", "subject": "tea", "predicate": "is"},
    "memorywire/operations/kg.erase": {"agent_id": "alice", "subject": "tea"},
    "memorywire/operations/kg.erase.response": {"subject": "tea", "erased": []},
    "memorywire/operations/kg.neighbors.response": {"id": "m1", "neighbors": [{"id": "m2", "distance": 1}]},
    "memorywire/rpc": {"jsonrpc": "2.0", "method": "memory.recall"},
    "memorywire/rpc.response": {"jsonrpc": "2.0", "result": {}},
    "memorywire/error": {"error": {"code": "not_found", "message": "there is no such memory"}},
}


SCHEMAS = sorted(SMALLEST)


#: One of these in place of any value: every wrong type, the edges of every range, and numbers in disguise.
ODDITIES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 4, 5, 1000, 1001, 2**53 - 1, 2**53, -(2**53), 10**30),
    *(5.0, 5.5, 1.0, 0.0, -0.0, 1.0000001, -1.5, 1000.0, 1e17, 1e39, -1e300),
    *("", "x", "5", "semantic", "procedural", "rrf", "forget", "merge", "remember", "a.b", "9a", "a\n"),
    *("é" * 256, "a" * 257, [], [1], [""], ["x"], ["x", "x"], [None], {}, {"a": 1}, {"a": None}),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def documents(rules: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Valid documents of the part of JSON Schema our files use."""
    if "const" in rules:
        return st.just(rules["const"])
    if "enum" in rules:
        return st.sampled_from(rules["enum"])
    if "type" not in rules:
        return st.one_of([documents(branch) for branch in rules["anyOf"]])
    if isinstance(rules["type"], list):
        return st.one_of([documents({**rules, "type": one}) for one in rules["type"]])
    match rules["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            whole = st.integers(rules["minimum"], rules["maximum"])
            return whole | whole.map(lambda n: float(n) if abs(n) < 2**50 else n)
        case "number":
            return st.floats(rules["minimum"], rules["maximum"]) | st.sampled_from([0, 1])
        case "string" if "pattern" in rules:
            return st.from_regex(rules["pattern"], fullmatch=True).filter(lambda text: text.isprintable())
        case "string":
            return st.text(min_size=rules.get("minLength", 0), max_size=min(rules.get("maxLength", 300), 300))
        case "array":
            items = documents(rules["items"])
            unique = {"unique": True} if rules.get("uniqueItems") else {}
            return st.lists(items, min_size=rules.get("minItems", 0), max_size=3, **unique)
        case "object" if rules.get("additionalProperties", True) is True:
            return st.dictionaries(st.text(max_size=5), JSON, min_size=rules.get("minProperties", 0), max_size=3)
        case "object" if isinstance(rules["additionalProperties"], dict):
            return st.dictionaries(st.text(max_size=5), documents(rules["additionalProperties"]), max_size=3)
    return objects(rules)


@st.composite
def objects(draw: st.DrawFn, rules: dict[str, Any]) -> dict[str, Any]:
    needed = set(rules.get("required", ()))
    optional = [key for key in rules["properties"] if key not in needed]
    chosen = needed | set(draw(st.lists(st.sampled_from(optional), unique=True)) if optional else ())
    properties = rules["properties"]
    if "anyOf" in rules:
        branch = draw(st.sampled_from(rules["anyOf"]))
        key = branch["required"][0]
        chosen |= {key}
        properties = {**properties, key: {**properties[key], **branch["properties"][key]}}
    if not chosen and rules.get("minProperties"):
        chosen = {draw(st.sampled_from(optional))}
    document = {key: draw(documents(properties[key])) for key in chosen}
    for condition in rules.get("allOf", ()):
        if document["operation"] == condition["if"]["properties"]["operation"]["const"]:
            document["request"] = draw(documents(condition["then"]["properties"]["request"]))
    return document


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    found: list[tuple[Any, Any]] = []
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        found += [(node, key), *places(node[key])]
    return found


@st.composite
def damaged(draw: st.DrawFn, rules: dict[str, Any]) -> Any:
    document = copy.deepcopy(draw(documents(rules)))
    names = sorted({*rules["properties"], "extra", "schema_name", "model_config"})
    for _ in range(draw(st.integers(1, 3))):
        spots = places(document)
        container, key = draw(st.sampled_from(spots)) if spots else (document, None)
        match draw(st.sampled_from(["drop", "replace", "replace", "replace", "add"])):
            case "drop" if key is not None:
                del container[key]
            case "replace" if key is not None:
                container[key] = copy.deepcopy(draw(st.sampled_from(ODDITIES)))
            case _ if isinstance(container, dict):
                container[draw(st.sampled_from(names))] = copy.deepcopy(draw(st.sampled_from(ODDITIES)))
            case _:
                container.append(copy.deepcopy(draw(st.sampled_from(ODDITIES))))
    return document


def accepted(name: str, document: Any) -> bool:
    """By its schema; by its message, too, where it has one."""
    try:
        check(name, document)
        if name in MODELS:
            parse(MODELS[name], document)
    except ValidationError:
        return False
    return True


RELAXED = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def test_every_schema_has_its_smallest_document() -> None:
    assert sorted(SMALLEST) == [name for name in schema_names() if name.startswith("memorywire/")]
    assert set(MODELS) <= set(SMALLEST)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
@RELAXED
@given(data=st.data())
def test_valid_documents_are_accepted_by_both_and_round_trip(name: str, data: st.DataObject) -> None:
    document = data.draw(documents(_inlined(name)))
    check(name, document)
    if name in MODELS:
        message = parse(MODELS[name], document)
        again = dump(message)
        check(name, again)
        assert parse(MODELS[name], again) == message


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
@RELAXED
@given(data=st.data())
def test_damaged_documents_get_the_same_verdict(name: str, data: st.DataObject) -> None:
    rules = _inlined(name)
    document = data.draw(damaged(rules))
    verdict = jsonschema_rs.Draft202012Validator(rules).is_valid(document)
    assert accepted(name, document) == verdict
    if not verdict:
        with pytest.raises(ValidationError) as by_schema:
            check(name, document)
        assert by_schema.value.message
        if name in MODELS:
            with pytest.raises(ValidationError) as by_model:
                parse(MODELS[name], document)
            assert by_model.value.message == by_schema.value.message


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_takes_every_oddity_alike(name: str) -> None:
    """Exhaustive where the properties above are random: each field of a smallest document, each odd value."""
    rules = _inlined(name)
    validator = jsonschema_rs.Draft202012Validator(rules)
    base = SMALLEST[name]
    assert validator.is_valid(base)
    for key in rules["properties"]:
        without = {k: v for k, v in base.items() if k != key}
        assert accepted(name, without) == validator.is_valid(without), key
        for odd in ODDITIES:
            document = {**base, key: odd}
            assert accepted(name, document) == validator.is_valid(document), (key, odd)
            if odd is not None and issubclass(MODELS.get(name, Message), Request):
                assert constructed(MODELS[name], document) == validator.is_valid(document), (key, odd)


def constructed(model: type[Message], document: dict[str, Any]) -> bool:
    try:
        message = model(**document)
    except ValidationError:
        return False
    assert message == parse(model, document)
    return True


def _messages_in(annotation: Any) -> list[type[Message]]:
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return [annotation]
    return [model for inner in typing.get_args(annotation) for model in _messages_in(inner)]


def _object_rules(rules: dict[str, Any]) -> list[dict[str, Any]]:
    """The closed objects directly inside a property's rules."""
    found = [rules] if "properties" in rules else []
    for inner in [rules.get("items"), *rules.get("anyOf", ())]:
        found += _object_rules(inner) if inner else []
    return found


def _assert_same_shape(model: type[Message], rules: dict[str, Any]) -> None:
    fields = model.model_fields
    assert set(fields) == set(rules["properties"])
    assert {name for name, field in fields.items() if field.is_required()} == set(rules.get("required", ()))
    for name, field in fields.items():
        default = field.get_default(call_default_factory=True) if not field.is_required() else None
        assert default == rules["properties"][name].get("default"), name
        nested = _messages_in(field.annotation)
        inside = _object_rules(rules["properties"][name])
        assert len(nested) == len(inside), name
        for inner_model, inner_rules in zip(nested, inside, strict=True):
            _assert_same_shape(inner_model, inner_rules)


@pytest.mark.parametrize("name", MODELS)
def test_fields_required_and_defaults_are_the_same_at_every_depth(name: str) -> None:
    _assert_same_shape(MODELS[name], _inlined(name))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", ["confidence", "metadata", "embedding", "expires_at"])
def test_what_json_cannot_say_is_refused(number: float, place: str) -> None:
    value: Any = {"metadata": {"deep": [number]}, "embedding": [number]}.get(place, number)
    document = {**SMALLEST["memorywire/operations/remember"], place: value}
    with pytest.raises(ValidationError, match=place):
        parse(RememberRequest, document)
    with pytest.raises(ValidationError, match=place):
        check("memorywire/operations/remember", document)


def test_a_constructor_takes_none_for_absent_where_a_document_may_not() -> None:
    built = RememberRequest(agent_id="alice", type="semantic", content="tea", user_id=None, metadata=None)
    assert dump(built) == {
        "agent_id": "alice",
        "type": "semantic",
        "content": "tea",
        "confidence": 1.0,
        "approval_required": False,
    }
    assert not built.model_fields_set & {"user_id", "metadata"}
    with pytest.raises(ValidationError, match="not null"):
        parse(RememberRequest, {**SMALLEST["memorywire/operations/remember"], "user_id": None})


def test_a_request_that_its_schema_refuses_cannot_be_made() -> None:
    with pytest.raises(ValidationError, match=r"privacy_intent\.retain must be a whole number of at least 1, not 0"):
        RememberRequest(agent_id="alice", type="semantic", content="tea", privacy_intent=PrivacyIntent(retain=0))
    with pytest.raises(ValidationError, match="did you mean 'content'"):
        RememberRequest(agent_id="alice", type="semantic", contnet="tea")


def test_dump_keeps_nulls_that_are_content_and_says_approval_url() -> None:
    request = parse(
        RememberRequest, {**SMALLEST["memorywire/operations/remember"], "metadata": {"a": None, "b": [{"c": None}]}}
    )
    assert dump(request)["metadata"] == {"a": None, "b": [{"c": None}]}
    response = RememberResponse(id="m1", stored_at=1, stores=["sqlite"], pending_approval=False)
    assert dump(response) == {**response.model_dump(exclude_none=True), "approval_url": None}


@given(st.integers(101, 140))
@example(101)
def test_depth_has_an_end(levels: int) -> None:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"in": nested}
    with pytest.raises(ValidationError, match="levels deep"):
        parse(RememberRequest, {**SMALLEST["memorywire/operations/remember"], "metadata": nested})
