"""Firing a trigger, on the `transitions` package, which looks up callbacks by importing what a document names.

The second of two layers: `machine` refuses such a document when it is written, and what is built here would be harmless
if it had not. Of a document only the keys below are taken; guards become functions of the given facts, so that no name
is ever looked up; and the model is a thing with a state and nothing else. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from commonplace.engine.procedures.machine import ANY, SAME, StateMachine
from commonplace.wire.errors import Conflict, ValidationError

Facts = Mapping[str, bool]


class Model:
    """What `transitions` moves. It is never handed to `Machine.add_model`, which would add methods to it."""

    __slots__ = ("state",)
    state: str


def fire(machine: StateMachine, trigger: str, facts: Facts) -> str:
    """The state that a trigger leads to; a fault that says why it leads nowhere."""
    move = machine.moves(machine.current).get(trigger)
    if move is None:
        possible = sorted(machine.moves(machine.current))
        known = any(trigger == t.trigger for t in machine.transitions)
        why = (
            f"{trigger!r:.140} is not possible in the state {machine.current}"
            if known
            else f"there is no trigger {trigger!r:.140}"
        )
        hint = f"possible are {', '.join(possible)}" if possible else "nothing leads on from here"
        raise Conflict(f"{why} of {machine.name!r}; {hint}", state=machine.current, possible=possible)
    for name in (*move.conditions, *move.unless):
        if name not in facts:
            raise ValidationError(f"facts.{name} is required: {trigger} depends on it", field=f"facts.{name}")
        if not isinstance(facts[name], bool):
            raise ValidationError(f"facts.{name} must be true or false, not {facts[name]!r:.80}", field=f"facts.{name}")
    reached = run(machine.document, machine.current, trigger, facts)
    if reached is None:
        failed = [name for name in move.conditions if not facts[name]] + [name for name in move.unless if facts[name]]
        raise Conflict(
            f"{trigger} of {machine.name!r} is held back by {', '.join(failed)}",
            state=machine.current,
            possible=sorted(machine.moves(machine.current)),
            guards=failed,
        )
    return reached


def run(document: Mapping[str, Any], state: str, trigger: str, facts: Facts) -> str | None:
    """The state that `transitions` reaches from there, None where a guard says no."""
    from transitions import Machine, MachineError  # not at start-up: few processes ever fire

    class ClosedMachine(Machine):
        @staticmethod
        def resolve_callable(func: Any, event_data: Any) -> Callable[..., bool]:
            return func if isinstance(func, _Guard) else _refuse(func)

    closed = ClosedMachine(
        model=None,
        states=_names(document),
        initial=None,
        transitions=_rows(document, state),
        auto_transitions=False,
        send_event=True,
    )
    model = Model()
    closed.set_state(state, model)
    try:
        moved = closed.events[trigger].trigger(model, facts=facts)
    except (KeyError, MachineError):
        raise Conflict(f"{trigger!r:.140} is not possible in the state {state}", state=state) from None
    return model.state if moved else None


class _Guard:
    """Whether a fact holds, as a function of the event that `transitions` makes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, event: Any) -> bool:
        return event.kwargs["facts"].get(self._name) is True


def _refuse(func: Any) -> NoReturn:
    raise ValidationError(f"procedure: {func!r:.80} is no guard, and stored procedures may not name code to run")


def _names(document: Mapping[str, Any]) -> list[str]:
    """The names of the states without anything else that was said of them."""
    return [str(state["name"] if isinstance(state, dict) else state) for state in document["states"]]


def _rows(document: Mapping[str, Any], state: str) -> list[dict[str, Any]]:
    """The transitions from a state, one for each trigger: what names it goes before `*`, even where a guard says no."""
    rows: dict[str, dict[str, Any]] = {}
    for transition in sorted(document.get("transitions", []), key=lambda t: t["source"] == ANY):
        source, dest, trigger = transition["source"], transition["dest"], str(transition["trigger"])
        if source in (ANY, state) or (isinstance(source, list) and state in source):
            row: dict[str, Any] = {
                "trigger": trigger,
                "source": state,
                "dest": None if dest in (SAME, None) else str(dest),
            }
            row |= {key: _guards(transition.get(key, [])) for key in ("conditions", "unless")}
            rows.setdefault(trigger, row)
    return list(rows.values())


def _guards(names: Any) -> list[_Guard]:
    return [_Guard(str(name)) for name in (names if isinstance(names, list) else [names])]
