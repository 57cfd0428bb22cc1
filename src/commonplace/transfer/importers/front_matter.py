"""The part of YAML that notes carry above their text: keys with a text, number, date or list. Pure.

What is more than that (nested mappings, anchors) is kept as the lines it was written in.
"""

from __future__ import annotations

import re
from typing import Any

_KEY = re.compile(r"([A-Za-z_][\w .-]{0,99}?) {0,9}:(?:\s+(.*))?$")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?$")


def split(text: str) -> tuple[dict[str, Any], str]:
    """The fields above a note, and the note; no fields where it begins without `---`."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return _fields(lines[1:end]), "\n".join(lines[end + 1 :])
    return {}, text


def _fields(lines: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    key = ""
    below: list[str] = []

    def close() -> None:
        if key and below:
            items = [line.strip() for line in below if line.strip()]
            if all(item.startswith("- ") or item == "-" for item in items):
                found[key] = [_scalar(item[1:].strip()) for item in items]
            else:
                found[key] = "\n".join(below)
        below.clear()

    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        matched = _KEY.match(line) if line[:1] not in " \t-" else None
        if matched is None:
            below.append(line)
            continue
        close()
        key = matched[1].strip()
        found[key] = _scalar((matched[2] or "").strip())
    close()
    return found


def _scalar(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_plain(each.strip()) for each in text[1:-1].split(",") if each.strip()]
    return _plain(text)


def _plain(text: str) -> Any:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    text = re.split(r"\s#", text, maxsplit=1)[0].strip()
    if text in ("true", "false"):
        return text == "true"
    if text in ("", "null", "~"):
        return None
    if _NUMBER.match(text):
        return float(text) if "." in text else int(text)
    return text
