"""Changing one member of a JSON text and no other letter of it; comments and trailing commas are read, too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_DEEPEST = 200


class Unreadable(ValueError):
    """The text is no JSON, not even with comments."""


@dataclass(slots=True)
class Node:
    start: int
    end: int = 0
    value: Any = None
    members: list[Member] = field(default_factory=list)  # of an object


@dataclass(slots=True)
class Member:
    key: str
    start: int
    node: Node
    comma: int | None = None  # where the comma after it is


def parse(text: str) -> Node:
    start = 1 if text.startswith("\ufeff") else 0
    node = _value(text, _skip(text, start), 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, node.end)
    return node


def put(text: str, node: Node, key: str, value: Any) -> str:
    """The text with this member at the end of that object, or in the place of the one with this key."""
    there = next((member for member in node.members if member.key == key), None)
    line_end = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    if there is not None:
        old = there.node
        spread = "\n" in text[old.start : old.end]
        return text[: old.start] + _shown(value, _indent(text, there.start), unit, line_end, spread) + text[old.end :]
    name = json.dumps(key, ensure_ascii=False)
    close = node.end - 1
    if not node.members:
        spread = "\n" in text.strip() or text[node.end :].strip() == text[: node.start].strip() == ""
        inside = text[node.start + 1 : close].rstrip()
        if not spread:
            return f"{text[: node.start + 1]}{inside}{name}: {json.dumps(value, ensure_ascii=False)}{text[close:]}"
        outer = _indent(text, node.start)
        shown = _shown(value, outer + unit, unit, line_end, True)
        return (f"{text[: node.start + 1]}{inside}{line_end}{outer}{unit}{name}: {shown}"
                f"{line_end}{outer}{text[close:]}")  # fmt: skip
    last = node.members[-1]
    kept = len(text[:close].rstrip())
    spread = "\n" in text[node.start : last.start]
    inner = _indent(text, node.members[0].start) if spread else ""
    gap = line_end + inner if spread else " "
    added = f"{gap}{name}: {_shown(value, inner, unit, line_end, spread)}"
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
    begin = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[begin:at])
    return found[0] if found else ""


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)[^\s/*]", text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise Unreadable("it is nested too deeply")
    first = text[at : at + 1]
    if first == "{":
        return _object(text, at, depth)
    if first == "[":
        return _array(text, at, depth)
    if first == '"':
        value, end = _string(text, at)
        return Node(at, end, value)
    found = _SCALAR.match(text, at)
    if not found:
        raise _wrong(text, at)
    return Node(at, found.end(), json.loads(found[0]))


def _object(text: str, at: int, depth: int) -> Node:
    node = Node(at, value={})
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        if node.members and node.members[-1].comma is None:
            raise _wrong(text, at)
        key, end = _string(text, at)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon)
        member = Member(key, at, _value(text, _skip(text, colon + 1), depth + 1))
        node.members.append(member)
        node.value[key] = member.node.value
        at = _skip(text, member.node.end)
        if text[at : at + 1] == ",":
            member.comma = at
            at = _skip(text, at + 1)
    node.end = at + 1
    return node


def _array(text: str, at: int, depth: int) -> Node:
    node = Node(at, value=[])
    at = _skip(text, at + 1)
    parted = True
    while text[at : at + 1] != "]":
        if not parted:
            raise _wrong(text, at)
        item = _value(text, at, depth + 1)
        node.value.append(item.value)
        at = _skip(text, item.end)
        parted = text[at : at + 1] == ","
        at = _skip(text, at + 1) if parted else at
    node.end = at + 1
    return node


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    try:
        value: str = json.loads(found[0]) if found else ""
    except ValueError:  # an escape that JSON does not have
        found = None
    if not found:
        raise _wrong(text, at)
    return value, found.end()


def _wrong(text: str, at: int) -> Unreadable:
    return Unreadable(f"line {text.count(chr(10), 0, at) + 1} is not as JSON is written")
