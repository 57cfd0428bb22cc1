"""What a stored state machine may be: parsed and checked before it is kept. Pure; knows no library that runs one.

A state machine library resolves callback names by importing them, so a stored procedure that named one would run
code when triggered. Only the keys below are allowed, and names are bare. `runner` does not rely on this module: it
takes nothing else from a document either.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_field

MACHINE_KEYS = frozenset({"name", "initial", "states", "transitions", "current", "metadata"})
TRANSITION_KEYS = frozenset({"trigger", "source", "dest", "conditions", "unless"})
CALLBACKS = frozenset(
    {"before", "after", "prepare", "on_enter", "on_exit", "on_final", "on_exception", "on_timeout",
     "before_state_change", "after_state_change", "prepare_event", "finalize_event", "model", "timeout"}
)  # fmt: skip
MAX_STATES, MAX_TRANSITIONS, MAX_NAME = 200, 1_000, 128
ANY, SAME = "*", "="


@dataclass(frozen=True, slots=True)
class Transition:
    trigger: str
    sources: tuple[str, ...]  # ("*",) is every state that has no transition of its own for the trigger
    dest: str | None  # None stays where it is
    conditions: tuple[str, ...]
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateMachine:
    name: str
    states: tuple[str, ...]
    initial: str
    current: str
    transitions: tuple[Transition, ...]
    document: dict[str, Any]  # as it was written

    def moves(self, state: str) -> dict[str, Transition]:
        """The transitions that start there, by their triggers: one that names the state goes before `*`."""
        wild = {t.trigger: t for t in self.transitions if t.sources == (ANY,)}
        return wild | {t.trigger: t for t in self.transitions if state in t.sources}

    def at(self, state: str) -> str:
        """Its content when it stands there. Where it starts is said, too: left out, it would be where it stands now."""
        return json.dumps({**self.document, "initial": self.initial, "current": state}, ensure_ascii=False)


def is_machine(content: str) -> bool:
    """Whether it is a state machine and not a how-to in prose."""
    try:
        return isinstance(_decode(content), dict)
    except ValidationError:
        return False


def check(content: str) -> None:
    """Refuse a machine that is malformed or could run code; prose how-tos pass untouched."""
    parse(content)


def parse(content: str) -> StateMachine | None:
    """The machine that a content is, None for prose; ValidationError, naming the key, for a machine that is wrong."""
    machine = _decode(content)
    if machine is None:
        return None
    if not isinstance(machine, dict):
        raise _wrong("content", "must be a JSON object {name, initial, states, transitions, …} or plain text")
    _keys("content", machine, MACHINE_KEYS)
    check_field(machine, "content", "procedure: content")
    name = _label(machine)
    states = _states(machine.get("states"))
    for key in ("initial", "current"):
        if key in machine and machine[key] not in states:
            shown = ", ".join(states[:20]) + (", …" if len(states) > 20 else "")
            raise _wrong(f"content.{key}", f"must be one of the states {shown}, not {_cut(machine[key])}")
    if not isinstance(machine.get("metadata", {}), dict):
        raise _wrong("content.metadata", "must be an object")
    transitions = machine.get("transitions", [])
    if not isinstance(transitions, list):
        raise _wrong("content.transitions", "must be a list")
    if len(transitions) > MAX_TRANSITIONS:
        raise _wrong("content.transitions", f"must be at most {MAX_TRANSITIONS}, not {len(transitions)}")
    parsed, taken = [], set[tuple[str, str]]()
    for i, document in enumerate(transitions):
        transition = _transition(f"content.transitions[{i}]", document, states)
        for source in transition.sources:
            if (source, transition.trigger) in taken:
                problem = f"is a second {transition.trigger!r} from {source!r}; a trigger leads to one place"
                raise _wrong(f"content.transitions[{i}].trigger", problem)
            taken.add((source, transition.trigger))
        parsed.append(transition)
    initial = machine.get("initial") or machine.get("current") or states[0]
    return StateMachine(name, states, initial, machine.get("current") or initial, tuple(parsed), machine)


def _decode(content: str) -> Any:
    """The JSON document that a content is; None for prose."""
    if not content.lstrip().startswith(("{", "[")):
        return None
    constants: list[str] = []
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(items)
        if len(document) != len(items):
            names = [name for name, _ in items]
            repeated.append(next(name for name in names if names.count(name) > 1))
        return document

    try:
        document = json.loads(content, parse_constant=constants.append, object_pairs_hook=pairs)
    except ValueError:
        return None
    except RecursionError:
        raise _wrong("content", "is nested too deeply to be a state machine") from None
    # Only of what is JSON to its end: prose may well begin with "[NaN]".
    if constants:
        raise _wrong("content", f"holds {constants[0]}, which is not JSON")
    if repeated:  # another reader may take the other one of the two
        raise _wrong("content", f"has the key {_cut(repeated[0])} twice in one object")
    return document


def _label(machine: dict[str, Any]) -> str:
    if "name" not in machine:
        raise _wrong("content.name", "is required")
    name = machine["name"]
    if not isinstance(name, str) or not name.strip():
        raise _wrong("content.name", f"must be a string that is not blank, not {_cut(name)}")
    if len(name) > MAX_NAME:
        raise _wrong("content.name", f"must have at most {MAX_NAME} characters, not {len(name)}")
    return name


def _states(states: Any) -> tuple[str, ...]:
    if not isinstance(states, list) or not states:
        raise _wrong("content.states", "must be a list of at least one state name")
    if len(states) > MAX_STATES:
        raise _wrong("content.states", f"must be at most {MAX_STATES}, not {len(states)}")
    names: dict[str, None] = {}
    for i, state in enumerate(states):
        if isinstance(state, dict):
            _keys(f"content.states[{i}]", state, frozenset({"name"}))
        name = _bare(f"content.states[{i}]", state.get("name") if isinstance(state, dict) else state, "a state name")
        if name in names:
            raise _wrong(f"content.states[{i}]", f"names {name!r} a second time")
        names[name] = None
    return tuple(names)


def _transition(where: str, transition: Any, states: tuple[str, ...]) -> Transition:
    if not isinstance(transition, dict):
        raise _wrong(where, "must be an object {trigger, source, dest, conditions?, unless?}")
    _keys(where, transition, TRANSITION_KEYS)
    for name in ("trigger", "source", "dest"):
        if name not in transition:
            raise _wrong(f"{where}.{name}", "is required")
    trigger = _bare(f"{where}.trigger", transition["trigger"], "a name")
    given, dest = transition["source"], transition["dest"]
    sources = given if isinstance(given, list) else [given]
    if not sources:
        raise _wrong(f"{where}.source", "must name at least one state")
    for source in sources:
        if source not in states and (source != ANY or len(sources) > 1):
            raise _wrong(f"{where}.source", f"names {_cut(source)}, which is not one of the states")
    if dest not in states and dest not in (SAME, None):
        raise _wrong(f"{where}.dest", f"names {_cut(dest)}, which is not one of the states")
    guards = [_guards(f"{where}.{name}", transition.get(name, [])) for name in ("conditions", "unless")]
    return Transition(trigger, tuple(sources), None if dest == SAME else dest, *guards)


def _guards(where: str, guards: Any) -> tuple[str, ...]:
    return tuple(_bare(where, guard, "bare names") for guard in (guards if isinstance(guards, list) else [guards]))


def _bare(where: str, name: Any, what: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise _wrong(where, f"must be {what} such as is_paid, with letters, digits and _ only, not {_cut(name)}")
    if name.startswith("__"):
        raise _wrong(where, f"must not begin with __, not {_cut(name)}")
    if len(name) > MAX_NAME:
        raise _wrong(where, f"must be {what} of at most {MAX_NAME} characters, not {len(name)}")
    return name


def _keys(where: str, document: dict[str, Any], allowed: frozenset[str]) -> None:
    for key in document:
        if key in CALLBACKS:
            raise _wrong(f"{where}.{key}", "is a callback, and stored procedures may not name code to run")
        if key not in allowed:
            raise _wrong(f"{where}.{key[:80]}", f"is not allowed; only {', '.join(sorted(allowed))} are")


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _wrong(field: str, problem: str) -> ValidationError:
    return ValidationError(f"procedure: {field} {problem}", field=field)
