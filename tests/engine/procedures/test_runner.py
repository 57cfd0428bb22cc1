"""Firing: where a trigger leads, why it leads nowhere, and that nothing a document names is ever looked up."""

from __future__ import annotations

import builtins
import inspect
import json
import sys
from typing import Any

import pytest
import transitions
from hostile_procedures import MACHINE, changed, with_transition
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.engine.procedures import machine, runner
from commonplace.wire.errors import Conflict, Fault, ValidationError

BOOKING = machine.parse(
    json.dumps(
        {
            "name": "booking",
            "states": ["searching", "paying", "booked", "cancelled"],
            "transitions": [
                {"trigger": "found", "source": "searching", "dest": "paying"},
                {"trigger": "pay", "source": "paying", "dest": "booked", "conditions": ["in_budget"], "unless": "late"},
                {"trigger": "cancel", "source": "*", "dest": "cancelled"},
                {"trigger": "cancel", "source": "booked", "dest": "=", "conditions": "insured"},
                {"trigger": "look", "source": ["searching", "paying"], "dest": None},
            ],
        }
    )
)
assert BOOKING is not None


def standing(state: str) -> machine.StateMachine:
    found = machine.parse(BOOKING.at(state))  # type: ignore[union-attr]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("state", "trigger", "facts", "reached"),
    [
        ("searching", "found", {}, "paying"),
        ("searching", "found", {"unrelated": True}, "paying"),
        ("paying", "pay", {"in_budget": True, "late": False}, "booked"),
        ("searching", "cancel", {}, "cancelled"),
        ("cancelled", "cancel", {}, "cancelled"),
        ("booked", "cancel", {"insured": True}, "booked"),
        ("searching", "look", {}, "searching"),
        ("paying", "look", {}, "paying"),
    ],
)
def test_a_trigger_leads_to_its_state(state: str, trigger: str, facts: dict[str, bool], reached: str) -> None:
    assert runner.fire(standing(state), trigger, facts) == reached


@pytest.mark.parametrize(
    ("state", "trigger", "facts", "fault", "sentence", "details"),
    [
        ("searching", "fly", {}, Conflict, "there is no trigger 'fly' of 'booking'; possible are cancel, found, look",
         {"state": "searching", "possible": ["cancel", "found", "look"]}),
        ("booked", "found", {}, Conflict, "'found' is not possible in the state booked",
         {"state": "booked", "possible": ["cancel"]}),
        ("paying", "pay", {}, ValidationError, "facts.in_budget is required: pay depends on it",
         {"field": "facts.in_budget"}),
        ("paying", "pay", {"in_budget": True}, ValidationError, "facts.late is required", {"field": "facts.late"}),
        ("paying", "pay", {"in_budget": "yes", "late": False}, ValidationError, "must be true or false, not 'yes'",
         {"field": "facts.in_budget"}),
        ("paying", "pay", {"in_budget": False, "late": True}, Conflict, "is held back by in_budget, late",
         {"state": "paying", "possible": ["cancel", "look", "pay"], "guards": ["in_budget", "late"]}),
        ("booked", "cancel", {"insured": False}, Conflict, "is held back by insured",
         {"state": "booked", "possible": ["cancel"], "guards": ["insured"]}),
        ("searching", "__class__", {}, Conflict, "there is no trigger", {"state": "searching",
         "possible": ["cancel", "found", "look"]}),
        ("searching", "x" * 9000, {}, Conflict, "there is no trigger", {"state": "searching",
         "possible": ["cancel", "found", "look"]}),
    ],
)  # fmt: skip
def test_a_trigger_that_leads_nowhere_says_why(
    state: str, trigger: str, facts: Any, fault: type[Fault], sentence: str, details: dict[str, Any]
) -> None:
    with pytest.raises(fault) as refused:
        runner.fire(standing(state), trigger, facts)
    assert sentence in refused.value.message
    assert refused.value.details == details
    assert len(refused.value.message) < 500


def test_the_largest_machine_can_be_run() -> None:
    states = [f"s{i}" for i in range(machine.MAX_STATES)]
    wild = [{"trigger": f"t{i}", "source": "*", "dest": "s7"} for i in range(machine.MAX_TRANSITIONS)]
    largest = machine.parse(json.dumps({"name": "large", "states": states, "transitions": wild}))
    assert largest is not None
    assert runner.fire(largest, "t999", {}) == "s7"


#: What `transitions` 0.9 takes that is or may be a callback. A release that takes more must be looked at: is it a key
#: that `machine` refuses by name, and can it be reached by anything that `runner` hands over?
SURFACE = {
    "State": {"name", "on_enter", "on_exit", "ignore_invalid_triggers", "final"},
    "Transition": {"source", "dest", "conditions", "unless", "before", "after", "prepare"},
    "Machine": {
        "model", "states", "initial", "transitions", "send_event", "auto_transitions", "ordered_transitions",
        "ignore_invalid_triggers", "before_state_change", "after_state_change", "name", "queued", "prepare_event",
        "finalize_event", "model_attribute", "model_override", "on_exception", "on_final", "kwargs",
    },
    "Machine.add_transition": {"trigger", "source", "dest", "conditions", "unless", "before", "after", "prepare",
                               "kwargs"},
}  # fmt: skip


def test_the_library_takes_no_callback_that_we_do_not_know() -> None:
    found = {}
    for name in SURFACE:
        owner, _, method = name.partition(".")
        function = getattr(getattr(transitions, owner), method or "__init__")
        found[name] = set(inspect.signature(function).parameters) - {"self"}
    assert found == SURFACE
    callbacks = {*transitions.State.dynamic_methods, *transitions.Transition.dynamic_methods}
    assert callbacks <= machine.CALLBACKS
    assert {name for name in SURFACE["Machine"] if name.startswith(("on_", "before", "after", "prep", "fin"))} <= (
        machine.CALLBACKS
    )


class Trap(runner.Model):
    """Tells which of its attributes were looked up or set."""

    __slots__ = ()
    touched: list[str]

    def __getattribute__(self, name: str) -> Any:
        # The library asks whether a model is a list of models, which asks for its class, whatever the document says.
        if sys._getframe(1).f_code.co_name != "listify":
            Trap.touched.append(name)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        Trap.touched.append(name)
        super().__setattr__(name, value)


@pytest.fixture
def trapped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every attribute of the model and every module that anything reaches for while it runs."""
    Trap.touched = []
    real = builtins.__import__

    def importing(name: str, *rest: Any, **more: Any) -> Any:
        if sys._getframe(1).f_globals["__name__"].startswith("transitions"):
            Trap.touched.append(f"import {name}")
        return real(name, *rest, **more)

    monkeypatch.setattr(runner, "Model", Trap)
    monkeypatch.setattr(builtins, "__import__", importing)
    return Trap.touched


CODE = "antigravity.geohash"  # a module that nothing else imports
UNCHECKED = [
    *(json.loads(with_transition(**{key: CODE})) for key in ("before", "after", "prepare", "conditions", "unless")),
    *(json.loads(changed(**{key: CODE})) for key in ("before_state_change", "prepare_event", "on_exception", "model")),
    *(json.loads(changed(states=["idle", {"name": "paid", key: CODE}])) for key in ("on_enter", "on_exit", "on_final")),
    json.loads(with_transition(conditions=["__class__", "__init__"], unless=["__dict__"])),
    json.loads(with_transition(conditions=[], unless=[], trigger="on_enter_paid")),
]


@pytest.mark.parametrize("document", UNCHECKED)
def test_what_was_never_checked_runs_no_code(document: dict[str, Any], trapped: list[str]) -> None:
    """The second layer alone: these documents would have been refused when they were written."""
    trigger = document["transitions"][0]["trigger"]
    facts = dict.fromkeys(("is_ok", CODE, "__class__", "__init__", "on_enter"), True)
    assert runner.run(document, "idle", trigger, facts) in ("paid", None)
    assert set(trapped) <= {"state"}


names = st.sampled_from(["idle", "paid", "__class__", "os.system", "before", "state", "trigger", "*", "=", "a", "b"])
values = st.recursive(
    names | st.none() | st.integers() | st.booleans(), lambda v: st.lists(v, max_size=2), max_leaves=3
)
steps = st.dictionaries(
    st.sampled_from([*sorted(machine.TRANSITION_KEYS), "before", "after", "prepare", "on_enter"]), values, max_size=6
)
fuzzed = st.dictionaries(
    st.sampled_from([*sorted(machine.MACHINE_KEYS), "before_state_change", "model", "on_final"]),
    values | st.lists(names, max_size=3) | st.lists(steps, max_size=3), max_size=8,
).map(lambda odd: {**MACHINE, **odd})  # fmt: skip
near = st.builds(
    lambda step, conditions, unless: {
        **MACHINE, "transitions": [{**MACHINE["transitions"][0], "conditions": conditions, "unless": unless, **step}]
    },
    steps, st.lists(names, max_size=2), st.lists(names, max_size=2),
)  # fmt: skip


def never_reaches_beyond_the_model(document: dict[str, Any], trigger: str, fact: bool) -> None:
    del Trap.touched[:]
    facts = dict.fromkeys(["is_ok", "a", "b", "__class__", "os.system", "state", "trigger", "before", "idle"], fact)
    try:
        parsed = machine.parse(json.dumps(document))
        assert parsed is not None
        assert runner.fire(parsed, trigger, facts) in parsed.states
    except Fault:
        pass
    assert set(Trap.touched) <= {"state"}


case = given(fuzzed | near, st.sampled_from(["pay", "__class__", "a"]), st.booleans())
quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=200, deadline=None, suppress_health_check=quiet)
@case
def test_fuzzed_procedures_reach_nothing_beyond_the_model(
    trapped: list[str], document: dict[str, Any], trigger: str, fact: bool
) -> None:
    never_reaches_beyond_the_model(document, trigger, fact)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@settings(max_examples=10_000, deadline=None, suppress_health_check=quiet)
@case
def test_thousands_of_fuzzed_procedures_reach_nothing_beyond_the_model(
    trapped: list[str], document: dict[str, Any], trigger: str, fact: bool
) -> None:
    never_reaches_beyond_the_model(document, trigger, fact)
