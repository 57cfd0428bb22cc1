"""What reaches the terminal or another program: JSON, lines, notes and tables. Rich is imported only on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import typer

from commonplace.cli import MISTAKE
from commonplace.wire.times import iso
from commonplace.wire.words import plural as plural, shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Document = dict[str, Any]

# Content is whatever agents wrote, ours and others': neither an escape sequence nor a mark that turns the direction of
# writing, and so shows a name or a verdict that is not there, may reach the reader's terminal.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))  # and breaks of lines that are no \n
_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160), *_BIDI) if chr(c) not in "\n\t"}
_ESCAPES = {c: f"\\u{c:04x}" for c in _CONTROLS if c >= 127}  # what JSON itself leaves as it is
_TIMES = ("created_at", "updated_at", "expires_at", "last_recalled_at")
_MAX_CELL_CHARS = 600
_MIN_CELL_CHARS = 6
_MAX_WORD_CHARS = 16  # what is longer is broken before anything else is
_GAP_CHARS = 2  # between two columns
#: An id must stay on one line to be copied, with the comma or semicolon after it.
_ID_WORD = re.compile(r"\S*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[;,]?(?=\s|$)")
_MAX_ID_CHARS = 48
_STYLES = {"bold": "1", "name": "36", "good": "32", "note": "33", "error": "1;31"}
_WORDS = {"ok": "green", "yes": "green", "approved": "green", "damaged": "red", "failed": "red", "rejected": "red"}


def on_terminal() -> bool:
    """Whether a person looks at stdout; anything else gets plain lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """In colour where a person looks at the stream (stdout unless said otherwise) and has not asked for none."""
    stream = stream or sys.stdout
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def emit(document: Any) -> None:
    """One JSON document on stdout: on one line for programs, indented for people."""
    _write(json.dumps(document, ensure_ascii=False, indent=2 if on_terminal() else None).translate(_ESCAPES))


def line(text: str = "") -> None:
    _write(visible(text))


def row(cells: Iterable[Any]) -> None:
    """One record on one line, its fields tab-separated."""
    _write("\t".join(flat(cell) for cell in cells))


def note(text: str, mark: str = "") -> None:
    """Something worth knowing that is not the answer, on stderr."""
    sys.stdout.flush()  # so that the two streams, read together, keep their order
    print(f"{styled(mark, 'note', sys.stderr) if mark else ''}{visible(text)}", file=sys.stderr)


def remarks(notes: Iterable[str | None]) -> None:
    """Each thing worth knowing once, on stderr."""
    for text in dict.fromkeys(text for text in notes if text):
        note(text, "note: ")


def heading(text: str) -> None:
    """Bold on a terminal."""
    _write(styled(visible(text), "bold"))


def confirm(question: str) -> None:
    """Ends the command unless a person says yes."""
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("nothing was changed")
        raise typer.Exit(MISTAKE)


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


def print_fields(fields: Mapping[str, Any]) -> None:
    """Names and values, one under the other; what is empty is left out."""
    kept = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    width = max(map(len, kept), default=0)
    for name, value in kept.items():
        _write(f"{styled(visible(f'{name:<{width}}'), 'name')}  {visible(str(value))}")


def print_record(record: Document) -> None:
    """One memory in full: its content, then everything known about it."""
    line(body(record))
    line()
    known = {
        name: moment(value) if name in _TIMES else text_of(value)
        for name, value in flattened(record).items()
        if name != "content"
    }
    print_fields(known)


def flattened(record: Document) -> Document:
    """The record with each field of its metadata beside its own fields."""
    own = {name: value for name, value in record.items() if name != "metadata"}
    return own | {f"metadata.{name}": value for name, value in (record.get("metadata") or {}).items()}


def body(record: Document) -> str:
    """Its text, which a memory that nobody can read any more is shown without; of a statement what it says."""
    if "predicate" in record:
        return sentence(record)
    return text_of(record["content"]) if "content" in record else f"({record.get('status', 'gone')})"


def waiting(review_id: str | None, approval_url: str | None = None) -> str:
    """What is said of a change that was staged."""
    page = f", or {approval_url}" if approval_url else ""
    return f"waits for approval: commonplace review show {review_id}{page}"


def store_problems(answer: Document) -> list[str]:
    """What is said of stores that did not do their part."""
    return [f"{each['store']}: {each['error']}" for each in answer.get("errors") or ()]


def sentence(triple: Document) -> str:
    return f"{triple['subject']} {triple['predicate']} {triple['object']}"


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def visible(text: str) -> str:
    return text.translate(_CONTROLS)


def label(name: str) -> str:
    """A name among others on one line, which none of its characters may end."""
    return visible(name).replace("\n", "\ufffd").replace("\t", "\ufffd")


def indented(text: str, indent: str) -> str:
    """What someone else wrote, so that none of its lines can pass for one of ours."""
    return visible(text).replace("\n", f"\n{indent}")


def flat(value: Any) -> str:
    """On one line."""
    return " ".join(visible(str(value)).split())


def moment(ms: int | None) -> str:
    """UTC, to the millisecond, in the form that --as-of takes."""
    return "" if ms is None else iso(ms)


def minute(ms: int | None) -> str:
    """The same, as short as a table wants it."""
    return moment(ms).replace("T", " ")[:16]


def size(count: int) -> str:
    amount, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


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


def _write(text: str) -> None:
    try:
        print(text)
    except UnicodeEncodeError:  # a terminal that is not UTF-8, or text that is not quite Unicode
        encoding = sys.stdout.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding))
