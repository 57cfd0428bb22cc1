"""What can be seen to be wrong in a store's URL without asking anybody: it would be told only when a store is opened,
and of one that has copies as a failure that may pass."""

from __future__ import annotations

from commonplace.stores.urls import DATABASE_SCHEMES, split_options
from commonplace.wire.errors import ValidationError

_SERVERS = {
    "memorywire+http": "memorywire+http://127.0.0.1:8420",
    "memorywire+https": "memorywire+https://memory.example.org",
    "letta": "letta://127.0.0.1:8283",
    "letta+https": "letta+https://letta.example.org",
}


def require_well_formed(url: str) -> None:
    """Nothing of it is quoted, because it may hold a password."""
    scheme, _, _ = url.partition("://")
    address, given = split_options(url)
    if scheme in _SERVERS:
        _require_server(f"the URL of a {scheme}:// store", _http_url(address), _SERVERS[scheme])
    elif scheme in DATABASE_SCHEMES:
        from commonplace.stores.postgres.address import parse_address

        parse_address(url)
    elif scheme == "mem0+postgresql":
        from commonplace.stores.postgres.address import require_libpq_url

        require_libpq_url(url.removeprefix("mem0+"))
    if endpoint := given.get("embeddings") if scheme not in DATABASE_SCHEMES else None:
        _require_server(f"embeddings in the URL of a {scheme}:// store", endpoint, "http://127.0.0.1:8420/v1")


def _http_url(address: str) -> str:
    scheme, _, place = address.partition("://")
    return f"{'https' if scheme.endswith('+https') else 'http'}://{place}"


def _require_server(what: str, url: str, example: str) -> None:
    from commonplace.wire.http_client import is_server_url

    if not is_server_url(url):
        raise ValidationError(
            f"{what} names no server: it needs a host, and a port from 1 to 65535 where it has one; "
            f"write for example {example}",
            field="stores",
        )
