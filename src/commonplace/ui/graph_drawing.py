"""A part of the graph as a picture: the thing that is looked at in the middle, what it is tied to around it. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from commonplace.engine import Triple

_CHARS = 20  # of a name that are drawn
_CHAR_WIDTH, _HEIGHT = 7.4, 28
_RINGS = (0.0, 230.0, 430.0)
_SQUASH = 0.72  # a screen is wider than high


@dataclass(slots=True)
class Node:
    name: str
    ring: int
    x: float = 0.0
    y: float = 0.0

    @property
    def label(self) -> str:
        return self.name if len(self.name) <= _CHARS else f"{self.name[: _CHARS - 1]}…"

    @property
    def width(self) -> float:
        return max(len(self.label) * _CHAR_WIDTH + 18, 40)

    @property
    def height(self) -> float:
        return _HEIGHT


@dataclass(slots=True)
class Edge:
    """From the subject to the object, ending where the boxes begin."""

    x1: float
    y1: float
    x2: float
    y2: float
    label: str

    @property
    def middle(self) -> tuple[float, float]:
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2 - 4


@dataclass(slots=True)
class Drawing:
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    view: str = "0 0 1 1"


def draw(centre: str, triples: Sequence[Triple]) -> Drawing:
    """Each name once, at the ring of its distance; one line for each statement."""
    ties: dict[str, list[str]] = {}
    for triple in triples:
        ties.setdefault(triple.subject, []).append(triple.object)
        ties.setdefault(triple.object, []).append(triple.subject)
    nodes = {centre: Node(centre, 0)}
    children: dict[str, list[str]] = {}
    reached = [centre]
    for name in reached:
        if nodes[name].ring == len(_RINGS) - 1:
            continue
        for other in dict.fromkeys(ties.get(name, ())):
            if other not in nodes:
                nodes[other] = Node(other, nodes[name].ring + 1)
                children.setdefault(name, []).append(other)
                reached.append(other)
    _place(nodes, children, centre)
    edges = [_edge(nodes[t.subject], nodes[t.object], t.predicate) for t in triples
             if t.subject in nodes and t.object in nodes and t.subject != t.object]  # fmt: skip
    return Drawing(list(nodes.values()), edges, _view(nodes.values()))


def _place(nodes: dict[str, Node], children: dict[str, list[str]], centre: str) -> None:
    """Around the middle; each takes as much of the circle as there is behind it."""
    inner = children.get(centre, [])
    weights = [1 + 0.6 * len(children.get(name, ())) for name in inner]
    total, angle = sum(weights) or 1.0, -math.pi / 2
    for name, weight in zip(inner, weights, strict=True):
        span = 2 * math.pi * weight / total
        _at(nodes[name], angle + span / 2)
        outer = children.get(name, [])
        for i, other in enumerate(outer):
            _at(nodes[other], angle + span * (i + 1) / (len(outer) + 1))
        angle += span


def _at(node: Node, angle: float) -> None:
    radius = _RINGS[node.ring]
    node.x, node.y = radius * math.cos(angle), radius * math.sin(angle) * _SQUASH


def _edge(start: Node, end: Node, label: str) -> Edge:
    (x1, y1), (x2, y2) = _border(start, end), _border(end, start)
    return Edge(x1, y1, x2, y2, label if len(label) <= _CHARS else f"{label[: _CHARS - 1]}…")


def _border(node: Node, towards: Node) -> tuple[float, float]:
    """Where a line to another leaves a node's box."""
    dx, dy = towards.x - node.x, towards.y - node.y
    if dx == 0 and dy == 0:
        return node.x, node.y
    scale = min((node.width / 2 + 3) / abs(dx) if dx else math.inf, (node.height / 2 + 3) / abs(dy) if dy else math.inf)
    return node.x + dx * min(scale, 0.5), node.y + dy * min(scale, 0.5)


def _view(placed: Collection[Node]) -> str:
    left = min(n.x - n.width / 2 for n in placed) - 12
    right = max(n.x + n.width / 2 for n in placed) + 12
    top, bottom = min(n.y for n in placed) - _HEIGHT, max(n.y for n in placed) + _HEIGHT
    return f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"
