"""Bringing a backup back: checked as a copy, then put in the place of the store, which is kept aside.

It works on files that nobody has open, so it is a function and no method of an engine.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.ledger.ledger import Ledger
from commonplace.engine.outbox.stores import Stores
from commonplace.engine.peers.identity import Identity
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.runs.runs import Runs
from commonplace.engine.transfer.migration_marks import require_whole
from commonplace.engine.upkeep.upkeep import Upkeep
from commonplace.stores.base import Primary
from commonplace.wire.durable import sync_file, sync_folder
from commonplace.wire.errors import Conflict, NotFound, OperatorActionRequired, UnusableStore, ValidationError
from commonplace.wire.record import Principal

_HARMLESS = {"vectors"}  # what `reindex` makes later is no reason to refuse a backup


async def restore_backup(
    backup: str | Path, database: str | Path, *, replace_existing: bool = False, dry_run: bool = False
) -> dict[str, Any]:
    """Put a backup in the place of a store; refused when it is damaged, or when there is a store and no consent."""
    from commonplace.stores.sqlite.files import (
        StoreFiles,
        make_private_folder,
        require_unused,
    )  # not before it is needed

    source, files = Path(backup).expanduser().absolute(), StoreFiles(Path(database).expanduser().absolute())
    if not source.is_file():
        raise NotFound(f"there is no backup {source}; `commonplace backup FILE` makes one")
    if source == files.database:
        raise ValidationError(f"{source} is the store itself; name a backup of it", field="backup")
    exists = files.database.exists()
    if exists and not replace_existing and not dry_run:
        raise Conflict(f"{files.database} is there already; --force puts the backup in its place and keeps it aside")
    make_private_folder(files.database.parent)
    room = files.database.with_name(f"{files.database.name}.restoring")
    shutil.rmtree(room, ignore_errors=True)  # of one that was killed
    make_private_folder(room)
    try:
        copy = room / files.database.name
        _copy(source, copy)
        try:
            found = await _examine(copy)
        except UnusableStore as fault:  # it speaks of our copy, which nobody can find, and of what to do with a store
            why, _, _ = fault.message.replace(str(copy), "it").partition(". ")
            raise UnusableStore(
                f"{source} cannot be restored: {why}. Nothing was changed; try another backup"
            ) from None
        found |= {"backup": str(source), "database": str(files.database), "replaces": exists}
        if dry_run:
            return {"dry_run": True, **found}
        if exists:
            require_unused(files)
        for derived in (files.segments, files.second_segments):  # made anew from the rows, whichever
            shutil.rmtree(derived, ignore_errors=True)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{files.vec0}{suffix}").unlink(missing_ok=True)
        if exists:
            found["kept"] = str(_keep(files.database, files.wal, files.backups))
        for left in (files.wal, Path(f"{files.database}-shm")):
            left.unlink(missing_ok=True)
        os.replace(copy, files.database)
        sync_folder(files.database.parent)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return found


def _copy(source: Path, target: Path) -> None:
    """The backup is never opened as a database, which might write to it."""
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file, source.open("rb") as original:
        shutil.copyfileobj(original, file, 1 << 20)
        file.flush()
        sync_file(file.fileno())


async def _examine(copy: Path) -> dict[str, Any]:
    """What is in it; refused unless everything in it is in order."""
    from commonplace.stores.sqlite import SqliteStore
    from commonplace.stores.sqlite.files import require_begun

    require_begun(copy)  # a copy that failed leaves an empty file, which would open as a new store
    store: Primary = SqliteStore(copy)
    try:
        await require_whole(store)
        core = Core(store)
        log = RecallLog(core)
        ledger = Ledger(core, log, Identity(None))
        upkeep = Upkeep(core, log, ledger, Runs(core), Reviews(core), Stores(core))
        findings = await upkeep.doctor(Principal(), repair=False)
        wrong = [f for f in findings if not f.ok and f.check not in _HARMLESS and not f.check.startswith("time of")]
        if wrong:
            raise OperatorActionRequired(
                f"the backup is damaged ({wrong[0].check}: {wrong[0].detail}); nothing was changed, try an older one"
            )
        tenants = await store.tenants()
        heads = [await store.audit_head(tenant) for tenant in tenants]
        who = [replace(Principal(), tenant=tenant) for tenant in tenants]
        statuses = [await upkeep.status(each) for each in who]
        return {"memories": sum(s["memories"] for s in statuses), "audit_entries": sum(n for n, _ in heads)}
    finally:
        await store.close()


def _keep(database: Path, log: Path, folder: Path) -> Path:
    """What was there, where the next erasure or compaction removes it like every copy of ours.

    It stays in its place, too, until the backup takes that: who is killed between the two must not leave a folder in
    which the next process begins an empty store.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    number = 1
    while (kept := folder / f"before-restore-{number}.db").exists():
        number += 1
    try:
        os.link(database, kept)
    except OSError:  # a file system that has no links
        _copy(database, kept)
    if log.exists():  # of a damaged store alone: whoever is alone with a sound one ends its log
        os.replace(log, Path(f"{kept}-wal"))
    sync_folder(folder)
    return kept
