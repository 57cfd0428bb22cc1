"""Tables for people. Imported only when stdout is a terminal: rich takes longer to load than a recall."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from commonplace.cli.support.output import visible

_LONGEST = 600
_ID = 36  # characters, which must stay on one line to be copied


def console() -> Console:
    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def show(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Numbers stand at the right; a pair is a text with its id under it."""
    rows = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for place, header in enumerate(headers):
        numeric = bool(rows) and all(isinstance(row[place], (int, float)) for row in rows)
        with_id = any(isinstance(row[place], tuple) for row in rows)
        table.add_column(
            header, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric,
            min_width=_ID if with_id else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    console().print(table)


def _cell(value: Any) -> Text:
    if isinstance(value, tuple):  # what it says, and under it the id, whole, to be copied
        top, under = value
        return Text.assemble(_cut(top), "\n", (visible(under), "dim"))
    if isinstance(value, float):
        return Text(f"{value:.4f}")
    return Text(f"{value:,}" if isinstance(value, int) else _cut(str(value)))


def _cut(text: str) -> str:
    text = visible(text).strip()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
