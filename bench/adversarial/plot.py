"""Figures against the size of the corpus, as SVG. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.adversarial.experiment import SIZES, Outcome
from bench.adversarial.router import RouterOutcome

_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 40, 520, 240
#: (label, fusion, quorum, checked)
_LINES = (
    ("max, unchecked", "max", 1, False),
    ("weighted, unchecked", "weighted", 1, False),
    ("rrf, unchecked", "rrf", 1, False),
    ("rrf, quorum 2, unchecked", "rrf", 2, False),
    ("rrf, checked (the router)", "rrf", 1, True),
)
#: (label, routing, fusion, quorum)
_ROUTER_LINES = (
    ("fan_out, max", "fan_out", "max", 1),
    ("fan_out, weighted", "fan_out", "weighted", 1),
    ("fan_out, rrf", "fan_out", "rrf", 1),
    ("fan_out, rrf, quorum 2", "fan_out", "rrf", 2),
    ("rerank (recommended)", "rerank", "rrf", 1),
)
_COLOURS = ("#b3261e", "#b36b00", "#6750a4", "#3a7ca5", "#1b7f3b")


def plot(outcomes: Sequence[Outcome]) -> str:
    """Leak of each way to fuse lists."""
    lines = {
        label: {o.setting.size: o.leak for o in outcomes if _fits(o, fusion, quorum, checked)}
        for label, fusion, quorum, checked in _LINES
    }
    return _chart("1 rogue of 3 stores, unknown ids on top: share of answers that are the attacker's", lines)


def plot_router(outcomes: Sequence[RouterOutcome]) -> str:
    """What is left of the answers where a rogue names what stands next to them."""
    lines = {
        label: {
            o.setting.size: o.recall
            for o in outcomes
            if (o.setting.routing, o.setting.fusion, o.setting.quorum) == (routing, fusion, quorum)
            and (o.setting.rogues, o.setting.attack) == (1, "next best")
        }
        for label, routing, fusion, quorum in _ROUTER_LINES
    }
    return _chart("The router, 1 rogue of 3 stores that names what is next best: recall@5", lines)


def _chart(title: str, lines: Mapping[str, Mapping[int, float]]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {_TOP + _HEIGHT + 170}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{title}</text>',
    ]
    for tick in range(0, 11, 2):
        y = _y(tick / 10)
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tick / 10:.1f}</text>')
    for place, size in enumerate(SIZES):
        parts.append(f'<text x="{_x(place)}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 36}" text-anchor="middle">memories</text>')
    for number, ((label, found), colour) in enumerate(zip(lines.items(), _COLOURS, strict=True)):
        points = " ".join(f"{_x(place)},{_y(found[size])}" for place, size in enumerate(SIZES))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = _TOP + _HEIGHT + 60 + 20 * number
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + 30}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 38}" y="{y + 4}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _fits(outcome: Outcome, fusion: str, quorum: int, checked: bool) -> bool:
    s = outcome.setting
    plain = s.rogues == 1 and s.attack == "unknown ids"
    return plain and (s.fusion, s.quorum, s.checked) == (fusion, quorum, checked)


def _x(place: int) -> float:
    return round(_LEFT + _WIDTH * place / (len(SIZES) - 1), 1)


def _y(value: float) -> float:
    return round(_TOP + _HEIGHT * (1 - value), 1)
