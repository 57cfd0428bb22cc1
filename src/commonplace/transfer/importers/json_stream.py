"""A JSON list element by element, however long the list: exports of years of chats do not fit into memory whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from commonplace.transfer.report import BrokenFile
from commonplace.wire.strict_json import refuse_constant, refuse_repeated_keys, syntax_problem

_CHUNK = 1 << 20
MAX_ELEMENT_CHARS = 256 << 20
_MARGIN = 64  # an error so near the end of what was read may only mean that more has to be read
_CHARACTER = re.compile(r"[^ \t\r\n]")


_decode = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=refuse_repeated_keys).raw_decode


def elements(file: BinaryIO, name: str = "") -> Iterator[tuple[int, Any]]:
    """Each element with the line it begins on; raises BrokenFile where the list cannot be read any further."""
    text = _Text(file, name)
    if text.next_character() != "[":
        raise text.broken("is not a JSON list")
    text.at += 1
    while (character := text.next_character()) != "]":
        if character == ",":
            text.at += 1
            continue
        if not character:
            raise text.broken("ends in the middle of the list")
        line = text.line
        yield line, text.value()
    text.at += 1
    if text.next_character():  # such as a second list, of files that were put together
        raise text.broken("has something after the end of the list")


class _Text:
    """A window over a file of UTF-8 that grows until what begins in it is whole."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self.at, self._ended = "", 0, False
        self._lines, self._counted = 1, 0

    @property
    def line(self) -> int:
        self._lines += self._text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._lines

    def broken(self, reason: str) -> BrokenFile:
        where = f"line {self.line}"
        return BrokenFile(f"{self._name} {where}".strip(), reason)

    def next_character(self) -> str:
        while True:
            if (found := _CHARACTER.search(self._text, self.at)) is not None:
                self.at = found.start()
                return found[0]
            self.at = len(self._text)
            if not self._more(_CHUNK):
                return ""

    def value(self) -> Any:
        want = _CHUNK
        while True:
            try:
                found, end = _decode(self._text, self.at)
            except RecursionError:
                raise self.broken("is nested too deeply") from None
            except json.JSONDecodeError as error:
                cut_short = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _MARGIN
                if cut_short and len(self._text) - self.at > MAX_ELEMENT_CHARS:
                    raise self.broken(
                        f"has an element of more than {MAX_ELEMENT_CHARS >> 20} million characters"
                    ) from None
                if not cut_short or not self._more(want):
                    self.at = max(self.at, min(error.pos, len(self._text)))
                    reason = "ends in the middle of an element" if self._ended and cut_short else syntax_problem(error)
                    raise self.broken(f"is not valid JSON: {reason}") from None
                want *= 2  # so that a long element is parsed a few times, not once for every chunk
                continue
            except ValueError as error:  # a constant that is not JSON, or an integer of thousands of digits
                raise self.broken(f"is not valid JSON: {str(error)[:80]}") from None
            if isinstance(found, (int, float)) and end + _MARGIN > len(self._text) and self._more(want):
                continue  # what looks like its end may be where the window ends: 1. of 1.5
            self.at = end
            return found

    def _more(self, size: int) -> bool:
        """Reads on; what lies before `at` is let go. Nothing moves where there is nothing more."""
        if self._ended:
            return False
        data = self._file.read(size)
        try:
            more = self._decoder.decode(data, final=not data)  # which keeps back bytes of half a character
        except UnicodeDecodeError as error:
            raise self.broken(f"is not UTF-8 text: {error.reason}") from None
        self._ended = not data
        if data or more:
            _ = self.line
            self._text, self.at, self._counted = self._text[self.at :] + more, 0, 0
        return bool(data or more)
