"""Changing one member of a JSON object or array and no other letter; comments and trailing commas are read, too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

# What Python's decoder must not see, or must not take. A string comes first, so that nothing is found inside of one.
_COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|//[^\r\n]*|/\*.*?\*/|NaN|-?Infinity', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|(?<=[\w\]}"])([ \t\r\n]*),(?=[ \t\r\n]*[\]}])', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class Unreadable(ValueError):
    """The text is no JSON, not even with comments."""


class Node:
    """A value with its place in the text. What it holds is looked at when it is asked for: settings can have megabytes
    that nobody asks for."""

    def __init__(self, source: _Source, start: int) -> None:
        self._source, self.start = source, start
        self.value, self.end = source.decode(start)

    @cached_property
    def members(self) -> list[Member]:
        """Of an object or an array."""
        source, value, found = self._source, self.value, []
        at = source.skip(self.start + 1)
        while isinstance(value, dict | list) and source.plain[at] not in "}]":
            key, end = source.decode(at) if isinstance(value, dict) else ("", None)
            node = Node(source, at if end is None else source.skip(source.skip(end) + 1))
            after = source.skip(node.end)
            comma = after if source.plain[after] == "," else None
            found.append(Member(key, at, node, comma))
            at = after if comma is None else source.skip(comma + 1)
        return found

    def member(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)


@dataclass(slots=True)
class Member:
    key: str  # empty in an array
    start: int
    node: Node
    comma: int | None  # where the comma after it is


class _Source:
    """A text as Python's decoder takes it: what it would not is blanked, so that every letter stays where it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.plain = " " + text[1:] if text.startswith("\ufeff") else text
        self._strict = self.plain
        self._root: Any = None
        self._root_at = -1
        try:
            self._root, self._root_at = _DECODER.decode(self.plain), self.skip(0)
        except ValueError:  # only now: settings of megabytes are JSON, and blanking takes longer than decoding
            self.plain = _COMMENT.sub(_blank, self.plain)
            self._strict = _TRAILING_COMMA.sub(lambda found: found[1] or f"{found[2]} ", self.plain)

    def decode(self, at: int) -> tuple[Any, int]:
        if at == self._root_at:
            return self._root, len(self.plain.rstrip(" \t\r\n"))
        try:
            return _DECODER.raw_decode(self._strict, at)
        except json.JSONDecodeError as error:
            raise self.wrong(error.pos) from None

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.plain, at)
        return found.end() if found else at

    def wrong(self, at: int) -> Unreadable:
        return Unreadable(f"line {self._text.count(chr(10), 0, at) + 1} is not as JSON is written")


@lru_cache(
    maxsize=4
)  # adding and removing look at the same settings several times, and change nothing in what is found
def parse(text: str) -> Node:
    try:
        source = _Source(text)
        root = Node(source, source.skip(0))
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    if source.skip(root.end) != len(text):
        raise source.wrong(root.end)
    return root


def _blank(found: re.Match[str]) -> str:
    return found[1] or re.sub(r"[^\r\n]", " " if found[0].startswith("/") else "?", found[0])


def put(text: str, node: Node, key: str, value: Any) -> str:
    """The text with this member at the end of that object, or in the place of the one with this key."""
    known = node.member(key)
    if known is None:
        return _added(text, node, f"{json.dumps(key, ensure_ascii=False)}: ", value)
    old = known.node
    spread = "\n" in text[old.start : old.end]
    shown = _shown(value, _indent(text, known.start), _unit(text), _line_end(text), spread)
    return text[: old.start] + shown + text[old.end :]


def append(text: str, node: Node, value: Any) -> str:
    """The text with this value at the end of that array."""
    return _added(text, node, "", value)


def _added(text: str, node: Node, name: str, value: Any) -> str:
    line_end, unit = _line_end(text), _unit(text)
    close = node.end - 1
    if not node.members:
        spread = "\n" in text.strip() or text[node.end :].strip() == text[: node.start].strip() == ""
        inside = text[node.start + 1 : close].rstrip()
        if not spread:
            return f"{text[: node.start + 1]}{inside}{name}{json.dumps(value, ensure_ascii=False)}{text[close:]}"
        outer = _indent(text, node.start)
        shown = _shown(value, outer + unit, unit, line_end, True)
        head = f"{text[: node.start + 1]}{inside}{line_end}"
        return f"{head}{outer}{unit}{name}{shown}{line_end}{outer}{text[close:]}"
    last = node.members[-1]
    kept = len(text[:close].rstrip())
    below = "\n" in text[node.start : last.start]
    # The end of a line may be that of a comment, which must not swallow what is added.
    spread = below or "\n" in text[last.node.end : close]
    inner = _indent(text, last.start) if below else _indent(text, node.start) + unit
    gap = line_end + inner if spread else " "
    added = f"{gap}{name}{_shown(value, inner, unit, line_end, spread)}"
    if last.comma is not None:
        return text[:kept] + added + "," + text[kept:]
    return text[: last.node.end] + "," + text[last.node.end : kept] + added + text[kept:]


def drop(text: str, node: Node, member: Member) -> str:
    """The text without this member; a comment above it stays."""
    start = len(text[: member.start].rstrip())
    end = member.node.end if member.comma is None else member.comma + 1
    at = node.members.index(member)
    if member.comma is None and at:
        before = node.members[at - 1].comma
        assert before is not None
        return text[:before] + text[before + 1 : start] + text[end:]
    if len(node.members) == 1 and not (text[node.start + 1 : start] + text[end : node.end - 1]).strip():
        return text[: node.start + 1] + text[node.end - 1 :]
    return text[:start] + text[end:]


def _shown(value: Any, indent: str, unit: str, line_end: str, spread: bool) -> str:
    if not spread:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", line_end + indent)


def _indent(text: str, at: int) -> str:
    """What the line of this place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)[^\s/*]", text)
    return found[1] if found else "  "
