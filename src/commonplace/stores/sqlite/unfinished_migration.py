"""Half of a store set aside under a name beside it, with its indexes; the folder of its backups stays."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

import apsw

from commonplace.stores.copies import UNFINISHED_MIGRATION, no_unfinished_migration
from commonplace.stores.sqlite.files import StoreFiles, connect, damaged, require_unused
from commonplace.wire.durable import sync_folder
from commonplace.wire.errors import OperatorActionRequired


def set_aside(database: Path) -> Path:
    """Move it and give its new place; one that nobody fills, or that somebody uses, stays where it is."""
    files = StoreFiles(database)
    require_unused(files)  # whose write-ahead log is in the file then
    _require_mark(files)
    aside = StoreFiles(_free_name(database))
    try:
        # What is derived goes first: stopped in between, the store is still there and makes it anew.
        for old, new in (
            (files.segments, aside.segments),
            (files.second_segments, aside.second_segments),
            (files.vec0, aside.vec0),
        ):
            with contextlib.suppress(FileNotFoundError):
                os.rename(old, new)
        os.rename(database, aside.database)
        sync_folder(database.parent)
    except OSError as error:
        raise OperatorActionRequired(
            f"cannot move {database} to {aside.database}: {error.strerror}",
            hint="give the folder write permission, then repeat it",
        ) from error
    return aside.database


def _free_name(database: Path) -> Path:
    names = (f"{database.stem}.unfinished{f'-{n}' if n > 1 else ''}{database.suffix}" for n in itertools.count(1))
    taken = os.listdir(database.parent)
    # None of the files beside it may be left from before: whoever deleted an earlier one may have left its segments.
    return next(p for p in map(database.with_name, names) if not any(each.startswith(f"{p.stem}.") for each in taken))


def _require_mark(files: StoreFiles) -> None:
    _, kind, _ = UNFINISHED_MIGRATION
    db = connect(files.database)
    try:
        if not db.execute("SELECT 1 FROM records WHERE kind = ? LIMIT 1", (kind,)).fetchall():
            raise no_unfinished_migration()
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:
        raise damaged(files.database, str(error)) from error
    finally:
        db.close()
