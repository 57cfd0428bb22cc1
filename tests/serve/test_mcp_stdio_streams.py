"""Bytes as they arrive on stdin, cut into lines."""

from __future__ import annotations

from hypothesis import given, strategies as st

from commonplace.serve.mcp.stdio_streams import LineSplitter

TOO_LONG = None


@given(
    st.lists(st.sampled_from([b"a", b"bc", b" ", b"\n", b"\r\n", b"a\nb", b"xxxxx"]), max_size=30), st.integers(1, 8)
)
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], limit: int) -> None:
    """What is too long is said once, wherever its end comes, and the next line is whole."""
    seen: list[bytes | None] = []
    splitter = LineSplitter(seen.append, lambda: seen.append(TOO_LONG), limit)
    for piece in pieces:
        splitter.feed(piece)
    splitter.end()
    lines = b"".join(pieces).split(b"\n")
    assert seen == [line if len(line) <= limit else TOO_LONG for line in lines if len(line) > limit or line.strip()]
