"""A state machine as a picture: Mermaid text, or SVG without any program but this. Pure.

In the SVG states stand in columns by how many steps they are from the start, and what leads on from every state comes
from a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from commonplace.engine.procedures.machine import ANY, StateMachine, Transition
from commonplace.wire.errors import ValidationError

_WIDTH, _HEIGHT = 150, 40
_GAP, _ROW, _MARGIN = 110, 90, 40
_LETTER = 6  # the width of one of a label
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#222}"
    ".label{font-size:11px;fill:#555;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    "rect{fill:#fff;stroke:#555}.current rect{fill:#fff3c4;stroke:#b58900;stroke-width:2}.any rect{stroke-dasharray:4}"
    "path{fill:none;stroke:#777;marker-end:url(#arrow)}"
)


def draw(machine: StateMachine, format: str) -> str:
    if format not in _FORMATS:
        raise ValidationError(f"format must be one of {', '.join(_FORMATS)}, not {format!r:.80}", field="format")
    return _FORMATS[format](machine)


def mermaid(machine: StateMachine) -> str:
    # Under names of our own: a state may be called `end` or `note`, which are words of Mermaid's.
    ids = {state: f"s{i}" for i, state in enumerate(machine.states)} | {ANY: "any"}
    lines = ["stateDiagram-v2", *(f'    state "{state}" as {ids[state]}' for state in machine.states)]
    if any(source == ANY for source, _, _ in _edges(machine)):
        lines.append('    state "any state" as any')
    lines.append(f"    [*] --> {ids[machine.initial]}")
    lines += [f"    {ids[a]} --> {ids[b]} : {_label(transition)}" for a, b, transition in _edges(machine)]
    lines += ["    classDef current font-weight:bold,stroke-width:3px", f"    class {ids[machine.current]} current"]
    return "\n".join(lines) + "\n"


def svg(machine: StateMachine) -> str:
    places = _places(machine)
    parts, labels = [], []
    taken: dict[tuple[str, str], int] = {}
    for source, dest, transition in _edges(machine):
        nth = taken[source, dest] = taken.get((source, dest), -1) + 1
        path, at = _arrow(places[source], places[dest], nth)
        parts.append(f'<path d="{path}"/>')
        labels.append(_text(*at, _label(transition), "label"))
    for state, (x, y) in places.items():
        kind = "any" if state == ANY else "current" if state == machine.current else "state"
        shown = "any state" if state == ANY else state if len(state) <= 20 else f"{state[:19]}…"
        title = f"<title>{escape(state)}</title>"
        box = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>'
        parts.append(f'<g class="{kind}">{title}{box}{_text(x + _WIDTH // 2, y + 25, shown)}</g>')
    width = max(x for x, _ in places.values()) + _WIDTH + 2 * _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + 2 * _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#777;stroke:none;marker-end:none"/></marker>'
    )
    title = f"<title>{escape(machine.name)}: {escape(machine.current)}</title>"
    return (
        "\n".join([head, title, f"<style>{_STYLE}</style>", f"<defs>{arrow}</defs>", *parts, *labels, "</svg>"]) + "\n"
    )


_FORMATS: dict[str, Callable[[StateMachine], str]] = {"svg": svg, "mermaid": mermaid}


def _edges(machine: StateMachine) -> Iterator[tuple[str, str, Transition]]:
    for transition in machine.transitions:
        for source in transition.sources:
            yield source, source if transition.dest is None else transition.dest, transition


def _label(transition: Transition) -> str:
    guards = [*transition.conditions, *(f"not {name}" for name in transition.unless)]
    return transition.trigger + (f" [{', '.join(guards)}]" if guards else "")


def _places(machine: StateMachine) -> dict[str, tuple[int, int]]:
    """Where each state stands: its column is its distance from the start, or from any state where only that leads to
    it; what nothing leads to stands last."""
    onward: dict[str, list[str]] = {}
    for source, dest, _ in _edges(machine):
        onward.setdefault(source, []).append(dest)
    distance = {machine.initial: 0}
    for start in (machine.initial, ANY):
        distance.setdefault(start, 0)
        queue = [start]
        for state in queue:
            for dest in onward.get(state, ()):
                if dest not in distance:
                    distance[dest] = distance[state] + 1
                    queue.append(dest)
    last = max(distance.values()) + 1
    shown = [*machine.states, *([ANY] if ANY in onward else [])]
    longest = max((len(_label(transition)) for transition in machine.transitions), default=0)
    step = _WIDTH + max(_GAP, _LETTER * longest + 30)
    rows: dict[int, int] = {}
    places = {}
    for state in shown:
        column = distance.get(state, last)
        row = rows[column] = rows.get(column, -1) + 1
        places[state] = (_MARGIN + column * step, _MARGIN + row * _ROW)
    return places


def _arrow(start: tuple[int, int], end: tuple[int, int], nth: int) -> tuple[str, tuple[int, int]]:
    """From one box to another, and where its label stands; `nth` of those that join the same two."""
    lift = 18 * nth
    (ax, ay), (bx, by) = start, end
    middle = _HEIGHT // 2
    if start == end:
        x, y = ax + _WIDTH - 30, ay
        path, at = f"M{x} {y}C{x - 10} {y - 35 - lift} {x + 40} {y - 35 - lift} {x + 20} {y}", (x + 10, y - 28 - lift)
    elif bx > ax:
        x, y, tx, ty = ax + _WIDTH, ay + middle, bx, by + middle
        half = (x + tx) // 2
        path, at = f"M{x} {y}C{half} {y - lift} {half} {ty - lift} {tx} {ty}", (half, (y + ty) // 2 - 6 - lift)
    elif bx < ax:
        x, y, tx, ty = ax + _WIDTH // 2, ay + _HEIGHT, bx + _WIDTH // 2, by + _HEIGHT
        low = max(y, ty) + 40 + lift
        path, at = f"M{x} {y}C{x} {low} {tx} {low} {tx} {ty}", ((x + tx) // 2, low + 2)
    else:
        x, y, ty = ax + _WIDTH // 2, (ay + _HEIGHT if by > ay else ay), (by if by > ay else by + _HEIGHT)
        bend = 24 + lift if by > ay else -24 - lift
        path, at = f"M{x} {y}C{x + bend} {y} {x + bend} {ty} {x} {ty}", (x + 2 * bend, (y + ty) // 2)
    return path, at


def _text(x: int, y: int, text: str, kind: str = "name") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
