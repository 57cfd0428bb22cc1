"""Two texts side by side: which words went, which came. Pure, and bounded for texts of any length."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
#: Comparing takes up to the square of this many pieces; a longer text is compared by lines, then not at all.
_MOST_PIECES = 3000


class Run(NamedTuple):
    """A stretch of one side: the same on both, or on this side alone."""

    text: str
    changed: bool


def side_by_side(before: str, after: str) -> tuple[list[Run], list[Run]]:
    """Both texts as runs; joined, the runs of a side are its text."""
    if before == after:
        same = [Run(before, False)]
        return same, same
    old, new = _pieces(before, after)
    if not old or not new:
        return [Run(before, True)] if before else [], [Run(after, True)] if after else []
    left: list[Run] = []
    right: list[Run] = []
    for kind, i, j, k, l in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():  # noqa: E741
        changed = kind != "equal"
        _add(left, "".join(old[i:j]), changed)
        _add(right, "".join(new[k:l]), changed)
    return left, right


def _pieces(before: str, after: str) -> tuple[list[str], list[str]]:
    for cut in (_WORD.findall, lambda text: text.splitlines(keepends=True)):
        old, new = cut(before), cut(after)
        if len(old) + len(new) <= _MOST_PIECES:
            return old, new
    return [], []


def _add(side: list[Run], text: str, changed: bool) -> None:
    if not text:
        return
    # A space between two changed words reads as one change.
    if side and side[-1].changed == changed:
        side[-1] = Run(side[-1].text + text, changed)
    elif len(side) > 1 and changed and side[-2].changed and side[-1].text.isspace():
        space = side.pop()
        side[-1] = Run(side[-1].text + space.text + text, True)
    else:
        side.append(Run(text, changed))
