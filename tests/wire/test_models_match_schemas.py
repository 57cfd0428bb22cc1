"""Models and schemas must accept and refuse exactly the same documents."""

from __future__ import annotations

import copy
import typing
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from commonplace.wire import knowledge, models, surface, types
from commonplace.wire.errors import ValidationError
from commonplace.wire.models import Message, RememberRequest, RememberResponse, ReviewRequest, dump
from commonplace.wire.validate import _inlined, check, parse, schema_names

MODELS: list[type[Message]] = sorted(
    (
        model
        for model in (vars(models) | vars(types) | vars(surface) | vars(knowledge)).values()
        if isinstance(model, type) and issubclass(model, Message) and model.schema_name
    ),
    key=lambda model: model.schema_name,
)
BY_NAME = {model.__name__: model for model in MODELS}

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


def model_accepts(model: type[Message], document: Any) -> bool:
    try:
        model.model_validate(document)
    except ValueError:
        return False
    return True


RELAXED = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


#: Requests whose fields are the arguments of a function: the schema alone checks them.
WITHOUT_MODEL = [
    "audit",
    "get",
    "graph_query",
    "history",
    "kg.history",
    "kg.neighbors",
    "kg.path",
    "list",
    "review_pending",
    "reviews",
]


def test_every_schema_has_its_model() -> None:
    assert sorted(
        [*(model.schema_name for model in MODELS), *(f"memorywire/operations/{name}" for name in WITHOUT_MODEL)]
    ) == [name for name in schema_names() if name.startswith("memorywire/")]


@pytest.mark.parametrize("name", BY_NAME)
@RELAXED
@given(data=st.data())
def test_valid_documents_are_accepted_by_both_and_round_trip(name: str, data: st.DataObject) -> None:
    model = BY_NAME[name]
    document = data.draw(documents(_inlined(model.schema_name)))
    check(model.schema_name, document)
    message = parse(model, document)
    again = dump(message)
    check(model.schema_name, again)
    assert parse(model, again) == message


@pytest.mark.parametrize("name", BY_NAME)
@RELAXED
@given(data=st.data())
def test_damaged_documents_get_the_same_verdict(name: str, data: st.DataObject) -> None:
    model = BY_NAME[name]
    rules = _inlined(model.schema_name)
    document = data.draw(damaged(rules))
    verdict = jsonschema_rs.Draft202012Validator(rules).is_valid(document)
    assert model_accepts(model, document) == verdict
    if not verdict:
        with pytest.raises(ValidationError) as by_model:
            parse(model, document)
        with pytest.raises(ValidationError) as by_schema:
            check(model.schema_name, document)
        assert by_model.value.message == by_schema.value.message


@pytest.mark.parametrize("name", BY_NAME)
def test_every_field_takes_every_oddity_alike(name: str) -> None:
    """Exhaustive where the properties above are random: each field of a smallest document, each odd value."""
    model = BY_NAME[name]
    rules = _inlined(model.schema_name)
    validator = jsonschema_rs.Draft202012Validator(rules)
    base = SMALLEST[name]
    assert validator.is_valid(base)
    for key in rules["properties"]:
        without = {k: v for k, v in base.items() if k != key}
        assert model_accepts(model, without) == validator.is_valid(without), key
        for odd in ODDITIES:
            document = {**base, key: odd}
            assert model_accepts(model, document) == validator.is_valid(document), (key, odd)


_MEMORY = {"id": "m1", "agent_id": "alice", "content": "tea", "created_at": 0}
_READ = {
    **_MEMORY, "type": "semantic", "updated_at": 0, "version": 1, "status": "live", "confidence": 1, "metadata": {},
}  # fmt: skip
_REVIEW = {
    "id": "r1", "operation": "forget", "agent_id": "alice", "created_at": 0, "status": "pending", "requested_by": "bob",
}  # fmt: skip
_TRIPLE = {
    "id": "t1", "agent_id": "alice", "subject": "tea", "predicate": "is", "object": "hot", "valid_from": 0,
    "confidence": 1, "asserted_by": "bob",
}  # fmt: skip
SMALLEST: dict[str, dict[str, Any]] = {
    "RememberRequest": {"agent_id": "alice", "type": "semantic", "content": "tea"},
    "RememberResponse": {"id": "m1", "stored_at": 0, "stores": [], "pending_approval": False},
    "RecallRequest": {"agent_id": "alice", "query": "tea"},
    "RecallResponse": {"results": [], "fusion_used": "rrf", "stores_queried": [], "latency_ms": 0},
    "ForgetRequest": {"agent_id": "alice", "ids": ["m1"]},
    "ForgetResponse": {"forgotten_ids": [], "stores": [], "hard_delete": False},
    "MergeRequest": {"agent_id": "alice", "canonical": "m1", "duplicates": ["m2"]},
    "MergeResponse": {"canonical": "m1", "merged_count": 0, "strategy_used": "keep_canonical", "stores": []},
    "ExpireRequest": {"agent_id": "alice", "policy": {"type": "semantic"}},
    "ExpireResponse": {"matched_count": 0, "action_taken": "forget", "stores": []},
    "UpdateRequest": {"agent_id": "alice"},
    "ReviewRequest": {
        "operation": "merge",
        "agent_id": "alice",
        "request": {"agent_id": "alice", "canonical": "m1", "duplicates": ["m2"]},
    },
    "ReviewDecision": {"approved": True, "reviewer": "bob", "reviewed_at": 0},
    "SemanticMemory": {**_MEMORY, "type": "semantic"},
    "EpisodicMemory": {**_MEMORY, "type": "episodic"},
    "ProceduralMemory": {**_MEMORY, "type": "procedural"},
    "EmotionalMemory": {**_MEMORY, "type": "emotional"},
    "Fsm": {"states": ["idle"]},
    "MemoryDocument": _READ,
    "ListResponse": {"memories": [_READ]},
    "HistoryResponse": {"versions": [_READ]},
    "PreviewResponse": {"memories": [_READ]},
    "MergePreviewResponse": {"survivor": _READ, "losers": []},
    "BatchRequest": {"items": [{}]},
    "BatchResponse": {"results": [{"error": {"code": "conflict", "message": "used before"}}]},
    "Review": _REVIEW,
    "ReviewsResponse": {"reviews": [_REVIEW]},
    "DecideRequest": {"approved": True},
    "DecideResponse": {**_REVIEW, "approved": True, "reviewer": "bob", "reviewed_at": 0},
    "AuditResponse": {"entries": []},
    "AuditVerification": {"ok": True, "entries": 0, "head": ""},
    "HealthResponse": {"status": "ok", "version": "1", "store": "sqlite", "capabilities": []},
    "StatusResponse": {"version": "1", "agents": {}, "memories": 0, "pending_reviews": 0},
    "TripleDocument": _TRIPLE,
    "AssertResponse": {**_TRIPLE, "replaced": _TRIPLE},
    "AssertRequest": {"agent_id": "alice", "subject": "tea", "predicate": "is", "object": "hot"},
    "KnowledgeResponse": {"subject": "tea", "triples": [_TRIPLE]},
    "PathResponse": {"start": "tea", "end": "hot", "triples": [_TRIPLE]},
    "RetractRequest": {"agent_id": "alice", "subject": "tea", "predicate": "is"},
    "EraseRequest": {"agent_id": "alice", "subject": "tea"},
    "EraseResponse": {"subject": "tea", "erased": []},
    "NeighborsResponse": {"id": "m1", "neighbors": [{"id": "m2", "distance": 1}]},
    "RpcRequest": {"jsonrpc": "2.0", "method": "memory.recall"},
    "RpcResponse": {"jsonrpc": "2.0", "result": {}},
    "ErrorEnvelope": {"error": {"code": "not_found", "message": "there is no such memory"}},
}


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
        if model is ReviewRequest and name == "request":
            continue
        inside = _object_rules(rules["properties"][name])
        assert len(nested) == len(inside), name
        for inner_model, inner_rules in zip(nested, inside, strict=True):
            _assert_same_shape(inner_model, inner_rules)


@pytest.mark.parametrize("name", BY_NAME)
def test_fields_required_and_defaults_are_the_same_at_every_depth(name: str) -> None:
    _assert_same_shape(BY_NAME[name], _inlined(BY_NAME[name].schema_name))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", ["confidence", "metadata", "embedding", "expires_at"])
def test_what_json_cannot_say_is_refused(number: float, place: str) -> None:
    value: Any = {"metadata": {"deep": [number]}, "embedding": [number]}.get(place, number)
    document = {**SMALLEST["RememberRequest"], place: value}
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
        parse(RememberRequest, {**SMALLEST["RememberRequest"], "user_id": None})


def test_dump_keeps_nulls_that_are_content_and_says_approval_url() -> None:
    request = parse(RememberRequest, {**SMALLEST["RememberRequest"], "metadata": {"a": None, "b": [{"c": None}]}})
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
        parse(RememberRequest, {**SMALLEST["RememberRequest"], "metadata": nested})
