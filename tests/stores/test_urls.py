from __future__ import annotations

import pytest

from commonplace.stores.urls import shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://alice:secret@db.example/memories", "postgresql://…@db.example/memories"),
        ("postgresql://alice:p@ss@db.example/memories", "postgresql://…@db.example/memories"),
        ("mem0://x?api_key=abc&token=def", "mem0://x?api_key=…&token=…"),
        ("sqlite:///data/commonplace.db", "sqlite:///data/commonplace.db"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
