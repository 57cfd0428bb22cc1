"""Procedures: what is kept as a state machine, and that none of them names code to run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hostile_procedures import HOSTILE, MACHINE, changed, with_transition, without
from hypothesis import given, settings, strategies as st

from commonplace.engine.procedures import machine
from commonplace.wire.errors import ValidationError


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(MACHINE), "  " + json.dumps(MACHINE), json.dumps({"name": "x", "states": ["a"]}),
        "First open the lid, then {carefully} pour.", "{not json} but prose", "[ ] a checkbox list", '"quoted"', "42",
        "[NaN] is not a number", '{"a": 1} and so on', "\ufeff{}", changed(name="book-a-flight: the 2nd time"),
        with_transition(conditions=["ist_fällig", "a" * 128], unless=[]), changed(states=["idle", "paid", "оплачено"]),
        changed(transitions=[{"trigger": "x", "source": s, "dest": "idle"} for s in ("*", "idle", "paid")]),
        changed(states=["idle", "paid", *(f"s{i}" for i in range(198))]), without("initial", "current", "transitions"),
        with_transition(source="*", dest="="), with_transition(source=["idle", "paid"]), with_transition(dest=None),
        changed(transitions=[]),
    ],
)  # fmt: skip
def test_procedures_that_are_kept(content: str) -> None:
    machine.check(content)


@pytest.mark.parametrize("callback", sorted(machine.CALLBACKS))
def test_every_callback_is_refused_by_name(callback: str) -> None:
    for content in (
        changed(**{callback: "os.system"}),
        with_transition(**{callback: "os.system"}),
        changed(states=["idle", {"name": "paid", callback: "x"}]),
    ):
        with pytest.raises(ValidationError) as refused:
            machine.check(content)
        assert f".{callback} is a callback" in refused.value.message


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (with_transition(conditions="os.system"), "transitions[0].conditions must be bare names"),
        (with_transition(conditions=["ok", "a.b"]), "transitions[0].conditions must be bare names"),
        (with_transition(unless="__import__('os')"), "transitions[0].unless must be bare names"),
        (with_transition(conditions=[["x"]]), "must be bare names"),
        (with_transition(conditions=""), "must be bare names"),
        (with_transition(source="nowhere"), "source names 'nowhere', which is not one of the states"),
        (with_transition(dest="nowhere"), "dest names 'nowhere'"),
        (with_transition(trigger=""), "trigger must be a name such as"),
        (with_transition(shell="x"), "transitions[0].shell is not allowed; only conditions, dest, "),
        (changed(transitions=[{"trigger": "x"}]), "transitions[0].source is required"),
        (changed(transitions={}), "transitions must be a list"),
        (changed(transitions=["pay"]), "transitions[0] must be an object"),
        (changed(states=[]), "states must be a list of at least one"),
        (changed(states=[1]), "states[0] must be a state name such as"),
        (changed(states={"idle": 1}), "states must be a list"),
        (changed(initial="nowhere"), "initial must be one of the states idle, paid, not 'nowhere'"),
        (changed(current=["idle"]), "current must be one of the states"),
        (changed(name=1), "name must be a string that is not blank, not 1"),
        (changed(metadata=[]), "metadata must be an object"),
        (changed(extra=1), "content.extra is not allowed"),
        (with_transition(conditions="__class__"), "conditions must not begin with __"),
        (changed(states=[f"s{i}" for i in range(201)]), "states must be at most 200, not 201"),
        (changed(transitions=[{"trigger": f"t{i}", "source": "*", "dest": "="} for i in range(1001)]), "at most 1000"),
        (changed(transitions=MACHINE["transitions"] * 2), "transitions[1].trigger is a second 'pay' from 'idle'"),
        ('{"name": "x", "name": "y"}', "has the key 'name' twice in one object"),
        ('{"name": "x", "metadata": {"a": NaN}}', "holds NaN, which is not JSON"),
        ("[1, 2]", "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_procedures_that_are_refused(content: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        machine.check(content)
    assert sentence in refused.value.message


def test_the_corpus_is_large() -> None:
    assert len({content for content, _ in HOSTILE}) == len(HOSTILE) >= 60


@pytest.mark.parametrize(("content", "key"), HOSTILE)
def test_hostile_procedures_are_refused_by_the_key_that_is_wrong(content: str, key: str) -> None:
    with pytest.raises(ValidationError) as refused:
        machine.check(content)
    assert refused.value.details["field"] == key
    assert refused.value.message.startswith(f"procedure: {key} ")
    assert len(refused.value.message) < 500


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (json.dumps(MACHINE), True), ("  {}", True), ("{not json}", False), ("[]", False), ("prose", False),
        ("", False), ('{"a": ' * 100_000, False),
    ],
)  # fmt: skip
def test_what_is_a_state_machine_and_what_is_prose(content: str, expected: bool) -> None:
    assert machine.is_machine(content) is expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=6), values, max_size=3),
    max_leaves=6,
)
machines = st.fixed_dictionaries(
    {},
    optional={
        "name": json_values, "initial": json_values, "current": json_values, "metadata": json_values,
        "states": json_values | st.lists(st.sampled_from(["a", "b", {"name": "c"}]), min_size=1, max_size=3),
        "transitions": json_values | st.lists(
            st.fixed_dictionaries({"trigger": st.just("go"), "source": st.sampled_from(["a", "*"])},
                                  optional={"dest": json_values, "conditions": json_values}), max_size=2),
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "initial", "current"),
    [
        ({}, "idle", "idle"), ({"initial"}, "paid", "paid"), ({"current"}, "idle", "idle"),
        ({"initial", "current"}, "idle", "idle"),
    ],
)  # fmt: skip
def test_where_it_starts_and_stands_when_that_is_not_said(missing: set[str], initial: str, current: str) -> None:
    document = MACHINE if not missing else {**MACHINE, "current": "paid"}
    parsed = machine.parse(json.dumps({name: value for name, value in document.items() if name not in missing}))
    assert parsed is not None
    assert (parsed.initial, parsed.current) == (initial, current)
    moved = machine.parse(parsed.at("paid"))
    assert moved is not None
    assert (moved.initial, moved.current) == (initial, "paid")
    assert moved.document == {**parsed.document, "initial": initial, "current": "paid"}


def refusal(content: str) -> str | None:
    try:
        machine.check(content)
    except ValidationError as fault:
        return fault.message
    return None


@settings(max_examples=300)
@given(machines | json_values)
def test_any_document_is_kept_or_refused_by_a_sentence(document: Any) -> None:
    refused = refusal(json.dumps(document))
    if refused is not None:
        assert refused.startswith("procedure: content")
    else:
        assert not isinstance(document, (dict, list)) or document["states"]
