"""A list is read element by element, whatever the size of its pieces, and what is broken is named by its line."""

from __future__ import annotations

import io
import json
import tracemalloc
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.transfer.importers import json_stream
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.report import BrokenFile

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=6), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_it_gives_what_json_gives(values: list[Any], chunk: int, indent: int | None, plain: bool) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=plain).encode("utf-8", "surrogatepass")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return
    before, json_stream._CHUNK = json_stream._CHUNK, chunk
    try:
        assert [value for _, value in elements(io.BytesIO(data))] == json.loads(data)
    finally:
        json_stream._CHUNK = before


@pytest.mark.parametrize("after", [b"[2]", b"\n[2]\n", b" x", b"]"])
def test_what_stands_after_the_list_is_named(after: bytes) -> None:
    """Such as a second list, of files that were put together: half of them would be missing."""
    with pytest.raises(BrokenFile, match="something after the end of the list"):
        list(elements(io.BytesIO(b"[1]" + after)))
    assert [value for _, value in elements(io.BytesIO(b"[1] \n\n"))] == [1]


def test_an_element_that_is_too_long_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT_CHARS", 2 << 20)
    with pytest.raises(BrokenFile, match="line 2: has an element of more than 2 million characters"):
        list(elements(io.BytesIO(b'[1,\n"' + b"x" * (8 << 20) + b'"]')))


def test_each_element_has_its_line() -> None:
    data = b'[\n {"a":\n 1},\n\n {"b": 2}\n]'
    assert list(elements(io.BytesIO(data))) == [(2, {"a": 1}), (5, {"b": 2})]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "line 1: is not a JSON list"),
        (b'{"a": 1}', "line 1: is not a JSON list"),
        (b'[\n{"a": 1},\n{"b": oops, "c": "' + b"x" * 200 + b'"}]', "line 3: is not valid JSON: Expecting value"),
        (b'[\n{"a": 1},\n{"b": "cut', "line 3: is not valid JSON: ends in the middle of an element"),
        (b'[\n{"a": "\t' + b"x" * 200 + b'"}]', "line 2: is not valid JSON: Invalid control character"),
        (b'[\n{"a": 1}', "line 2: ends in the middle of the list"),
        (b'[\n"\xff"]', "is not UTF-8 text: invalid start byte"),
        (b"[" + b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_broken_is_named_by_its_line(data: bytes, says: str) -> None:
    with pytest.raises(BrokenFile) as broken:
        list(elements(io.BytesIO(data)))
    assert str(broken.value).endswith(says)


def test_what_came_before_the_break_was_given() -> None:
    reading = elements(io.BytesIO(b'[1, 2, {"a"'))
    assert [next(reading)[1], next(reading)[1]] == [1, 2]
    with pytest.raises(BrokenFile):
        next(reading)


def test_a_long_list_is_not_held_whole() -> None:
    one = json.dumps({"text": "x" * 10_000}).encode() + b","

    class Endless(io.RawIOBase):
        """A list of 200 MB, made as it is read."""

        def __init__(self) -> None:
            self.given, self.begun, self.left = 0, False, b""

        def read(self, size: int = -1) -> bytes:
            if not self.begun:
                self.begun, self.left = True, b"["
            while len(self.left) < size and self.given < 200_000_000:
                self.left += one * 100
                self.given += len(one) * 100
            data, self.left = self.left[:size], self.left[size:]
            return data

    tracemalloc.start()
    try:
        for _ in islice(elements(Endless()), 5_000):  # type: ignore[arg-type]
            pass  # fifty megabytes are enough to see it
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
