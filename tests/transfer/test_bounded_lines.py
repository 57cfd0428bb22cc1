"""A line that is too long is passed over in pieces, and what follows it is read."""

from __future__ import annotations

import io

from hypothesis import given, strategies as st

from commonplace.transfer.bounded_lines import bounded_lines


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 10), st.booleans(), st.integers(1, 5))
def test_all_but_the_long_ones_are_given_and_nothing_is_skipped_unseen(
    lengths: list[int], longest: int, ends: bool, piece: int
) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    if not ends:
        data = data[:-1]
    whole = data.splitlines(keepends=True)
    passed: list[bytes] = []
    found = list(bounded_lines(io.BytesIO(data), longest, passed=passed.append, piece=piece))
    assert found == [line if len(line.removesuffix(b"\n")) <= longest else None for line in whole]
    assert b"".join(passed) == b"".join(line for line in whole if len(line.removesuffix(b"\n")) > longest)
    assert max(map(len, passed), default=0) <= max(longest + 1, piece)


def test_a_long_line_is_read_whole_where_it_may_be() -> None:
    asked: list[int] = []

    def allowed() -> bool:
        asked.append(file.tell())
        return len(asked) == 1

    file = io.BytesIO(b"a\n" + b"b" * 20 + b"\n" + b"c" * 20 + b"\nd\n")
    assert list(bounded_lines(file, 10, allowed=allowed)) == [b"a\n", b"b" * 20 + b"\n", None, b"d\n"]
    assert len(asked) == 2  # of no line that is short enough
