"""What reaches the terminal or another program: JSON, lines, notes and fields, and how texts are made safe to show."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import typer

from commonplace.cli import MISTAKE
from commonplace.wire.times import iso
from commonplace.wire.words import plural as plural

Document = dict[str, Any]

# Content is whatever agents wrote, ours and others': neither an escape sequence nor a mark that turns the direction of
# writing, and so shows a name or a verdict that is not there, may reach the reader's terminal.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))  # and breaks of lines that are no \n
_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160), *_BIDI) if chr(c) not in "\n\t"}
_ESCAPES = {c: f"\\u{c:04x}" for c in _CONTROLS if c >= 127}  # what JSON itself leaves as it is
_TIMES = ("created_at", "updated_at", "expires_at", "last_recalled_at")
_STYLES = {"bold": "1", "name": "36", "good": "32", "note": "33", "error": "1;31"}


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
    # JSON is UTF-8 wherever programs exchange it; what is only ASCII is that in every encoding.
    escaped = not _is_utf8(sys.stdout)
    _write(json.dumps(document, ensure_ascii=escaped, indent=2 if on_terminal() else None).translate(_ESCAPES))


def raw(text: str) -> None:
    """To the letter, without a line end of our own."""
    _write(text, end="")


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


def ask(question: str) -> bool:
    """Whether a person says yes."""
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def confirm(question: str) -> None:
    """Ends the command unless a person says yes."""
    if not ask(question):
        note("nothing was changed")
        raise typer.Exit(MISTAKE)


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


def _is_utf8(stream: TextIO) -> bool:
    encoding = getattr(stream, "encoding", None)
    return encoding is None or codecs.lookup(encoding).name == "utf-8"


def _write(text: str, end: str = "\n") -> None:
    try:
        print(text, end=end)
    except UnicodeEncodeError:  # a terminal that is not UTF-8, or text that is not quite Unicode
        encoding = sys.stdout.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding), end=end)
