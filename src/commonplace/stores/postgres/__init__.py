"""PostgreSQL with pgvector as the primary: for several servers on one database, and for more than one machine holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.__about__ import install_command
from commonplace.wire.errors import OperatorActionRequired
from commonplace.wire.record import Clock, system_clock

if TYPE_CHECKING:
    from commonplace.stores.base import StoreSettings
    from commonplace.stores.postgres.store import PostgresStore

__all__ = ["database_identity", "open_url", "require_creatable", "set_aside", "store_exists"]


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> PostgresStore:
    """`postgresql://user:password@host:port/database?schema=commonplace&pool=8`, or with several hosts.

    All of libpq's parameters may be given, too.
    """
    _require_psycopg()
    from commonplace.stores.postgres.store import PostgresStore

    return PostgresStore(url, clock)


def store_exists(url: str) -> bool:
    """Whether tables of ours are in that database and schema."""
    _require_psycopg()
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import has_tables

    return has_tables(parse_address(url))


def require_creatable(url: str) -> None:
    """Refuse a database in which no store could be begun; nothing of it stays."""
    _require_psycopg()
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import try_to_begin

    try_to_begin(parse_address(url))


def set_aside(url: str) -> str:
    """Give the schema of half a store another name; where it is then."""
    _require_psycopg()
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.unfinished_migration import set_aside

    moved = set_aside(parse_address(url))
    return f"{moved}?schema={moved.schema}"


def database_identity(url: str) -> str | None:
    """The same for the same database and schema on the same server; None where it does not answer."""
    _require_psycopg()
    from commonplace.stores.postgres.address import parse_address
    from commonplace.stores.postgres.store import identity

    return identity(parse_address(url))


def _require_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise OperatorActionRequired(
            f"postgresql:// needs the package psycopg ({error})", hint=install_command("postgresql")
        ) from error
