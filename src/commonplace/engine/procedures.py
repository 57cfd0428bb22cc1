"""Procedures are state machines kept as JSON; this checks one before it is stored. Pure.

A state machine library resolves callback names by importing them, so a stored procedure that named one would run
code when triggered. Only the keys below are allowed, and guards must be bare names.
"""

from __future__ import annotations

import json
from typing import Any

from commonplace.wire.errors import ValidationError

MACHINE_KEYS = frozenset({"name", "initial", "states", "transitions", "current", "metadata"})
TRANSITION_KEYS = frozenset({"trigger", "source", "dest", "conditions", "unless"})
CALLBACKS = frozenset(
    {"before", "after", "prepare", "on_enter", "on_exit", "on_final", "on_exception", "on_timeout",
     "before_state_change", "after_state_change", "prepare_event", "finalize_event", "model", "timeout"}
)  # fmt: skip


def is_machine(content: str) -> bool:
    """Whether it is a state machine and not a how-to in prose."""
    if not content.lstrip().startswith("{"):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def check(content: str) -> None:
    """Refuse a machine that is malformed or could run code; prose how-tos pass untouched."""
    if not content.lstrip().startswith(("{", "[")):
        return
    try:
        machine = json.loads(content)
    except ValueError:
        return
    except RecursionError:
        raise _wrong("content", "is nested too deeply to be a state machine") from None
    if not isinstance(machine, dict):
        raise _wrong("content", "must be a JSON object {name, initial, states, transitions, …} or plain text")
    _keys("content", machine, MACHINE_KEYS)
    states = _states(machine.get("states"))
    for name in ("initial", "current"):
        if name in machine and machine[name] not in states:
            raise _wrong(f"content.{name}", f"must be one of the states {', '.join(states)}, not {machine[name]!r}")
    if not isinstance(machine.get("name", ""), str):
        raise _wrong("content.name", "must be a string")
    if not isinstance(machine.get("metadata", {}), dict):
        raise _wrong("content.metadata", "must be an object")
    transitions = machine.get("transitions", [])
    if not isinstance(transitions, list):
        raise _wrong("content.transitions", "must be a list")
    for i, transition in enumerate(transitions):
        _transition(f"content.transitions[{i}]", transition, states)


def _states(states: Any) -> list[str]:
    if not isinstance(states, list) or not states:
        raise _wrong("content.states", "must be a list of at least one state name")
    for i, state in enumerate(states):
        if isinstance(state, dict):
            _keys(f"content.states[{i}]", state, frozenset({"name"}))
        name = state.get("name") if isinstance(state, dict) else state
        if not isinstance(name, str) or not name:
            raise _wrong(f"content.states[{i}]", "must be a state name")
    return [s["name"] if isinstance(s, dict) else s for s in states]


def _transition(where: str, transition: Any, states: list[str]) -> None:
    if not isinstance(transition, dict):
        raise _wrong(where, "must be an object {trigger, source, dest, conditions?, unless?}")
    _keys(where, transition, TRANSITION_KEYS)
    for name in ("trigger", "source", "dest"):
        if name not in transition:
            raise _wrong(f"{where}.{name}", "is required")
    if not isinstance(transition["trigger"], str) or not transition["trigger"]:
        raise _wrong(f"{where}.trigger", "must be a name")
    sources = transition["source"] if isinstance(transition["source"], list) else [transition["source"]]
    for source in sources:
        if source not in states and source != "*":
            raise _wrong(f"{where}.source", f"names {source!r}, which is not one of the states")
    if transition["dest"] not in states and transition["dest"] not in ("=", None):
        raise _wrong(f"{where}.dest", f"names {transition['dest']!r}, which is not one of the states")
    for name in ("conditions", "unless"):
        guards = transition.get(name, [])
        for guard in guards if isinstance(guards, list) else [guards]:
            if not isinstance(guard, str) or not guard.isidentifier():
                raise _wrong(f"{where}.{name}", f"must be bare names such as is_paid, not {guard!r}")


def _keys(where: str, document: dict[str, Any], allowed: frozenset[str]) -> None:
    for key in document:
        if key in CALLBACKS:
            raise _wrong(f"{where}.{key}", "is a callback, and stored procedures may not name code to run")
        if key not in allowed:
            raise _wrong(f"{where}.{key}", f"is not allowed; only {', '.join(sorted(allowed))} are")


def _wrong(field: str, problem: str) -> ValidationError:
    return ValidationError(f"procedure: {field} {problem}", field=field)
