"""Where a page ended, as text: what it was comes back, anything else is refused."""

from __future__ import annotations

import pytest

from commonplace.stores.cursors import decode_cursor, encode_cursor
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Memory


@pytest.mark.parametrize("at", [0, 1, 1_772_323_200_000, -5, 2**63 - 1])
@pytest.mark.parametrize("id", ["0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f", "a.b", "x"])
def test_a_cursor_says_where_the_page_ended(at: int, id: str) -> None:
    assert decode_cursor(encode_cursor(Memory(id, "local", "alice", "semantic", "tea", created_at=at))) == (at, id)


@pytest.mark.parametrize(
    "cursor",
    ["", ".", "abc", "abc.", ".id", "zz.id", "0x1f.id", " 1f.id", "1F.id", "1_f.id", "01f.id", f"{2**63:x}.id", "-.id"],
)
def test_anything_else_is_refused_in_a_sentence(cursor: str) -> None:
    with pytest.raises(ValidationError, match="pass back next_cursor as it came"):
        decode_cursor(cursor)


def test_a_long_one_is_not_repeated() -> None:
    with pytest.raises(ValidationError) as refused:
        decode_cursor("x" * 10_000)
    assert len(refused.value.message) < 200
