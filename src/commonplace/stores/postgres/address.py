"""Where a database is, from the URL of a store: what is ours in it and what is libpq's."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from commonplace.stores.urls import ENCODED, NO_PORT, check_login, is_port
from commonplace.wire.errors import ValidationError

SCHEMA, POOL = "commonplace", 8
_EXAMPLE = "postgresql://alice:secret@db.example.com:5432/memories"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_MAX_POOL = 100
_OURS = ("schema", "pool", "reads")
_READS = ("primary", "any")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_NUMBERS = ("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
_SECONDS = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]*)?")  # psycopg reads them, and takes a fraction
_WORDS = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
}

#: What libpq is told where the URL says nothing. A host that only reads is not the one to write to: with several hosts
#: this finds whichever was promoted. The rest notices within seconds that a host is gone.
_DEFAULTS = {
    "target_session_attrs": "read-write",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "commonplace",
}


@dataclass(slots=True, frozen=True)
class Address:
    parameters: dict[str, Any]  # of libpq
    schema: str
    pool: int
    reads_any: bool = False  # whether a server that takes no writes may answer reads while there is none that does

    def __str__(self) -> str:
        """For messages: without user and password."""
        hosts = str(self.parameters.get("host") or "localhost").split(",")
        ports = (str(self.parameters.get("port") or "5432").split(",") * len(hosts))[: len(hosts)]
        places = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
        return f"PostgreSQL at {places}/{self.parameters.get('dbname') or ''}"

    @property
    def user(self) -> str:
        return str(self.parameters.get("user") or "")

    @property
    def of_each_server(self) -> list[Address]:
        """The same place on each host by itself, where a server that takes no writes will do."""
        lists = {
            name: str(self.parameters[name]).split(",")
            for name in ("host", "hostaddr", "port")
            if self.parameters.get(name)
        }
        count = max((len(each) for name, each in lists.items() if name != "port"), default=1)
        return [
            replace(
                self,
                parameters={
                    **self.parameters,
                    **{name: each[n] if len(each) > 1 else each[0] for name, each in lists.items()},
                    "target_session_attrs": "any",
                },
            )
            for n in range(count)
        ]


def parse_address(url: str) -> Address:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise _wrong("it cannot be read") from None
    check_login(url)
    ours = {name: value for name, value in query if name in _OURS}
    rest = urlencode([(name, value) for name, value in query if name not in ours])
    # libpq lists all it knows but ssl=true, which JDBC writes and it takes for sslmode=require.
    known = {"ssl", *_OURS, *(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())}
    strange = [name for name, _ in query if name not in known]
    if strange:
        # What comes before an @ may be a part of a password.
        named = "one of its parameters" if "@" in parts.query else repr(strange[0])
        raise _wrong(f"{named:.80} is no parameter; there are {', '.join(_OURS)} and those of libpq")
    given = require_libpq_url(f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else ""))
    if not given.get("dbname"):
        raise _wrong("it names no database")
    schema, pool, reads = ours.get("schema", SCHEMA), ours.get("pool", str(POOL)), ours.get("reads", "primary")
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise _wrong("schema must be a plain name of small letters, digits and _")
    if not pool.isdecimal() or not 1 <= int(pool) <= _MAX_POOL:
        raise _wrong(f"pool must be a number of connections from 1 to {_MAX_POOL}")
    if reads not in _READS:
        raise _wrong(f"reads must be {' or '.join(_READS)}")
    # Compiling a plan takes longer than running any of ours; and a filtered search must not end with the first few.
    ours_first = f"-c search_path={schema},public -c jit=off -c hnsw.iterative_scan=strict_order"
    options = f"{ours_first} {given.get('options') or ''}".rstrip()
    return Address({**_DEFAULTS, **given, "options": options}, schema, int(pool), reads == "any")


def require_libpq_url(url: str) -> dict[str, Any]:
    """Its parameters; refused where libpq or psycopg would refuse it, with the name of the parameter."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose text quotes the URL, or a part of it
        raise _wrong("it cannot be read") from None
    if not all(map(is_port, filter(None, str(given.get("port") or "").split(",")))):
        raise _wrong(NO_PORT)
    if not _SECONDS.fullmatch(str(given.get("connect_timeout", 0)).strip()):
        raise _wrong("connect_timeout must be a number of seconds")
    for name in _NUMBERS:
        if not _NUMBER.fullmatch(str(given.get(name, 0)).strip()):
            raise _wrong(f"{name} must be a whole number")
    for name, words in _WORDS.items():
        if given.get(name, words[0]) not in words:
            raise _wrong(f"{name} must be one of {', '.join(words)}")
    return given


def _wrong(why: str) -> ValidationError:
    """Nothing of the URL is in it but what cannot be a part of a password."""
    return ValidationError(
        f"this is no address of a PostgreSQL database: {why}",
        hint=f"write for example {_EXAMPLE}; {ENCODED}",
        field="store",
    )
