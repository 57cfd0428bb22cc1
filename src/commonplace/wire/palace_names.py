"""What a palace may be called. A module of its own: `commonplace mcp` checks a name before anything heavy is loaded."""

from __future__ import annotations

from commonplace.wire.errors import ValidationError

MAX_NAME_CHARS = 128
_NOT_IN_NAMES = ("..", "/", "\0")


def valid(name: str) -> bool:
    fits = 0 < len(name) <= MAX_NAME_CHARS and bool(name.strip()) and not any(part in name for part in _NOT_IN_NAMES)
    return fits and not any(0xD800 <= ord(letter) <= 0xDFFF for letter in name)


def check_name(name: str) -> None:
    if not valid(name):
        raise ValidationError(
            f"a palace's name has 1 to {MAX_NAME_CHARS} characters, without '..', '/' or NUL; {name[:80]!r} is not one",
            field="palace",
        )
