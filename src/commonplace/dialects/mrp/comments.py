"""Requests written in comments: `@Agent memory_request: what do you know about …?` with `key:value` options. Pure.

A comment is Markdown that people type, so everything around a request is left alone: what stands in code blocks, code
spans and quotations asks nothing, a question may run over several lines, and options stand at its end, on lines of
their own or both. Everything here takes time in proportion to the comment's length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from commonplace.dialects.mrp.messages import SCHEMAS, VERSION, Document
from commonplace.wire.errors import ValidationError
from commonplace.wire.times import iso, milliseconds

MOST_REQUESTS = 16  # in one comment
_FORMATS = ("attestation", "summary", "raw")
_TRUTHS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}

#: Editors of Markdown escape the underscore.
MENTION = re.compile(r"(?<![\w@])@(\w[\w./+~-]{0,255}+)[,:]?[ \t]++memory\\?_request[ \t]*+:", re.IGNORECASE)
_KEYS = ("domain", "max", "keywords", "keyword", "after", "before", "trust", "format", "evidence", "vouches", "sign")
_VALUE = r'(?>(?:"[^"]*"|“[^“”]*”|[^\s"“])++)(?!\S)'
_AT_THE_END = re.compile(rf"(?<!\S)([a-z_]{{1,32}}):({_VALUE})", re.IGNORECASE)
_ON_ITS_OWN = re.compile(rf"[ \t,;]*+([a-z_]{{1,32}}):([ \t]*+)({_VALUE})[ \t]*+", re.IGNORECASE)
_LISTED = re.compile(r'(?>(?:"[^"]*"|“[^“”]*”|[^,"“])++)')
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)\Z")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")
_QUOTED = re.compile(r" {0,3}>")
_TICKS = re.compile(r"`++")


@dataclass(slots=True)
class Asked:
    """One request of a comment: who is addressed, what is asked, and what is wrong with its options, if anything."""

    agent: str
    question: str
    structured: Document = field(default_factory=dict)
    preferences: Document = field(default_factory=dict)
    problem: str | None = None

    def request(self, *, requester: str, request_id: str, timestamp: str) -> Document:
        """The MEMORY_REQUEST it stands for."""
        query: Document = {"natural": self.question} if self.question else {}
        if self.structured:
            query["structured"] = self.structured
        request: Document = {
            "$schema": f"{SCHEMAS}request-v01.json", "type": "memory_request", "version": VERSION,
            "header": {"request_id": request_id, "timestamp": timestamp},
            "requester": {"agent_id": requester}, "query": query,
        }  # fmt: skip
        if self.preferences:
            request["response_preferences"] = self.preferences
        return request


def find(comment: str) -> list[Asked]:
    """Every request in a comment, in its order; those past MOST_REQUESTS are not looked at."""
    found: list[Asked] = []
    reading: _Reading | None = None
    for line in _prose(comment):
        start = 0
        for mention in _mentions(line or ""):
            assert line is not None
            if reading is not None:
                reading.feed(line[start : mention.start()])
                found.append(reading.done())
            if len(found) == MOST_REQUESTS:
                return found
            reading, start = _Reading(mention[1]), mention.end()
        if reading is not None and (line is None or not reading.feed(line[start:])):
            found.append(reading.done())
            reading = None
    return found if reading is None else [*found, reading.done()]


def compose(agent: str, question: str, options: Document | None = None) -> str:
    """A comment that asks: the inverse of `find` for a question on one line."""
    written = [
        f"{key}:{','.join(map(_quoted, value)) if isinstance(value, list) else _quoted(str(value))}"
        for key, value in (options or {}).items()
    ]
    return "\n".join(filter(None, (f"@{agent} memory_request: {question}", " ".join(written))))


class _Reading:
    """A request while its lines are read."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._question: list[str] = []
        self._options: list[tuple[str, str]] = []
        self._unknown: str | None = None
        self._ended = False  # the question has; options may still follow

    def feed(self, line: str) -> bool:
        """Whether the line still belongs to the request."""
        if not line.strip():
            self._ended = bool(self._question or self._options)
            return True
        if (alone := _options_alone(line)) is not None:
            self._take(alone)
            self._ended = True
            return True
        if self._ended:
            return False
        text, options = _options_at_the_end(line)
        self._question.append(text)
        self._take(options)
        self._ended = bool(options)
        return True

    def _take(self, options: list[tuple[str, str]]) -> None:
        for key, value in options:
            if key in _KEYS:
                self._options.append((key, value))
            else:
                self._unknown = self._unknown or key

    def done(self) -> Asked:
        asked = Asked(self._agent, "\n".join(filter(None, self._question)))
        try:
            if self._unknown is not None:
                raise ValueError(f"there is no option {self._unknown!r}; there are {', '.join(_KEYS)}")
            _apply(asked, self._options)
            if not asked.question and not asked.structured:
                raise ValueError("the request asks nothing; write the question after memory_request:")
        except ValueError as wrong:
            asked.problem = str(wrong)
        return asked


def _prose(comment: str) -> Iterator[str | None]:
    """The lines; None for those in code blocks and quotations."""
    fence = ""
    code = True  # an indented block may begin where no paragraph is open
    for line in comment.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
            yield None
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence, code = found[1], True
            yield None
        elif _QUOTED.match(line):
            code = True
            yield None
        elif code and line.strip() and _INDENTED.match(line):
            yield None
        else:
            code = not line.strip()
            yield line


def _mentions(line: str) -> list[re.Match[str]]:
    if "@" not in line:
        return []
    found = list(MENTION.finditer(line))
    if not found or "`" not in line:
        return found
    spans = _code_spans(line)
    return [mention for mention in found if not _within(mention.start(), spans)]


def _code_spans(line: str) -> list[tuple[int, int]]:
    """A run of backticks opens a span that the next run of the same length closes."""
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(line)]
    following: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for place in range(len(runs) - 1, -1, -1):
        length = runs[place][1] - runs[place][0]
        closing[place] = following.get(length)
        following[length] = place
    spans, place = [], 0
    while place < len(runs):
        end = closing[place]
        if end is not None:
            spans.append((runs[place][0], runs[end][1]))
        place = (place if end is None else end) + 1
    return spans


def _within(place: int, spans: list[tuple[int, int]]) -> bool:
    at = bisect_right(spans, (place, place)) - 1
    return at >= 0 and spans[at][0] <= place < spans[at][1]


def _options_alone(line: str) -> list[tuple[str, str]] | None:
    """The options of a line that holds nothing else, at least one of them known."""
    options, at = [], 0
    end = len(line.rstrip())
    while at < end:
        found = _ON_ITS_OWN.match(line, at)
        if found is None:
            return None
        key = found[1].lower()
        if _means_something_else(key, found[3]) or (key not in _KEYS and found[2]):  # "Note: …" is a sentence
            return None
        options.append((key, found[3]))
        at = found.end()
    return options if any(key in _KEYS for key, _ in options) else None


def _means_something_else(key: str, value: str) -> bool:
    """The address of a page, a path or `std::vector` is no option that someone got wrong."""
    return key not in _KEYS and value[0] in "/:\\"


def _options_at_the_end(line: str) -> tuple[str, list[tuple[str, str]]]:
    """What is asked, and the run of options that ends the line, at least one of them known."""
    candidates = list(_AT_THE_END.finditer(line))
    if candidates and "`" in line:
        spans = _code_spans(line)
        candidates = [each for each in candidates if not _within(each.start(), spans)]
    options: list[tuple[str, str]] = []
    end = len(line)
    for each in reversed(candidates):
        if line[each.end() : end].strip(" \t,;") or _means_something_else(each[1].lower(), each[2]):
            break
        options.append((each[1].lower(), each[2]))
        end = each.start()
    if not any(key in _KEYS for key, _ in options):
        return line.strip(), []
    return line[:end].strip(), options[::-1]


def _apply(asked: Asked, options: list[tuple[str, str]]) -> None:
    structured, filters, times = asked.structured, Document(), Document()
    seen = set()
    for key, written in options:
        if key in ("keyword", "keywords"):
            structured.setdefault("keywords", []).extend(_list(written))
            continue
        if key in seen:
            raise ValueError(f"{key} is given twice")
        seen.add(key)
        value = _bare(written)
        match key:
            case "domain":
                structured["domain"] = _some(key, value)
            case "after" | "before":
                times[key] = _time(key, value)
            case "max":
                asked.preferences["max_results"] = _number(key, value, 1, 1000)
            case "trust":
                filters["min_trust_level"] = _number(key, value, 0, 3)
            case "evidence" | "vouches":
                filters[f"require_{key}"] = _truth(key, value)
            case "sign":
                asked.preferences["sign_response"] = _truth(key, value)
            case "format":
                if value.lower() not in _FORMATS:
                    raise ValueError(f"format must be one of {', '.join(_FORMATS)}, not {value[:40]!r}")
                asked.preferences["format"] = value.lower()
    if times:
        structured["time_range"] = times
    if filters:
        structured["filters"] = filters


def _bare(value: str) -> str:
    value = value.rstrip(",;")
    return value[1:-1] if len(value) > 1 and value[0] + value[-1] in ('""', "“”") else value


def _list(written: str) -> list[str]:
    return [text for each in _LISTED.findall(written.rstrip(",;")) if (text := _bare(each).strip())]


def _some(key: str, value: str) -> str:
    if not value.strip():
        raise ValueError(f"{key} is empty")
    return value.strip()


def _number(key: str, value: str, least: int, most: int) -> int:
    digits = value.rstrip(".")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and least <= int(digits) <= most):
        raise ValueError(f"{key} must be a whole number from {least} to {most}, not {value[:40]!r}")
    return int(digits)


def _truth(key: str, value: str) -> bool:
    if value.lower() not in _TRUTHS:
        raise ValueError(f"{key} must be yes or no, not {value[:40]!r}")
    return _TRUTHS[value.lower()]


def _time(key: str, value: str) -> str:
    try:
        return iso(milliseconds(value, key, end_of_day=key == "before"))
    except ValidationError:
        raise ValueError(f"{key} must be a time such as 2026-02-07 or 2026-02-07T09:30Z, not {value[:40]!r}") from None


def _quoted(value: str) -> str:
    """As it is, or between the quotation marks that it does not hold."""
    if value and not re.search(r'[\s,;"“”]', value):
        return value
    return f'"{value}"' if '"' not in value else f"“{value}”"
