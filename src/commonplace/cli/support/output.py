"""What reaches the terminal or another program: JSON, lines, notes and tables. Rich is imported only on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from commonplace.cli import MISTAKE
from commonplace.wire.words import plural as plural, shorten

if TYPE_CHECKING:
    from rich.console import Console

Document = dict[str, Any]

# Content is whatever agents wrote, ours and others': neither an escape sequence nor a mark that turns the direction of
# writing, and so shows a name or a verdict that is not there, may reach the reader's terminal.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))  # and breaks of lines that are no \n
_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160), *_BIDI) if chr(c) not in "\n\t"}
_ESCAPES = {c: f"\\u{c:04x}" for c in _CONTROLS if c >= 127}  # what JSON itself leaves as it is
_TIMES = ("created_at", "updated_at", "expires_at", "last_recalled_at")
_MAX_CELL_CHARS = 600
#: An id must stay on one line to be copied, with the comma or semicolon after it.
_ID_WORD = re.compile(r"\S*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[;,]?(?=\s|$)")
_MAX_ID_WIDTH = 48
_WIDE_TERMINAL = 120  # columns, from which on there is room for ids beside all else


def on_terminal() -> bool:
    """Whether a person looks at stdout; anything else gets plain lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def emit(document: Any) -> None:
    """One JSON document on stdout: on one line for programs, indented for people."""
    _write(json.dumps(document, ensure_ascii=False, indent=2 if on_terminal() else None).translate(_ESCAPES))


def line(text: str = "") -> None:
    _write(visible(text))


def row(cells: Iterable[Any]) -> None:
    """One record on one line, its fields tab-separated."""
    _write("\t".join(flat(cell) for cell in cells))


def note(text: str) -> None:
    """Something worth knowing that is not the answer, on stderr."""
    sys.stdout.flush()  # so that the two streams, read together, keep their order
    print(visible(text), file=sys.stderr)


def remarks(notes: Iterable[str | None]) -> None:
    """Each thing worth knowing once, on stderr."""
    for text in dict.fromkeys(text for text in notes if text):
        note(f"note: {text}")


def heading(text: str) -> None:
    """Bold on a terminal."""
    if on_terminal():
        _console().print(visible(text), style="bold")
    else:
        line(text)


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
    rows: Iterable[Sequence[Any]]
    piped: Iterable[Sequence[Any]] | None = None
    empty: str | None = None  # what to say of no rows
    more: str | None = None  # what to say of rows that are not in it

    def print(self) -> None:
        rows = list(self.rows)
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

    def _print_rich(self, rows: list[Sequence[Any]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        def cell(value: Any) -> Text:
            if isinstance(value, tuple):
                return Text.assemble(_cut(value[0]), "\n", (visible(value[1]), "dim"))
            if isinstance(value, float):
                return Text(f"{value:.4f}")
            return Text(f"{value:,}" if isinstance(value, int) else _cut(str(value)))

        console = _console()
        narrow = console.width < _WIDE_TERMINAL
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for header, *column in zip(self.headers, *rows, strict=True):
            numeric = all(isinstance(value, (int, float)) for value in column)
            least = max((_id_width(value) for value in column), default=0) or None
            justify: Any = "right" if numeric else "left"
            # In little room Rich shrinks every column below its least width, but not one whose width is fixed.
            room: Any = {"width": least} if least and narrow else {"min_width": least}
            table.add_column(header, justify=justify, overflow="fold", no_wrap=numeric, **room)
        for values in rows:
            table.add_row(*(cell(value) for value in values))
        console.print(table)


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
        line(f"{name:<{width}}  {value}")


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
    if ms is None:
        return ""
    try:
        then = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return then.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


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


def _tags(memory: Document) -> list[str]:
    found = (memory.get("metadata") or {}).get("tags")
    return [str(tag) for tag in found] if isinstance(found, list) else []


def _kind(memory: Document) -> str:
    return f"{memory['type']} (archived)" if memory.get("status") == "archived" else str(memory["type"])


def _id_width(value: Any) -> int:
    """How wide the longest id in a cell is; 0 where there is none."""
    text = value[1] if isinstance(value, tuple) else value if isinstance(value, str) else ""
    return min(max((len(word) for word in _ID_WORD.findall(text)), default=0), _MAX_ID_WIDTH)


def _cut(text: str) -> str:
    return shorten(visible(text).strip(), _MAX_CELL_CHARS)


def _write(text: str) -> None:
    try:
        print(text)
    except UnicodeEncodeError:  # a terminal that is not UTF-8, or text that is not quite Unicode
        encoding = sys.stdout.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding))
