"""Whether URLs lead to one store, however they are written: a store that had copies of itself could take none of them,
and what waits for it would be tried for ever. Nothing is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from commonplace.stores.urls import (
    DATABASE_SCHEMES,
    MEM0_IN_DATABASE,
    database_file,
    folder_of,
    is_ephemeral,
    parse_store_url,
    split_options,
)
from commonplace.wire.errors import ValidationError
from commonplace.wire.shown_urls import shown_url

_FOLDERS = ("mem0", "cognee")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_POSTGRES_PORT = "5432"
_SCHEMA = _ARCHIVE = "commonplace"  # where a URL names none
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(.*))?")


def require_different(urls: Sequence[str], folder: Path, identities: Mapping[str, str | None] | None = None) -> None:
    """Refuse a store that is named twice; `folder` is the data directory, and `identities` what servers say that their
    databases are, whose addresses need not tell."""
    seen: list[tuple[frozenset[str], str]] = []
    for url in urls:
        plain = parse_store_url(url).url
        found = store_locations(plain, folder)
        if identity := (identities or {}).get(url):
            found |= {identity}
        for others, other in seen:
            if found & others:
                raise ValidationError(
                    f"{shown_url(other)} and {shown_url(url)} name the same store, which cannot have copies of itself; "
                    "name each store once",
                    field="stores",
                )
        seen.append((found, url))


def is_same(one: str, other: str, folder: Path) -> bool:
    """As far as the addresses tell; False where one of them cannot be read."""
    try:
        found = [store_locations(parse_store_url(url).url, folder) for url in (one, other)]
    except ValidationError:
        return False
    return one == other or bool(found[0] & found[1])


def is_database(url: str) -> bool:
    """Whether a server can be asked which store it is."""
    return url.partition("://")[0] in (*DATABASE_SCHEMES, MEM0_IN_DATABASE)


def products_folder(url: str, folder: Path) -> Path | None:
    """The folder that a product in this process keeps everything in; None of any other store."""
    scheme, _, place = split_options(url)[0].partition("://")
    return folder_of(place, folder / scheme) if scheme in _FOLDERS else None


def store_locations(url: str, folder: Path) -> frozenset[str]:
    """What two URLs of one store have at least one of in common; nothing of a store that is gone with the process."""
    scheme, _, place = url.partition("://")
    if is_ephemeral(url) or not place:
        return frozenset()
    if (file := database_file(url)) is not None:
        return frozenset(_of_file(file))
    if is_database(url):
        kind = "mem0" if scheme == MEM0_IN_DATABASE else "postgresql"
        return frozenset(f"{kind}://{each}" for each in _in_databases(url))
    if scheme in _FOLDERS:
        where = products_folder(url, folder)
        return frozenset() if where is None else frozenset({f"{scheme}://{os.path.realpath(where)}"})
    return frozenset({_of_server(url)})


def _of_file(file: Path) -> Iterable[str]:
    yield f"file://{os.path.realpath(file)}"
    try:
        found = file.stat()
    except (OSError, ValueError):  # one that is begun now, or cannot be: opening it says why
        return
    yield f"inode://{found.st_dev}/{found.st_ino}"  # a file may have several names


def _in_databases(url: str) -> Iterable[str]:
    """Each host with the database: of several, whichever is there at the time is asked."""
    try:
        parts = urlsplit(url)
    except ValueError:  # opening it says what is wrong with it
        return
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    login_free = parts.netloc.rpartition("@")[2]
    named = [_host_and_port(each) for each in login_free.split(",")]
    ports = (given.get("port") or os.environ.get("PGPORT") or _POSTGRES_PORT).split(",")
    lists = [given[name].split(",") for name in ("host", "hostaddr") if given.get(name)]
    if not lists and not login_free:
        lists = [os.environ.get("PGHOST", "").split(",")]
    hosts = [(host, ports[n] if n < len(ports) else ports[0]) for each in lists for n, host in enumerate(each)]
    database = given.get("dbname") or unquote(parts.path.lstrip("/"))
    schema = given.get("schema") or _SCHEMA
    for host, port in hosts or [(host, port or ports[0]) for host, port in named]:
        yield f"{_host(host)}:{port or _POSTGRES_PORT}/{database}/{schema}"


def _host_and_port(text: str) -> tuple[str, str]:
    found = _HOST.fullmatch(text)
    return (unquote(found[1]), found[2] or "") if found else (text, "")


def _host(host: str) -> str:
    plain = host.strip("[]").lower()
    return "localhost" if plain in _THIS_MACHINE else plain


def _of_server(url: str) -> str:
    scheme, _, place = url.partition("://")
    address, _, query = place.partition("?")
    kind, _, transport = scheme.partition("+")
    if kind not in ("letta", "memorywire"):  # of what a package offers only its own URL is known
        return f"{scheme}://{address.rpartition('@')[2]}?{query}"
    authority, _, path = address.rpartition("@")[2].partition("/")
    host, port = _host_and_port(authority)
    path, port = path.strip("/"), port or {"": "80", "http": "80", "https": "443"}.get(transport, "")
    if kind == "letta":
        return f"letta://{_host(host)}:{port}/{path or _ARCHIVE}"
    # Who asks decides whose memories they are: two tokens may be of two tenants.
    token = dict(parse_qsl(query)).get("token_env", "")
    return f"memorywire://{_host(host)}:{port}/{path}?{token}"
