"""What can be seen to be wrong in a store's URL without asking anybody: it would be told only when a store is opened,
and of one that has copies as a failure that may pass."""

from __future__ import annotations

import re
from collections.abc import Sequence

from commonplace.stores.urls import (
    DATABASE_SCHEMES,
    FILE_SCHEMES,
    MEM0_IN_DATABASE,
    has_scheme,
    holds_secret,
    split_options,
)
from commonplace.wire.errors import ValidationError

_LOCAL_SCHEMES = (*FILE_SCHEMES, "mem0", "cognee", "memory")
_MAY_SURROUND_SECRET = re.compile(r"[@:=&]")


def require_urls(urls: Sequence[str]) -> None:
    """Refuse what is no URL at all among those that were given together. It is quoted where it cannot be a part of a
    password with a space in it: where none of them is of a server."""
    for url in urls:
        if has_scheme(url):
            _require_text(url)
            continue
        local = all(each.partition("://")[0] in _LOCAL_SCHEMES for each in urls if has_scheme(each))
        quotable = local and len(urls) > 1 and not holds_secret(" ".join(urls)) and not _MAY_SURROUND_SECRET.search(url)
        raise ValidationError(
            f"{f'{url!r:.80}' if quotable else 'what names the store'} is not a store URL; "
            "write for example sqlite://./memories.db",
            hint="spaces separate the URLs in COMMONPLACE_STORES: give one whose path has a space by --store or in "
            "commonplace.toml",
            field="stores",
        )


def require_well_formed(url: str) -> None:
    """Nothing of it is quoted, because it may hold a password."""
    scheme, _, _ = url.partition("://")
    if "\0" in url:
        raise ValidationError(
            f"the URL of the {scheme}:// store has the character 0, which no file and no server has in its name",
            field="stores",
        )
    if scheme in DATABASE_SCHEMES:
        from commonplace.stores.postgres.address import parse_address

        parse_address(url)
    elif scheme == MEM0_IN_DATABASE:
        from commonplace.stores.postgres.address import require_libpq_url

        require_libpq_url(url.removeprefix("mem0+"))
    elif endpoint := split_options(url)[1].get("embeddings"):
        from commonplace.wire.http_client import is_server_url

        if not is_server_url(endpoint):
            raise ValidationError(
                f"embeddings in the URL of a {scheme}:// store names no server: it needs a host, and a port from 1 to "
                "65535 where it has one; write for example http://127.0.0.1:8420/v1",
                field="stores",
            )


def _require_text(url: str) -> None:
    """SQLite and libpq take no other names."""
    try:
        url.encode()
    except UnicodeEncodeError:
        scheme = url.partition("://")[0]
        raise ValidationError(f"the URL of the {scheme}:// store is not UTF-8 text", field="stores") from None
