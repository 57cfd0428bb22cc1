"""One spelling for each server's address."""

from __future__ import annotations

import pytest

from commonplace.wire.errors import ValidationError
from commonplace.wire.origins import origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8420", "http://127.0.0.1:8420"), ("HTTPS://Example.ORG:443/mrp?x=1", "https://example.org"),
        ("http://example.org.:80", "http://example.org"), ("http://[::1]:8420/", "http://[::1]:8420"),
        ("https://bob@example.org", "https://example.org"),
    ],
)  # fmt: skip
def test_one_server_has_one_spelling(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize("url", ["", "alice", "ftp://example.org", "http://", "http://a:b", "http://a b", "http://[a"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        origin_of(url)
