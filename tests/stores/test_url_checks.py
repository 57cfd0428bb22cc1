from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from commonplace import plugins
from commonplace.stores.url_checks import require_urls
from commonplace.wire.errors import OperatorActionRequired, ValidationError

SERVERS = ["memorywire+http", "memorywire+https", "letta", "letta+https"]
DATABASES = ["postgresql", "postgres", "pgvector", "mem0+postgresql"]
PLACES = ["", "/path", ":8420", "h:99999", "h:0", "h:-1", "h:abc", "[::1", "ho st", "h\x7f"]
BAD = [
    *(f"{scheme}://{place}" for scheme in SERVERS for place in PLACES),
    *(f"{scheme}://alice:geheim@{place}" for scheme in SERVERS for place in ("", ":1", "h:99999")),
    *(f"{scheme}://h/n?embeddings={bad}" for scheme in ("letta", "letta+https") for bad in ("h", "http://", "ftp://h")),
    *(f"cognee://n?embeddings={bad}" for bad in ("h", "http://", "http://h:99999/v1", "file:///etc")),
    *(f"{scheme}://{place}" for scheme in ("mem0", "cognee") for place in ("", ".", "..", "a/b", "../a")),
    *(f"{scheme}://alice:geheim@{place}" for scheme in DATABASES for place in ("h:99999/d", "h:0/d", "h:a/d", "[::1")),
    *(
        f"{scheme}://alice:geheim@h/d?{bad}"
        for scheme in DATABASES
        for bad in ("connect_timeout=abc", "keepalives_idle=", "tcp_user_timeout=1.5", "sslmode=yes", "bogus=1")
    ),
    *(f"{scheme}://" for scheme in ("sqlite", "sqlite-vec")),
    *(f"{scheme}://alice:geheim@\0" for scheme in ("sqlite", "sqlite-vec", "mem0", "cognee", *SERVERS, *DATABASES)),
]  # fmt: skip
GOOD = [
    *(f"{scheme}://{place}" for scheme in SERVERS for place in ("h", "h:1", "h:65535/p", "[::1]:8420", "alice:pw@h")),
    "letta://h/n?embeddings=https://e.example/v1", "cognee://n", "cognee:///srv/c?embeddings=http://h:1/v1", "mem0://n",
    "mem0:///srv/m", "mem0+postgresql://h", "mem0+postgresql://h/d?connect_timeout=3&application_name=x",
    *(f"{scheme}://h,i:5433/d?connect_timeout=3&keepalives=0&sslmode=require&ssl=true" for scheme in DATABASES[:3]),
    "postgresql:///d?host=/run/postgresql&port=5433", "sqlite://./m.db", "sqlite://:memory:", "memory://",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The URL is looked at, whichever products there are here."""
    find = importlib.util.find_spec
    there: dict[str, Any] = {"mem0": object(), "cognee": object(), "sqlite_vec": object()}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: there.get(name) or find(name))


@pytest.mark.parametrize("url", BAD)
def test_what_can_be_seen_to_be_wrong_is_refused_before_anything_is_opened(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        plugins.opener(url)
    assert "geheim" not in str(refused.value.message)


@pytest.mark.parametrize("url", GOOD)
def test_what_may_be_right_is_opened(url: str) -> None:
    plugins.opener(url)


def test_a_package_that_is_missing_is_said_before_the_url_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OperatorActionRequired, match="needs the package psycopg"):
        plugins.opener("postgresql://h/d?connect_timeout=abc")


SPACED = ["sqlite://./m.db", "sqlite://./sp", "ace.db"]


def test_a_part_of_a_path_with_a_space_is_quoted_with_where_it_can_be_given() -> None:
    with pytest.raises(ValidationError, match=r"^'ace\.db' is not a store URL.*; spaces separate .* by --store"):
        require_urls(SPACED)
    require_urls(SPACED[:2])


@pytest.mark.parametrize("urls", [
    ["sqlite://./m.db", "postgresql://alice:ge", "heim", "x@h/d"], ["sqlite://./m.db", "letta://h?token=ge", "heim"],
    ["sqlite://./m.db?password=ge", "heim"], ["alice:heim@h"], ["sqlite://./m.db", "password=heim"],
    ["heim", "memorywire+http://h"],
])  # fmt: skip
def test_what_may_be_a_part_of_a_password_is_not_quoted(urls: list[str]) -> None:
    with pytest.raises(ValidationError, match="what names the store is not a store URL") as refused:
        require_urls(urls)
    assert "heim" not in str(refused.value)
