"""Leak against the size of the corpus, as SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bench.adversarial.experiment import SIZES, Outcome

_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 40, 520, 240
#: (label, fusion, quorum, checked, colour)
_LINES = (
    ("max, unchecked", "max", 1, False, "#b3261e"),
    ("weighted, unchecked", "weighted", 1, False, "#b36b00"),
    ("rrf, unchecked", "rrf", 1, False, "#6750a4"),
    ("rrf, quorum 2, unchecked", "rrf", 2, False, "#3a7ca5"),
    ("rrf, checked (recommended)", "rrf", 1, True, "#1b7f3b"),
)


def plot(outcomes: Sequence[Outcome]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {_TOP + _HEIGHT + 170}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">1 rogue of 3 stores, unknown ids on top: share of answers that '
        "are the attacker's</text>",
    ]
    for tick in range(0, 11, 2):
        y = _y(tick / 10)
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tick / 10:.1f}</text>')
    for place, size in enumerate(SIZES):
        parts.append(f'<text x="{_x(place)}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 36}" text-anchor="middle">memories</text>')
    for number, (label, fusion, quorum, checked, colour) in enumerate(_LINES):
        found = {o.setting.size: o.leak for o in outcomes if _fits(o, fusion, quorum, checked)}
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
