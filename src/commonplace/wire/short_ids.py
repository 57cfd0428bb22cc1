"""A memory's id in 22 letters and digits instead of 36 characters: short enough for a model to quote. Pure.

It is the same number in another base, so nothing is looked up and nothing can be ambiguous. Letters that are taken for
one another (0 and O, I and l) are left out.
"""

from __future__ import annotations

import re
from uuid import UUID

from commonplace.wire.canonical import is_uuid

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LENGTH = 22  # what 128 bits take in this base
_SHORT = re.compile(rf"[{_DIGITS}]{{{_LENGTH}}}")
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}


def shorten_id(id: str) -> str:
    """An id of ours in its short form; any other text as it is."""
    if not is_uuid(id):
        return id
    number, digits = UUID(id).int, ""
    for _ in range(_LENGTH):
        number, rest = divmod(number, len(_DIGITS))
        digits = _DIGITS[rest] + digits
    return digits


def expand_id(text: str) -> str:
    """The id that a short form stands for; any other text, an alias among them, as it is."""
    if _SHORT.fullmatch(text) is None:
        return text
    number = 0
    for digit in text:
        number = number * len(_DIGITS) + _VALUES[digit]
    id = str(UUID(int=number)) if number < 1 << 128 else ""
    return id if is_uuid(id) and UUID(id).version == 7 else text
