"""What stands above a note."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.transfer.importers.front_matter import split


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no fields", {}, "no fields"),
        ("---\na: 1\n---\nbody", {"a": 1}, "body"),
        ("\ufeff---\na: x\n...\nbody", {"a": "x"}, "body"),
        ("---\nnever closed", {}, "---\nnever closed"),
        ("---\ntags: [a, 'b c', 3]\n---\n", {"tags": ["a", "b c", 3]}, ""),
        ('---\ntags:\n- a\n- "b"\nx: y # why\n---\n', {"tags": ["a", "b"], "x": "y"}, ""),
        ("---\ntags:\n  - a\n---\n", {"tags": ["a"]}, ""),
        ("---\nurl: https://example.com/a:b\n---\n", {"url": "https://example.com/a:b"}, ""),
        ("---\na: true\nb: null\nc: -1.5\nd: '007'\n---\n", {"a": True, "b": None, "c": -1.5, "d": "007"}, ""),
        ("---\nnested:\n  a: 1\n  b: 2\n---\n", {"nested": "  a: 1\n  b: 2"}, ""),
        ("---\n# a comment\n\ntitle: T: U\n---\n", {"title": "T: U"}, ""),
    ],
)
def test_fields_and_body(text: str, fields: dict[str, Any], body: str) -> None:
    assert split(text) == (fields, body)
