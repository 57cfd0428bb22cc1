"""Procedures: what is kept as a state machine, and that none of them names code to run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine import procedures
from commonplace.wire.errors import ValidationError

MACHINE: dict[str, Any] = {
    "name": "book", "initial": "idle", "current": "idle", "states": ["idle", {"name": "paid"}], "metadata": {"x": 1},
    "transitions": [{"trigger": "pay", "source": "idle", "dest": "paid", "conditions": "is_ok", "unless": ["a", "b"]}],
}  # fmt: skip


def changed(**fields: Any) -> str:
    return json.dumps({**MACHINE, **fields})


def with_transition(**fields: Any) -> str:
    return changed(transitions=[{**MACHINE["transitions"][0], **fields}])


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(MACHINE), "  " + json.dumps(MACHINE), json.dumps({"states": ["a"]}),
        "First open the lid, then {carefully} pour.", "{not json} but prose", "[ ] a checkbox list", '"quoted"', "42",
        with_transition(source="*", dest="="), with_transition(source=["idle", "paid"]), with_transition(dest=None),
        changed(transitions=[]),
    ],
)  # fmt: skip
def test_procedures_that_are_kept(content: str) -> None:
    procedures.check(content)


@pytest.mark.parametrize("callback", sorted(procedures.CALLBACKS))
def test_every_callback_is_refused_by_name(callback: str) -> None:
    for content in (
        changed(**{callback: "os.system"}),
        with_transition(**{callback: "os.system"}),
        changed(states=["idle", {"name": "paid", callback: "x"}]),
    ):
        with pytest.raises(ValidationError) as refused:
            procedures.check(content)
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
        (with_transition(trigger=""), "trigger must be a name"),
        (with_transition(shell="x"), "transitions[0].shell is not allowed; only conditions, dest, "),
        (changed(transitions=[{"trigger": "x"}]), "transitions[0].source is required"),
        (changed(transitions={}), "transitions must be a list"),
        (changed(transitions=["pay"]), "transitions[0] must be an object"),
        (changed(states=[]), "states must be a list of at least one"),
        (changed(states=[1]), "states[0] must be a state name"),
        (changed(states={"idle": 1}), "states must be a list"),
        (changed(initial="nowhere"), "initial must be one of the states idle, paid, not 'nowhere'"),
        (changed(current=["idle"]), "current must be one of the states"),
        (changed(name=1), "name must be a string"),
        (changed(metadata=[]), "metadata must be an object"),
        (changed(extra=1), "content.extra is not allowed"),
        ("[1, 2]", "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_procedures_that_are_refused(content: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        procedures.check(content)
    assert sentence in refused.value.message


@pytest.mark.parametrize(
    ("content", "machine"),
    [
        (json.dumps(MACHINE), True), ("  {}", True), ("{not json}", False), ("[]", False), ("prose", False),
        ("", False), ('{"a": ' * 100_000, False),
    ],
)  # fmt: skip
def test_what_is_a_state_machine_and_what_is_prose(content: str, machine: bool) -> None:
    assert procedures.is_machine(content) is machine


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


def refusal(content: str) -> str | None:
    try:
        procedures.check(content)
    except ValidationError as fault:
        return fault.message
    return None


@given(machines | json_values)
def test_any_document_is_kept_or_refused_by_a_sentence(document: Any) -> None:
    refused = refusal(json.dumps(document))
    if refused is not None:
        assert refused.startswith("procedure: content")
    else:
        assert not isinstance(document, (dict, list)) or document["states"]
