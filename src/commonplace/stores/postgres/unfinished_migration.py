"""Half of a store set aside: its schema gets another name, and all that is in it stays."""

from __future__ import annotations

from dataclasses import replace

from commonplace.stores.copies import UNFINISHED_MIGRATION, no_unfinished_migration
from commonplace.stores.postgres.address import Address
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.schema import TABLES
from commonplace.stores.postgres.store import open_session
from commonplace.wire.errors import Conflict

_OTHERS = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f') "
    "AND relname !~ %s LIMIT 1"
)
#: Which schema a connection uses the server does not tell.
_IN_USE = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND application_name = current_setting('application_name') LIMIT 1"
)
_LOOKS, _SECONDS = 20, 0.1  # the server forgets a connection some time after it was closed


def set_aside(address: Address) -> Address:
    """Rename it in one transaction, and give its new place; one that nobody fills, or that somebody may be using,
    stays as it is."""
    with open_session(address) as session:
        _require_unused(session, address)
        session.execute("BEGIN")
        _, kind, _ = UNFINISHED_MIGRATION
        if session.row("SELECT 1 FROM records WHERE kind = %s LIMIT 1", (kind,)) is None:
            raise no_unfinished_migration()
        if address.schema == "public":
            raise Conflict(
                "the schema public is not renamed, as every user of a database expects it there",
                hint="use another schema of this database: add ?schema=NAME to the URL",
            )
        if session.row(_OTHERS, (address.schema, TABLES)) is not None:
            raise Conflict(
                f"the schema {address.schema} has tables of others, too, which would be moved with it",
                hint="use another schema of this database: add ?schema=NAME to the URL",
            )
        name = _free_name(session, address.schema)
        session.execute(f'ALTER SCHEMA "{address.schema}" RENAME TO {name}')
        session.execute("COMMIT")
    return replace(address, schema=name)


def _require_unused(session: Session, address: Address) -> None:
    """Whoever is connected could go on writing into what has another name by then."""
    for _ in range(_LOOKS):  # each in a transaction of its own: within one the answer stays the same
        if session.row(_IN_USE) is None:
            return
        session.execute("SELECT pg_sleep(%s)", (_SECONDS,))
    raise Conflict(f"{address} is in use; stop what uses it (a server, a migration, an agent's MCP process) first")


def _free_name(session: Session, schema: str) -> str:
    taken = {name for (name,) in session.rows("SELECT nspname::text FROM pg_namespace")}
    number = 1
    while (name := f"{schema[:45]}_unfinished{f'_{number}' if number > 1 else ''}") in taken:
        number += 1
    return name
