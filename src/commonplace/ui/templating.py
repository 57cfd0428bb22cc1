"""Templates to HTML: everything is escaped unless a template says otherwise, and none does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

CONTENT_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_AGES = ((60, "s", 1), (3600, "min", 60), (86_400, "h", 3600), (86_400 * 60, "d", 86_400))


@cache
def static_file(name: str) -> bytes | None:
    """One of ours; None for any other name."""
    folder = files("commonplace.ui") / "static"
    found = {each.name: each for each in folder.iterdir()}.get(name)
    return found.read_bytes() if found is not None and name.rpartition(".")[2] in CONTENT_TYPES else None


@cache
def static_version(name: str) -> str:
    """Part of its address, so that browsers keep a file for ever and yet see each change."""
    content = static_file(name)
    assert content is not None, name
    return hashlib.sha256(content).hexdigest()[:12]


def instant(ms: int | None) -> str:
    """2026-11-16 13:44 in UTC; nothing where there is none."""
    if ms is None:
        return ""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return str(ms)


def machine_time(ms: int | None) -> str:
    return instant(ms).replace(" ", "T") + "Z" if ms is not None else ""


def age(ms: int, now: int) -> str:
    """How long ago in one number and unit: 3 min ago, 5 h ago, 12 d ago; what lies further back is told as a date."""
    seconds = max((now - ms) // 1000, 0)
    for below, unit, size in _AGES:
        if seconds < below:
            return f"{seconds // size} {unit} ago"
    return instant(ms)[:10]


def shorten(text: Any, most: int = 160) -> str:
    """In one line, with an ellipsis where something is left out."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def segment(text: str) -> str:
    """One segment of a path, whatever it holds."""
    return quote(text, safe="")


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("commonplace.ui"), autoescape=True, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    for each in (instant, machine_time, age, shorten, size, segment):
        made.filters[each.__name__] = each
    made.globals["static_version"] = static_version
    return made


def render(template: str, values: Mapping[str, Any]) -> bytes:
    # What a memory says may hold half of a surrogate pair, which no encoding has.
    return environment().get_template(template).render(values).encode("utf-8", "replace")
