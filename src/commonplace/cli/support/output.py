"""Writing to the terminal or to another program, without anything heavy: JSON, plain lines, notes."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

# Content is whatever agents wrote: an escape sequence in it must not reach the reader's terminal.
_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if chr(c) not in "\n\t"}


def fancy() -> bool:
    """Whether a person looks at stdout; anything else gets plain lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def emit(document: Any) -> None:
    """One JSON document on stdout: on one line for programs, indented for people."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if fancy() else None)
    _write(text)


def line(text: str = "") -> None:
    _write(visible(text))


def note(text: str) -> None:
    """Something worth knowing that is not the answer, on stderr."""
    sys.stdout.flush()  # so that the two streams, read together, keep their order
    print(visible(text), file=sys.stderr)


def row(cells: list[Any]) -> None:
    """One record on one line, its fields parted by tabs."""
    _write("\t".join(flat(cell) for cell in cells))


def visible(text: str) -> str:
    return text.translate(_CONTROLS)


def flat(value: Any) -> str:
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


def plural(count: int, thing: str) -> str:
    many = thing[:-1] + "ies" if thing.endswith("y") else f"{thing}s"
    return f"{count:,} {thing if count == 1 else many}"


def _write(text: str) -> None:
    try:
        print(text)
    except UnicodeEncodeError:  # a terminal that is not UTF-8, or text that is not quite Unicode
        encoding = sys.stdout.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding))
