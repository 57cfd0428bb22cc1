"""What people type, turned into what the wire carries. Pure, but for reading files and stdin."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from commonplace.wire.errors import PayloadTooLarge, ValidationError
from commonplace.wire.filters import TIME_COLUMNS
from commonplace.wire.record import MAX_CONTENT_CHARS, system_clock
from commonplace.wire.strict_json import refuse_constant

#: What a server takes in one request.
MAX_REQUEST_CHARS = 4_194_304
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGE = re.compile(r"(\d{1,6})\s*([smhdw])\Z")
_CONDITION = re.compile(r"([^=!<>]+?)\s*(!=|>=|<=|=|>|<)\s*(.*)\Z", re.DOTALL)
_OPERATORS = {"!=": "$ne", ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_TIMES = "an ISO time such as 2026-03-01 or 2026-03-01T09:30Z, epoch milliseconds, or an age such as 30d, 12h, 45m"


def instant(text: str, option: str, now: int, *, direction: int) -> int:
    """Epoch ms. An age counts from now: forwards (`direction` 1) or back (-1). No zone means UTC."""
    stripped = text.strip()
    if age := _AGE.match(stripped):
        return now + direction * int(age[1]) * _UNITS_MS[age[2]]
    if stripped.isascii() and stripped.isdigit() and len(stripped) != 8:
        if len(stripped) < 12:
            raise ValidationError(f"{option}: {text} is not epoch milliseconds; give {_TIMES}", field=_field(option))
        return int(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise ValidationError(f"{option} takes {_TIMES}, not {text!r}", field=_field(option)) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def past(text: str | None, option: str) -> int | None:
    """An instant, if one was given, whose age counts back from now."""
    return None if text is None else instant(text, option, system_clock(), direction=-1)


def future(text: str | None, option: str) -> int | None:
    return None if text is None else instant(text, option, system_clock(), direction=1)


def json_or_text(text: str) -> Any:
    """`3`, `true`, `[1]` and `"3"` are JSON; anything else is the text itself."""
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        return text


def json_object(text: str, option: str, example: str = '{"key": "value"}') -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValidationError(f"{option} is not valid JSON: {error}", field=_field(option)) from None
    if not isinstance(document, dict):
        raise ValidationError(f"{option} must be a JSON object such as {example}", field=_field(option))
    return document


def pairs(given: list[str] | None, option: str) -> dict[str, Any]:
    """Every KEY=VALUE as one object."""
    found = {}
    for pair in given or ():
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ValidationError(f"{option} takes KEY=VALUE, not {pair!r}", field=_field(option))
        found[key.strip()] = json_or_text(value)
    return found


def metadata(given: list[str] | None, document: str | None = None, **named: Any) -> dict[str, Any]:
    """--metadata-json, then each --metadata, then the options that are metadata fields."""
    whole = json_object(document, "--metadata-json") if document is not None else {}
    fields = {name: value for name, value in named.items() if value not in (None, [])}
    return whole | pairs(given, "--metadata") | fields


def split_commas(given: Iterable[str] | None) -> list[str]:
    """Every name, whether an option was repeated or took several, comma-separated."""
    return [name for part in given or () for piece in part.split(",") if (name := piece.strip())]


def conditions(document: str | None, simple: list[str] | None) -> dict[str, Any] | None:
    """--filter and every --where as one wire filter, in which all must hold."""
    found = json_object(document, "--filter") if document is not None else {}
    for text in simple or ():
        matched = _CONDITION.match(text)
        if matched is None:
            raise ValidationError(f"--where takes FIELD=VALUE (or !=, >, >=, <, <=), not {text!r}", field="filter")
        field, operator, value = matched[1].strip(), matched[2], json_or_text(matched[3])
        if field in TIME_COLUMNS:
            value = _time(value, field)
        wanted = value if operator == "=" else {_OPERATORS[operator]: value}
        if field not in found:
            found[field] = wanted
        elif isinstance(found[field], dict) and isinstance(wanted, dict) and not found[field].keys() & wanted.keys():
            found[field] = {**found[field], **wanted}
        else:
            raise ValidationError(f"--where {text!r}: there is already a condition on {field!r}", field="filter")
    return found or None


def _time(value: Any, field: str) -> Any:
    """What a condition on a time compares with: people write 2026-03-01 or 2h, the wire has epoch milliseconds."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and value):
        return instant(str(value), f"--where {field}", system_clock(), direction=1 if field == "expires_at" else -1)
    return value


@contextmanager
def open_text(path: Path, option: str) -> Iterator[TextIO]:
    """A file, or stdin for `-`, line by line; bytes that are not UTF-8 come as what `is_not_text` knows."""
    if str(path) == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")
        yield sys.stdin
        return
    try:
        file = path.open(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ValidationError(f"{option}: cannot read {path}: {error.strerror}") from None
    with file:
        yield file


def position(file: TextIO) -> tuple[int, int]:
    """How many bytes were read, and of how many; of a pipe nobody knows."""
    if not isinstance(file, TextIOWrapper) or not file.seekable():
        return 0, 0
    return file.buffer.tell(), os.fstat(file.fileno()).st_size


def is_not_text(text: str) -> bool:
    """Whether it came from bytes that were no UTF-8."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def text_file(path: Path, option: str, most: int = MAX_CONTENT_CHARS) -> str:
    """What is in a file of UTF-8, or on stdin for `-`. Of more than could be kept, no more is read than shows it."""
    # What is kept may be shorter than what is read: ends of lines are taken off. So the engine judges all that is near.
    limit = 4 * most
    try:
        with open_text(path, option) as file:
            text = file.read(limit + 1)
    except OSError as error:
        raise ValidationError(f"{option}: cannot read {path}: {error.strerror}") from None
    if is_not_text(text):
        raise ValidationError(f"{option}: {'stdin' if str(path) == '-' else path} is not UTF-8 text")
    if len(text) > limit:
        raise PayloadTooLarge(f"{option}: {'stdin' if str(path) == '-' else path} has more than {most:,} characters")
    return text


def _field(option: str) -> str:
    return option.lstrip("-").replace("-", "_")
