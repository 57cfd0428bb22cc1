"""MRP's comment binding: `@Agent memory_request: what do you know about …?` with `key:value` options, and the reply.

A comment is Markdown that people type, so everything around a request is left alone: what stands in code blocks, code
spans and quotations asks nothing, a question may run over several lines, and options stand at its end, on lines of
their own or both. Everything here is pure and takes time in proportion to the comment's length: comments are written by
strangers, which is why the patterns are possessive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from commonplace.dialects.mrp.messages import Document, memory_request
from commonplace.wire.errors import ValidationError
from commonplace.wire.times import iso, milliseconds

MAX_REQUESTS = 16  # in one comment
MAX_TITLE_CHARS = 240
REFUSALS = {"declined": "Declined", "error": "Error"}
_FORMATS = ("attestation", "summary", "raw")
_BOOLEANS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}

#: Editors of Markdown escape the underscore.
MENTION = re.compile(r"(?<![\w@])@(\w[\w./+~-]{0,255}+)[,:]?[ \t]++memory\\?_request[ \t]*+:", re.IGNORECASE)
_KEYS = ("domain", "max", "keywords", "keyword", "after", "before", "trust", "format", "evidence", "vouches", "sign")
_VALUE = r'(?>(?:"[^"]*"|“[^“”]*”|[^\s"“])++)(?!\S)'
_TRAILING_OPTION = re.compile(rf"(?<!\S)([a-z_]{{1,32}}):({_VALUE})", re.IGNORECASE)
_OPTION = re.compile(rf"[ \t,;]*+([a-z_]{{1,32}}):([ \t]*+)({_VALUE})[ \t]*+", re.IGNORECASE)
_LIST_ITEM = re.compile(r'(?>(?:"[^"]*"|“[^“”]*”|[^,"“])++)')
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)\Z")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")
_QUOTED = re.compile(r" {0,3}>")
_BACKTICKS = re.compile(r"`++")


@dataclass(slots=True)
class CommentRequest:
    """One request of a comment: who is addressed, what is asked, and what is wrong with its options, if anything."""

    agent: str
    question: str
    structured: Document = field(default_factory=dict)
    preferences: Document = field(default_factory=dict)
    problem: str | None = None

    def request(self, *, requester: str, request_id: str, timestamp: str) -> Document:
        """The MEMORY_REQUEST it stands for."""
        header = {"request_id": request_id, "timestamp": timestamp}
        return memory_request(header, requester, self.question, self.structured, self.preferences)


def find_requests(comment: str) -> list[CommentRequest]:
    """Every request in a comment, in its order; those past MAX_REQUESTS are not looked at."""
    found: list[CommentRequest] = []
    parser: _RequestParser | None = None
    for line in _prose_lines(comment):
        start = 0
        for mention in _mentions(line or ""):
            assert line is not None
            if parser is not None:
                parser.feed(line[start : mention.start()])
                found.append(parser.finish())
            if len(found) == MAX_REQUESTS:
                return found
            parser, start = _RequestParser(mention[1]), mention.end()
        if parser is not None and (line is None or not parser.feed(line[start:])):
            found.append(parser.finish())
            parser = None
    return found if parser is None else [*found, parser.finish()]


class _RequestParser:
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
        if (alone := _option_line(line)) is not None:
            self._add_options(alone)
            self._ended = True
            return True
        if self._ended:
            return False
        text, options = _split_trailing_options(line)
        self._question.append(text)
        self._add_options(options)
        self._ended = bool(options)
        return True

    def _add_options(self, options: list[tuple[str, str]]) -> None:
        for key, value in options:
            if key in _KEYS:
                self._options.append((key, value))
            else:
                self._unknown = self._unknown or key

    def finish(self) -> CommentRequest:
        request = CommentRequest(self._agent, "\n".join(filter(None, self._question)))
        try:
            if self._unknown is not None:
                raise ValueError(f"there is no option {self._unknown!r}; there are {', '.join(_KEYS)}")
            _apply(request, self._options)
            if not request.question and not request.structured:
                raise ValueError("the request asks nothing; write the question after memory_request:")
        except ValueError as wrong:
            request.problem = str(wrong)
        return request


def _prose_lines(comment: str) -> Iterator[str | None]:
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
    return [mention for mention in found if not _in_code(mention.start(), spans)]


def _code_spans(line: str) -> list[tuple[int, int]]:
    """A run of backticks opens a span that the next run of the same length closes."""
    runs = [(run.start(), run.end()) for run in _BACKTICKS.finditer(line)]
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


def _in_code(place: int, spans: list[tuple[int, int]]) -> bool:
    at = bisect_right(spans, (place, place)) - 1
    return at >= 0 and spans[at][0] <= place < spans[at][1]


def _option_line(line: str) -> list[tuple[str, str]] | None:
    """The options of a line that holds nothing else, at least one of them known."""
    options, at = [], 0
    end = len(line.rstrip())
    while at < end:
        found = _OPTION.match(line, at)
        if found is None:
            return None
        key = found[1].lower()
        if _is_address(key, found[3]) or (key not in _KEYS and found[2]):  # "Note: …" is a sentence
            return None
        options.append((key, found[3]))
        at = found.end()
    return options if any(key in _KEYS for key, _ in options) else None


def _is_address(key: str, value: str) -> bool:
    """Whether it is the address of a page, a path or `std::vector`, and not an option that someone got wrong."""
    return key not in _KEYS and value[0] in "/:\\"


def _split_trailing_options(line: str) -> tuple[str, list[tuple[str, str]]]:
    """What is request, and the run of options that ends the line, at least one of them known."""
    candidates = list(_TRAILING_OPTION.finditer(line))
    if candidates and "`" in line:
        spans = _code_spans(line)
        candidates = [each for each in candidates if not _in_code(each.start(), spans)]
    options: list[tuple[str, str]] = []
    end = len(line)
    for each in reversed(candidates):
        if line[each.end() : end].strip(" \t,;") or _is_address(each[1].lower(), each[2]):
            break
        options.append((each[1].lower(), each[2]))
        end = each.start()
    if not any(key in _KEYS for key, _ in options):
        return line.strip(), []
    return line[:end].strip(), options[::-1]


def _apply(request: CommentRequest, options: list[tuple[str, str]]) -> None:
    structured, filters, times = request.structured, Document(), Document()
    seen = set()
    for key, written in options:
        if key in ("keyword", "keywords"):
            structured.setdefault("keywords", []).extend(_items(written))
            continue
        if key in seen:
            raise ValueError(f"{key} is given twice")
        seen.add(key)
        value = _unquote(written)
        match key:
            case "domain":
                if not value.strip():
                    raise ValueError("domain is empty")
                structured["domain"] = value.strip()
            case "after" | "before":
                times[key] = _time(key, value)
            case "max":
                request.preferences["max_results"] = _number(key, value, 1, 1000)
            case "trust":
                filters["min_trust_level"] = _number(key, value, 0, 3)
            case "evidence" | "vouches":
                filters[f"require_{key}"] = _boolean(key, value)
            case "sign":
                request.preferences["sign_response"] = _boolean(key, value)
            case "format":
                if value.lower() not in _FORMATS:
                    raise ValueError(f"format must be one of {', '.join(_FORMATS)}, not {value[:40]!r}")
                request.preferences["format"] = value.lower()
    if times:
        structured["time_range"] = times
    if filters:
        structured["filters"] = filters


def _unquote(value: str) -> str:
    value = value.rstrip(",;")
    return value[1:-1] if len(value) > 1 and value[0] + value[-1] in ('""', "“”") else value


def _items(written: str) -> list[str]:
    return [text for each in _LIST_ITEM.findall(written.rstrip(",;")) if (text := _unquote(each).strip())]


def _number(key: str, value: str, least: int, most: int) -> int:
    digits = value.rstrip(".")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and least <= int(digits) <= most):
        raise ValueError(f"{key} must be a whole number from {least} to {most}, not {value[:40]!r}")
    return int(digits)


def _boolean(key: str, value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise ValueError(f"{key} must be yes or no, not {value[:40]!r}")
    return _BOOLEANS[value.lower()]


def _time(key: str, value: str) -> str:
    try:
        return iso(milliseconds(value, key, end_of_day=key == "before"))
    except ValidationError:
        raise ValueError(f"{key} must be a time such as 2026-02-07 or 2026-02-07T09:30Z, not {value[:40]!r}") from None


# the reply


#: Who vouches for whoever wrote an attestation.
Vouchers = Callable[[Document], Sequence[str]]


def render_reply(response: Document, to: str, vouchers: Vouchers = lambda attestation: ()) -> str:
    """A MEMORY_RESPONSE as the numbered list that people read."""
    results = response.get("results", ())
    lines = [_headline(to, response["status"], response.get("meta", {}).get("total_matches", 0), len(results))]
    for number, result in enumerate(results, 1):
        claim = result["attestation"]["claim"]
        title = one_line(claim["content"])
        if len(title) > MAX_TITLE_CHARS:
            title = title[:MAX_TITLE_CHARS].rsplit(" ", 1)[0].rstrip() + "…"
        score = f"{result['relevance_score']:.2f}"
        lines += ["", f"{number}. [{score.removesuffix('0')}] {title or '(empty)'}"]
        references = [each for each in claim.get("references", ()) if isinstance(each, str)]
        if references and (source := one_line(references[0])):
            lines.append(f"   Source: {source}")
        if names := [name for each in vouchers(result["attestation"]) if (name := _one_name(each))]:
            lines.append(f"   Vouch: {', '.join(names)}")
    return "\n".join(lines)


def render_refusal(to: str, message: str) -> str:
    """The reply to a request that could not be understood or processed."""
    return _headline(to, {"code": "error", "message": message}, 0, 0)


def _headline(to: str, status: Document, total: int, shown: int) -> str:
    code, message = status["code"], one_line(status.get("message", "")) or "no reason was given"
    if code in REFUSALS:
        said = f"{REFUSALS[code]}: {message}"
    else:
        total = max(int(total), shown) if code in ("success", "partial") else shown
        cut = f", {shown} shown" if total > shown else ""
        partial = f" Partial: {message}" if code == "partial" else ""
        said = f"Found {total or 'no'} relevant {'memory' if total == 1 else 'memories'}{cut}.{partial}"
    return f"@{_one_name(to) or 'you'} memory_response: {said}"


def one_line(text: str) -> str:
    """Without line breaks and control characters, and asking nobody anything."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    # A memory that reads like a request would be answered by whoever reads the reply.
    return MENTION.sub(lambda found: found[0].replace("@", "(at) ", 1), flat)


def _one_name(text: str) -> str:
    return " ".join(one_line(text).replace(",", " ").split())[:256].strip()
