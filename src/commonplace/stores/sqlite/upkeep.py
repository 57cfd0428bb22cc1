"""Backup, compaction and the doctor's rounds of the embedded store."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from commonplace.stores.base import Finding, Progress
from commonplace.stores.sqlite import rows
from commonplace.stores.sqlite.files import StoreFiles, backup_to
from commonplace.stores.sqlite.index import Catalogue
from commonplace.stores.sqlite.source import Rows
from commonplace.wire.canonical import content_hash
from commonplace.wire.errors import Conflict, Unavailable

_TEMPORARY = "SQLITE_TMPDIR"
_compacting = threading.Lock()  # the environment is the whole process's


def sizes(files: StoreFiles, catalogue: Catalogue) -> dict[str, Any]:
    database = 0
    for path in (files.database, files.wal):
        with contextlib.suppress(FileNotFoundError):
            database += path.stat().st_size
    index = catalogue.sizes()
    return {"database": str(files.database), "size_bytes": database + index["bytes"], "index": index}


def backup(db: apsw.Connection, target: Path, progress: Progress | None) -> int:
    if target.exists():
        raise Conflict(f"{target} exists already; choose another name or remove it first")
    db.execute("SELECT 1 FROM meta").fetchall()  # the copy is of this instant, whatever is written meanwhile
    try:
        backup_to(db, target, progress)
    except (OSError, apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
        raise Unavailable(f"the backup to {target} failed: {error}; nothing was left there") from error
    return target.stat().st_size


def compact(db: apsw.Connection, files: StoreFiles, progress: Progress | None) -> None:
    """On the writer's connection. Readers go on meanwhile; pages they still need are cleared by the next compact."""
    if progress:
        progress(0, 2)
    with _temporary_files_beside(db, files):
        db.execute("VACUUM")
    if progress:
        progress(1, 2)
    if not truncate_log(db):
        raise Unavailable(
            f"{files.database} is compacted, but what was there before is still in {files.wal.name}, because another "
            "program is reading it; run `commonplace compact` again"
        )
    if progress:
        progress(2, 2)


@contextlib.contextmanager
def _temporary_files_beside(db: apsw.Connection, files: StoreFiles) -> Iterator[None]:
    """Have SQLite keep its temporary copy on the store's own disk: in memory it would be as large as the store."""
    with _compacting:
        before = os.environ.get(_TEMPORARY)
        os.environ[_TEMPORARY] = str(files.database.parent.absolute())
        db.execute("PRAGMA temp_store=FILE")
        try:
            yield
        finally:
            db.execute("PRAGMA temp_store=MEMORY")
            if before is None:
                del os.environ[_TEMPORARY]
            else:
                os.environ[_TEMPORARY] = before


def truncate_log(db: apsw.Connection) -> bool:
    """Empty the write-ahead log; False when another process's reading kept some of it."""
    busy, _, _ = rows.one(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def scopes(db: apsw.Connection) -> list[int]:
    return [scope for (scope,) in db.execute("SELECT id FROM scopes ORDER BY id")]


def erased_scopes(db: apsw.Connection) -> list[int]:
    return [scope for (scope,) in db.execute("SELECT DISTINCT scope_id FROM erasures ORDER BY scope_id")]


_CHECKS: tuple[tuple[str, str, str], ...] = (
    ("terms", "SELECT count(*) FROM memories WHERE status = 'live' AND terms = x''", "{} memories have no terms"),
    (
        "audit of memories",
        "SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT 1 FROM audit_parts p WHERE p.memory_id = m.id)",
        "{} memories have no audit entry",
    ),
    (
        "versions",
        "SELECT count(*) FROM versions v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = v.mid)",
        "{} versions belong to no memory",
    ),
    (
        "history",
        "SELECT count(*) FROM memories m WHERE m.version <> 1 + (SELECT count(*) FROM versions v WHERE v.mid = m.mid)",
        "{} memories lack some of their versions",
    ),
    (
        "aliases",
        "SELECT count(*) FROM aliases a WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = a.mid)",
        "{} aliases name nothing",
    ),
    ("erasure", "SELECT count(*) FROM erasures e JOIN memories m ON m.id = e.id", "{} memories exist that were erased"),
    (
        "sequence",
        "SELECT count(*) FROM memories m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
        "WHERE m.seq > t.seq",
        "{} memories are ahead of their tenant's sequence",
    ),
    (
        "audit of statements",
        "SELECT count(*) FROM triples t WHERE NOT EXISTS (SELECT 1 FROM audit_parts p WHERE p.memory_id = t.id)",
        "{} statements have no audit entry",
    ),
    (
        "statements",
        "SELECT count(*) FROM triples a JOIN triples b ON b.scope_id = a.scope_id AND b.subject_key = a.subject_key "
        "AND b.predicate = a.predicate AND b.valid_from >= a.valid_from "
        "AND b.valid_from < coalesce(a.valid_to, 1 << 60) WHERE b.subject = a.subject AND b.tid <> a.tid "
        "AND (b.valid_to IS NULL OR b.valid_to > b.valid_from)",
        "{} statements hold while another of their subject and predicate does",
    ),
)


def examine_rows(db: apsw.Connection, view: Rows, progress: Progress | None) -> list[Finding]:
    """What can be wrong in the database itself; nothing here can be repaired from elsewhere."""
    total = len(_CHECKS) + 3
    step = _stepper(progress, total)
    problems = [row[0] for row in db.execute("PRAGMA integrity_check(10)")]
    findings = [Finding("database", problems == ["ok"], "; ".join(problems))]
    step()
    for name, sql, sentence in _CHECKS:
        (count,) = rows.one(db, sql)
        findings.append(Finding(name, count == 0, "ok" if count == 0 else sentence.format(count)))
        step()
    findings.append(_examine_contents(db))
    step()
    if view.dimension is not None:
        (lacking,) = rows.one(
            db,
            f"SELECT count(*) FROM memories m LEFT JOIN vectors_{view.generation} v ON v.vid = m.vid "
            "WHERE m.status = 'live' AND v.data IS NULL",
        )
        detail = "ok" if not lacking else f"{lacking} memories have no vector yet; `commonplace reindex` makes them"
        findings.append(Finding("vectors", lacking == 0, detail))
    step()
    return findings


def _examine_contents(db: apsw.Connection) -> Finding:
    """Text changed by anything but us no longer has the hash that was written, and audited, with it."""
    changed = [
        id
        for table in ("memories", "versions")
        for id, content, salt, written in db.execute(f"SELECT id, content, salt, content_hash FROM {table}")
        if content_hash(content, salt) != written
    ]
    detail = f"{len(changed)} texts are not what was written, first {changed[0]}" if changed else "ok"
    return Finding("contents", not changed, detail)


def examine_index(catalogue: Catalogue, view: Rows, scope: int, repair: bool) -> Finding:
    problems = catalogue.verify(view, scope)
    if problems and repair:
        catalogue.rebuild(view, scope)
        return Finding(f"index of scope {scope}", True, f"{problems[0]}; rebuilt from the rows", repaired=True)
    return Finding(f"index of scope {scope}", not problems, problems[0] if problems else "ok")


def _stepper(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)

    return step
