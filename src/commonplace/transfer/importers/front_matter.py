"""The part of YAML that notes carry above their text: keys with a text, number, date or list. Pure.

What is more than that (nested mappings, anchors), or is no YAML, is kept as the lines it was written in.
"""

from __future__ import annotations

import re
from typing import Any

_SPACE = " \t\r"  # nothing else: whatever Unicode calls a space is part of a text
_COLON = re.compile(r":(?=[ \t]|$)")
_ITEM = re.compile(r"([ \t]*)-(?:[ \t]+(.*))?$", re.DOTALL)
_COMPLEX_KEY = re.compile(r"[-?](?:[ \t]|$)")
_QUOTED = re.compile(r"""'([^']*(?:''[^']*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)\"""", re.DOTALL)
_COMMENT = re.compile(r"(?<![ \t])[ \t]+#")  # from the first of a run alone: from each, a long run takes its square
_REST = re.compile(r"[ \t]*(?:[ \t]#.*)?$", re.DOTALL)  # of a line after a value that has an end of its own
_BLANK = re.compile(r"[ \t\r\n]*")
_FLOW_TEXT = re.compile(r"[^\[\]{},]*")  # what a text without quotes may hold in a list
_BLOCK = re.compile(r"([|>])([+-]?)([1-9]?)([+-]?)(?:[ \t]+#.*)?$")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?$", re.ASCII)
_NO_PLAIN_TEXT = "{}]&*!|>%@`,"  # a value that begins so is more than a text
_MAX_KEY_CHARS = 1024  # as YAML has it
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


class _NotRead(Exception):
    """It is more than is read here: the lines are kept."""


def split(text: str) -> tuple[dict[str, Any], str]:
    """The fields above a note, and the note; no fields where it begins without `---`, or has no key below that."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            fields = _fields(lines[1:end])
            return ({}, text) if fields is None else (fields, "\n".join(lines[end + 1 :]))
    return {}, text


def _fields(lines: list[str]) -> dict[str, Any] | None:
    """None where something stands before the first key: then a line of a text is above it, and no front matter."""
    found: dict[str, list[list[str]]] = {}
    below: list[str] | None = None
    for line in lines:
        if (named := _key(line)) is not None:
            below = [named[1]]
            found.setdefault(named[0], []).append(below)
        elif below is not None:
            below.append(line)
        elif not _says_nothing(line):
            return None
    # A key that is there twice has no one value.
    return {
        key: _value(given[0]) if len(given) == 1 else "\n".join(_as_written(each) for each in given)
        for key, given in found.items()
    }


def _key(line: str) -> tuple[str, str] | None:
    """The key that a line begins with, and what stands behind its colon."""
    if not line or line[0] in " \t\r#[" + _NO_PLAIN_TEXT or _COMPLEX_KEY.match(line):
        return None
    if line[0] in "'\"":
        quoted = _QUOTED.match(line)
        try:
            key = _unquoted(quoted) if quoted else None
        except _NotRead:
            return None
        rest = line[quoted.end() :].lstrip(_SPACE) if quoted else ""
        return (key, rest[1:].strip(_SPACE)) if key is not None and _COLON.match(rest) else None
    colon = _COLON.search(line.rstrip(_SPACE))
    if colon is None or colon.start() > _MAX_KEY_CHARS or _COMMENT.search(line, 0, colon.start()):
        return None
    return line[: colon.start()].rstrip(_SPACE), line[colon.end() :].strip(_SPACE)


def _value(lines: list[str]) -> Any:
    """What the line of a key and those below it say."""
    first, below = lines[0], lines[1:]
    said = [line for line in below if not _says_nothing(line)]
    try:
        if header := _BLOCK.match(first):
            return _block(header, below)
        if not said and not (first.startswith(("'", '"', "[")) and any(line.strip(_SPACE) for line in below)):
            return _scalar(first)
        if first and not (first.startswith("#") and said):
            return _over_lines(lines)
        if all(_ITEM.match(line) for line in said):
            return _items(said)
        return _over_lines(below)
    except _NotRead:
        return _as_written(lines)


def _as_written(lines: list[str]) -> str:
    kept = lines if lines[0] else lines[1:]
    return "\n".join(kept).rstrip(_SPACE + "\n")


def _says_nothing(line: str) -> bool:
    return not (text := line.strip(_SPACE)) or text.startswith("#")


def _block(header: re.Match[str], below: list[str]) -> str:
    """A text in lines of its own: `|` keeps their ends, `>` makes spaces of them."""
    indents = [len(line) - len(line.lstrip(" ")) for line in below if line.strip(_SPACE)]
    indent = int(header[3]) if header[3] else (indents[0] if indents else 1)
    end = next(
        (i for i, line in enumerate(below) if line.strip(_SPACE) and not line.startswith(" " * indent)), len(below)
    )
    if not indent or any(not _says_nothing(line) for line in below[end:]):
        raise _NotRead
    lines = [line[indent:] for line in below[:end]]
    while lines and not lines[-1].strip(_SPACE):
        lines.pop()
    if not lines:
        return ""
    if header[1] == ">" and any(line[:1] in (" ", "\t") for line in lines):
        raise _NotRead
    text = "\n".join(lines) if header[1] == "|" else _folded(lines)
    match header[2] or header[4]:
        case "-":
            return text
        case "+":
            return text + "\n" * (1 + end - len(lines))
        case _:
            return text + "\n"


def _items(lines: list[str]) -> list[Any]:
    matched = [item for line in lines if (item := _ITEM.match(line))]
    if len({item[1] for item in matched}) > 1:
        raise _NotRead
    return [_scalar((item[2] or "").strip(_SPACE)) for item in matched]


def _over_lines(lines: list[str]) -> Any:
    """A value that goes on in the lines below it."""
    if any(line.strip(_SPACE) and line[:1] not in (" ", "\t") for line in lines[1:]):
        raise _NotRead
    text = _folded([line.strip(_SPACE) for line in lines]).strip(_SPACE + "\n")
    if text[:1] in ("'", '"'):
        if any(line.rstrip(_SPACE).endswith("\\") for line in lines):
            raise _NotRead
        return _quoted(text)
    if any(_COMMENT.search(line) or line.startswith("#") for line in lines):
        raise _NotRead
    if text[:1] == "[":
        return _flow(text)
    if text[:1] in _NO_PLAIN_TEXT or _COMPLEX_KEY.match(text) or any(_COLON.search(line) for line in lines):
        raise _NotRead
    return _plain(text)


def _folded(lines: list[str]) -> str:
    """The end of a line is a space, and an empty line the end of one."""
    text, ends = "", 0
    for i, line in enumerate(lines):
        if not line:
            ends += 1
        else:
            text += ("\n" * ends or (" " if i else "")) + line
            ends = 0
    return text


def _scalar(text: str) -> Any:
    try:
        if text[:1] in ("'", '"'):
            return _quoted(text)
        if text[:1] == "[":
            return _flow(text)
    except _NotRead:
        return text
    if text.startswith("# "):  # while `#tag` is meant, though to YAML it is a comment, too
        return None
    # A mark of a comment in it may be part of a quoted text.
    return text if text and (text[0] in _NO_PLAIN_TEXT or _COLON.search(_COMMENT.split(text)[0])) else _plain(text)


def _quoted(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted is None or not _REST.match(text, quoted.end()):
        raise _NotRead
    return _unquoted(quoted)


def _unquoted(quoted: re.Match[str]) -> str:
    if quoted[1] is not None:
        return quoted[1].replace("''", "'")
    try:
        text = _ESCAPE.sub(_unescaped, quoted[2])
        # JSON, which is YAML, writes a character beyond U+FFFF as two halves.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except (KeyError, ValueError, OverflowError):
        raise _NotRead from None


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    return chr(int(code, 16)) if code else _ESCAPED[escape[4]]


def _flow(text: str) -> list[Any]:
    """A list in brackets; one within another is not read."""
    found: list[Any] = []
    at = 1
    while True:
        at = _end(_BLANK, text, at)
        if text[at : at + 1] in ("'", '"'):
            quoted = _QUOTED.match(text, at)
            if quoted is None:
                raise _NotRead
            found.append(_unquoted(quoted))
            end = _end(_BLANK, text, quoted.end())
        else:
            end = _end(_FLOW_TEXT, text, at)
            if plain := text[at:end].strip(_SPACE):
                found.append(_typed(plain))
        if text[end : end + 1] == "]":
            if not _REST.match(text, end + 1):
                raise _NotRead
            return found
        if text[end : end + 1] != ",":
            raise _NotRead
        at = end + 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where that ends which may begin there."""
    matched = pattern.match(text, at)
    return matched.end() if matched else at


def _plain(text: str) -> Any:
    return _typed(_COMMENT.split(text, maxsplit=1)[0].strip(_SPACE))


def _typed(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text in ("", "null", "~"):
        return None
    if _NUMBER.match(text):
        number = float(text) if "." in text else int(text)
        return number if str(number) == text else text  # 007 and 1.50 are more than their numbers
    return text
