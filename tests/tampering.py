"""Getting past what the store itself refuses, as whoever has its file can."""

from __future__ import annotations

from typing import Any


def drop_guards(db: Any) -> None:
    """From now on this connection, of any library, may change and remove entries of the ledger."""
    for (name,) in list(db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        db.execute(f"DROP TRIGGER {name}")
