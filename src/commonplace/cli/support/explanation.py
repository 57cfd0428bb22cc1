"""Why each memory was found: for people a table of what its rank is made of, with bars; for programs a line each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

from commonplace.cli.support.output import Document, body, flat, heading, line, on_terminal, print_fields
from commonplace.cli.support.tables import Table
from commonplace.wire.words import shorten

BAR_CHARS = 24
_MIN_BAR_CHARS = 4
_NUMBERS_CHARS = 20  # of a value and a share, with what is between columns
_BECAUSE = "because of"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MAX_TITLE_CHARS = 70
#: Of a hit, beside the shares of its rank.
_FIGURES = (
    "relevance", "judge", "blend", "fused", "rank", "dense", "keyword", "late", "demotion", "store", "same_as", "hop",
)  # fmt: skip
#: The score of the index of words itself; `keyword` among the features is its share of the best one.
_RAW = {"keyword": "bm25"}


def show_explanation(document: Document) -> None:
    results = document["results"]
    line()
    if not on_terminal():
        for hit in results:
            line(f"{hit['id']}  {_as_line(hit.get('explain') or {})}")
        line(f"{document['latency_ms']} ms  {_as_line(document.get('explain') or {})}")
        return
    # One scale for all, so that the bars of two memories can be compared.
    scale = max((abs(share) for hit in results for share in _shares(hit).values()), default=0.0)
    for place, hit in enumerate(results, 1):
        heading(f"{place}. {shorten(flat(body(hit)), _MAX_TITLE_CHARS)}")
        line(f"   {hit['id']}")
        _table(hit, scale).print()
        print_fields(_figures(hit.get("explain") or {}))
        line()
    whole = document.get("explain") or {}
    told = {name: _words(value) for name, value in whole.items() if value is not None}
    print_fields({"took": f"{document['latency_ms']} ms"} | told)


def bar(value: float, scale: float, chars: int = BAR_CHARS) -> str:
    """As long as the value is of the scale, to an eighth of a character; what counts against it is drawn with dots."""
    if scale <= 0:
        return ""
    eighths = round(min(abs(value) / scale, 1.0) * chars * 8)
    whole, rest = divmod(eighths, 8)
    if value < 0:
        return "·" * (whole + (rest > 0))
    return ("█" * whole + _EIGHTHS[rest]).rstrip()


def _table(hit: Document, scale: float) -> Table:
    features = (hit.get("explain") or {}).get("features") or {}
    shares = [item for item in sorted(_shares(hit).items(), key=lambda item: -abs(item[1])) if item[1]]
    chars = _bar_chars([name for name, _ in shares])
    rows: Sequence[Sequence[Any]] = [
        [name.replace("_", " "), float(features.get(name, 0.0)), float(share), bar(share, scale, chars)]
        for name, share in shares
    ]
    return Table([_BECAUSE, "value", "share", ""], rows, empty="it has no share of the rank by itself")


def _bar_chars(names: Sequence[str]) -> int:
    """As many as there is room for beside the names and two numbers: a bar over two lines is twice as long as it is."""
    room = get_terminal_size().columns - max(map(len, (_BECAUSE, *names))) - _NUMBERS_CHARS
    return max(_MIN_BAR_CHARS, min(BAR_CHARS, room))


def _shares(hit: Document) -> dict[str, float]:
    found: dict[str, float] = (hit.get("explain") or {}).get("shares") or {}
    return found


def _figures(why: Document) -> dict[str, str]:
    return {_RAW.get(name, name): _words(why[name]) for name in _FIGURES if why.get(name) is not None}


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(inner)}" for name, inner in value.items() if inner not in (None, [], {}))
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(inner) for inner in value)
    return flat(value)


def _as_line(parts: Document) -> str:
    """Names with JSON, which a program takes apart without knowing Python."""
    given = {_RAW.get(name, name): value for name, value in parts.items() if value is not None}
    return "  ".join(f"{name}={_json(value)}" for name, value in given.items())


def _json(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
