"""Small plots as plain SVG, so that drawing needs nothing installed and a change of figures is a change of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#0b5fff", "#4f8cff", "#93b8ff", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#2e4057", "#a0522d")
_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 190, 40, 44
_APART = 15  # between the names at the right

Series = Mapping[str, Sequence[tuple[float, float]]]


def lines(heading: str, unit: str, series: Series) -> str:
    """Both axes are logarithmic; names stand where their lines end."""
    held = {name: points for name, points in series.items() if points}
    xs = [x for points in held.values() for x, _ in points]
    ys = [y for points in held.values() for _, y in points]
    if not xs:
        return _whole(heading, ['<text x="64" y="80">nothing was measured</text>'])
    low, high = _decades(ys)
    left, right = math.log10(min(xs)), math.log10(max(xs))

    def across(x: float) -> float:
        share = (math.log10(x) - left) / (right - left) if right > left else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return _HEIGHT - _BOTTOM - (math.log10(y) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    drawn = []
    for power in range(low, high + 1):
        y = up(10**power)
        drawn.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:,g} {escape(unit)}</text>')
    for x in sorted(set(xs)):
        drawn.append(f'<text x="{across(x):.1f}" y="{_HEIGHT - 20}" text-anchor="middle">{x:,.0f}</text>')
    beside = _WIDTH - _RIGHT + 22
    places = spread({name: up(points[-1][1]) for name, points in held.items()})
    for colour, (name, points) in zip(COLOURS, held.items(), strict=False):
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        end, place = f"{across(points[-1][0]) + 5:.1f} {up(points[-1][1]):.1f}", places[name]
        drawn.append(f'<path d="M{end}L{beside - 4} {place:.1f}" stroke="{colour}" stroke-width=".6"/>')
        drawn.append(f'<text x="{beside}" y="{place + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return _whole(heading, drawn)


def bars(heading: str, rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> str:
    """Shares from 0 to 1, one bar for each name in every row."""
    drawn, high = [], 14
    gap = high * len(names) + 12
    for place, (row, values) in enumerate(rows.items()):
        top = _TOP + place * gap
        middle = top + high * len(names) / 2 + 4
        drawn.append(f'<text x="{_RIGHT}" y="{middle:.1f}" text-anchor="end">{escape(row)}</text>')
        for which, value in enumerate(values):
            y, width = top + which * high, max(value, 0.0) * (_WIDTH - _RIGHT - 70)
            drawn.append(_box(_RIGHT + 8, y, width, high - 2, which))
            drawn.append(f'<text x="{_RIGHT + 14 + width:.1f}" y="{y + 10}" font-size="10">{value:.2f}</text>')
    end = _TOP + len(rows) * gap + 10
    for which, name in enumerate(names):
        drawn.append(_box(_RIGHT + 8 + which * 260, end, 10, 10, which))
        drawn.append(f'<text x="{_RIGHT + 24 + which * 260}" y="{end + 9}">{escape(name)}</text>')
    return _whole(heading, drawn, end + 24)


def _box(x: float, y: float, width: float, height: float, which: int) -> str:
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{COLOURS[which * 3]}"/>'


def spread(wanted: Mapping[str, float], apart: float = _APART) -> dict[str, float]:
    """Near where they should be, none upon another."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, y in sorted(wanted.items(), key=lambda pair: pair[1]):
        last = placed[name] = max(y, last + apart)
    over = last - (_HEIGHT - _BOTTOM)
    return {name: y - over for name, y in placed.items()} if over > 0 else placed


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _whole(heading: str, drawn: Sequence[str], height: int = _HEIGHT) -> str:
    view = f'viewBox="0 0 {_WIDTH} {height}" font-family="system-ui,sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view}>'
    back = f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    said = f'<text x="{_LEFT}" y="22" font-size="15" font-weight="600">{escape(heading)}</text>'
    return "\n".join((head, back, said, *drawn, "</svg>")) + "\n"
