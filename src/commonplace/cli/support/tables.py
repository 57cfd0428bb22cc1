"""Tables: laid out for the width of a terminal, tab-separated elsewhere. Rich is imported only on a terminal."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.cli.support.output import (
    Document,
    body,
    flat,
    line,
    minute,
    moment,
    note,
    on_terminal,
    print_fields,
    row,
    visible,
)
from commonplace.wire.words import shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MAX_CELL_CHARS = 600
_MIN_CELL_CHARS = 6
_MAX_WORD_CHARS = 16  # what is longer is broken before anything else is
_GAP_CHARS = 2  # between two columns
#: An id must stay on one line to be copied, with the comma or semicolon after it.
_ID_WORD = re.compile(r"\S*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[;,]?(?=\s|$)")
_MAX_ID_CHARS = 48
_WORDS = {"ok": "green", "yes": "green", "approved": "green", "damaged": "red", "failed": "red", "rejected": "red"}


@dataclass(slots=True)
class Table:
    """A table on a terminal; anywhere else a line per row, its cells tab-separated.

    A cell that is a pair is a text with its id under it, or after its id. `piped` are other rows for programs.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    piped: Iterable[Sequence[Any]] | None = None
    empty: str | None = None  # what to say of no rows
    more: str | None = None  # what to say of rows that are not in it

    def print(self) -> None:
        rows = self.rows
        if not rows:
            if self.empty is not None:
                note(self.empty)
        elif on_terminal():
            self._print_rich(rows)
        else:
            for cells in rows if self.piped is None else self.piped:
                row(part for cell in cells for part in (reversed(cell) if isinstance(cell, tuple) else (cell,)))
        if self.more is not None:
            note(self.more)

    def _print_rich(self, rows: Sequence[Sequence[Any]]) -> None:
        from rich import box
        from rich.cells import cell_len
        from rich.table import Table

        console = _console()
        cells = [[_cell(value) for value in values] for values in rows]
        columns = list(zip(*rows, strict=True))
        wanted = [
            max(len(header), *(max(map(cell_len, cell.plain.split("\n"))) for cell in column))
            for header, column in zip(self.headers, zip(*cells, strict=True), strict=True)
        ]
        # What a column cannot do without: its ids whole; its words, too, or if need be a few characters of them.
        ids = [max(map(_id_width, column)) for column in columns]
        words = [width or max(map(_word_width, column)) for width, column in zip(ids, columns, strict=True)]
        room = console.width - _GAP_CHARS * (len(wanted) - 1)
        widths = column_widths(words, wanted, room)
        widths = widths or column_widths([width or _MIN_CELL_CHARS for width in ids], wanted, room)
        if widths is None:
            self._print_blocks(rows, console.width)
            return
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
        for header, width, column in zip(self.headers, widths, columns, strict=True):
            numeric = all(isinstance(value, (int, float)) for value in column)
            table.add_column(header, justify="right" if numeric else "left", overflow="fold", width=width)
        for row_cells in cells:
            table.add_row(*row_cells)
        console.print(table)

    def _print_blocks(self, rows: Sequence[Sequence[Any]], width: int) -> None:
        """Each row as names and values: the ids of a row are wider than the terminal, and cut ones are of no use."""
        for number, values in enumerate(rows):
            if number:
                line()
            fields: dict[str, Any] = {}
            for header, value in zip(self.headers, values, strict=True):
                fields |= {header: value[0], "id": value[1]} if isinstance(value, tuple) else {header: value}
            indent = max(map(len, fields)) + 2
            print_fields({name: _wrapped(flat(value), width - indent, indent) for name, value in fields.items()})


def column_widths(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int] | None:
    """How wide each column is: as it wants to be, or what there is room for, shared out; None if not even the least."""
    widths = [min(pair) for pair in zip(least, wanted, strict=True)]
    left = room - sum(widths)
    if left < 0:
        return None
    while left and (short := [place for place, width in enumerate(widths) if width < wanted[place]]):
        narrowest = min(short, key=lambda place: widths[place])
        widths[narrowest] += 1
        left -= 1
    return widths


def memories_table(memories: Sequence[Document], empty: str | None = None, more: str | None = None) -> Table:
    return Table(
        ["memory", "type", "tags", "written"],
        [[(body(m), m["id"]), _kind(m), ", ".join(_tags(m)), minute(m["created_at"])] for m in memories],
        ([m["id"], moment(m["created_at"]), m["type"], ",".join(_tags(m)), body(m)] for m in memories),
        empty,
        more,
    )


def _console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def _id_width(value: Any) -> int:
    """How wide the longest id in a cell is; 0 where there is none."""
    found = (len(word) for part in _parts(value) for word in _ID_WORD.findall(str(part)))
    return min(max(found, default=0), _MAX_ID_CHARS)


def _wrapped(text: str, width: int, indent: int) -> str:
    """Over several lines, the further ones indented; no word is broken, so that no id is."""
    lines = textwrap.wrap(text, max(width, _MIN_CELL_CHARS), break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def _word_width(value: Any) -> int:
    words = (len(word) for part in _parts(value) for word in str(part).split())
    return min(max(words, default=0), _MAX_WORD_CHARS)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _cell(value: Any) -> Text:
    from rich.text import Text

    if isinstance(value, tuple):
        return Text.assemble(_cut(value[0]), "\n", (visible(value[1]), "dim"))
    if isinstance(value, float):
        return Text(f"{value:.4f}", "cyan")
    text = f"{value:,}" if isinstance(value, int) else _cut(str(value))
    return Text(text, _WORDS.get(text, ""))


def _tags(memory: Document) -> list[str]:
    found = (memory.get("metadata") or {}).get("tags")
    return [str(tag) for tag in found] if isinstance(found, list) else []


def _kind(memory: Document) -> str:
    return f"{memory['type']} (archived)" if memory.get("status") == "archived" else str(memory["type"])


def _cut(text: str) -> str:
    return shorten(visible(text).strip(), _MAX_CELL_CHARS)
