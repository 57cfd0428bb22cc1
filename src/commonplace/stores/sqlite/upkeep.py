"""Backup, compaction and the doctor's rounds of the embedded store."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from commonplace.stores.findings import examine_contents, examine_names, examine_vectors
from commonplace.stores.optional import Finding, Progress
from commonplace.stores.sqlite.cells import wrong_cell
from commonplace.stores.sqlite.connections import StorePart, exclusive, read
from commonplace.stores.sqlite.files import StoreFiles, backup_to
from commonplace.stores.sqlite.generations import count_without_vectors
from commonplace.stores.sqlite.graph import count_wrong_links, rebuild_links
from commonplace.stores.sqlite.index import SegmentIndex
from commonplace.stores.sqlite.queries import fetch_one
from commonplace.stores.sqlite.schema import MIGRATIONS
from commonplace.stores.sqlite.search import RowSource
from commonplace.stores.sqlite.second_vectors import SecondIndex, SecondSource
from commonplace.wire.errors import Conflict, Fault, Unavailable

_TEMPORARY = "SQLITE_TMPDIR"
_compacting = threading.Lock()  # the environment is the whole process's


class SqliteUpkeep(StorePart):
    """The protocol `FileUpkeep`."""

    index: SegmentIndex
    second: SecondIndex

    def maintain_index(self, db: apsw.Connection, scope: int) -> None:
        self.index.maintain(RowSource(db), scope)
        self.second.maintain(db, scope)

    def purge_index(self, db: apsw.Connection, scope: int) -> None:
        self.index.purge_erased(RowSource(db), scope)
        self.second.purge_erased(db, scope)

    async def sizes(self) -> dict[str, Any]:
        database = 0
        for path in (self.files.database, self.files.wal):
            with contextlib.suppress(FileNotFoundError):
                database += path.stat().st_size
        index, second = self.index.sizes(), self.second.index.sizes()
        size = database + index["bytes"] + second["bytes"]
        found = {"database": str(self.files.database), "size_bytes": size, "index": index}
        return found | ({"second_index": second} if second["files"] else {})

    @read
    def backup(self, db: apsw.Connection, target: Path, progress: Progress | None = None) -> int:
        if target.exists():
            raise Conflict(f"{target} exists already; choose another name or remove it first")
        db.execute("SELECT 1 FROM meta").fetchall()  # the copy is of this instant, whatever is written meanwhile
        try:
            backup_to(db, target, progress)
        except (OSError, apsw.CantOpenError, apsw.FullError, apsw.IOError) as error:
            raise Unavailable(f"the backup to {target} failed: {error}; nothing was left there") from error
        return target.stat().st_size

    async def compact(self, progress: Progress | None = None) -> int:
        purged = await self._purge_segments()
        await self.delete_migration_backups()
        await self._vacuum(progress or (lambda done, total: None))
        return purged

    async def delete_migration_backups(self) -> None:
        for copy in self.files.before_migration():
            copy.unlink(missing_ok=True)

    async def examine(self, repair: bool, progress: Progress | None = None) -> list[Finding]:
        found = await self._examine(repair, progress)
        try:
            wrong = await self._readers.run(count_wrong_links)
            if wrong and repair:
                await self._rebuild_links()
        except Fault as fault:
            return [*found, Finding("links", False, f"could not be checked: {fault.message}")]
        if wrong and repair:
            return [*found, Finding("links", True, f"{wrong} were wrong; rebuilt from the rows", repaired=True)]
        return [*found, Finding("links", not wrong, f"{wrong} links between memories are wrong" if wrong else "ok")]

    @read
    def warm(self, db: apsw.Connection, progress: Progress | None = None) -> None:
        scopes = _scopes(db)
        for i, scope in enumerate(scopes):
            self.maintain_index(db, scope)
            if progress:
                progress(i + 1, len(scopes))

    @read
    def _purge_segments(self, db: apsw.Connection) -> int:
        scopes = erased_scopes(db)
        for scope in scopes:
            self.purge_index(db, scope)
        return len(scopes)

    @exclusive
    def _vacuum(self, db: apsw.Connection, progress: Progress) -> None:
        """Readers go on meanwhile; pages they still need are cleared by the next one."""
        progress(0, 2)
        with _temporary_files_beside(db, self.files):
            db.execute("VACUUM")
        progress(1, 2)
        if not truncate_log(db):
            raise Unavailable(
                f"{self.files.database} is compacted, but what was there before is still in {self.files.wal.name}, "
                "because another program is reading it; run `commonplace compact` again"
            )
        progress(2, 2)

    @read
    def _examine(self, db: apsw.Connection, repair: bool, progress: Progress | None) -> list[Finding]:
        findings = []
        for name, examine in _ROW_CHECKS.items():
            findings.append(_checked(name, examine, db))
            if progress:
                progress(len(findings), len(_ROW_CHECKS) + 1)
        try:
            scopes, source = _scopes(db), RowSource(db)
        except Exception as error:
            return [*findings, _unchecked("indexes", error)]
        indexes = [("index", self.index, source)]
        if (second := SecondSource.ready(db)) is not None:
            indexes.append(("second index", self.second.index, second))
        for name, index, rows in indexes:
            for scope in scopes:
                findings.append(_checked(f"{name} of scope {scope}", _examine_index, index, rows, scope, repair))
        return findings

    @exclusive
    def _rebuild_links(self, db: apsw.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        rebuild_links(db)
        db.execute("COMMIT")


def _examine_index(index: SegmentIndex, source: RowSource, scope: int, repair: bool) -> tuple[str | None, bool]:
    """What is wrong, and whether it was repaired."""
    problems = index.verify(source, scope)
    if problems and repair:
        index.rebuild(source, scope)
        return f"{problems[0]}; rebuilt from the rows", True
    return (problems[0] if problems else None), False


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
    busy, _, _ = fetch_one(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def _scopes(db: apsw.Connection) -> list[int]:
    return [scope for (scope,) in db.execute("SELECT id FROM scopes ORDER BY id")]


def erased_scopes(db: apsw.Connection) -> list[int]:
    return [scope for (scope,) in db.execute("SELECT DISTINCT scope_id FROM erasures ORDER BY scope_id")]


_ALIASES = (
    "SELECT m.scope_id, j.value, m.mid FROM memories m, json_each(m.aliases) j "
    "WHERE m.aliases IS NOT NULL AND m.status IN ('live', 'archived')"
)
_ABOUT = "SELECT j.value, r.tenant_id, r.kind, r.key FROM records r, json_each(r.about) j WHERE r.about IS NOT NULL"
_SAID_ERASED = (
    "SELECT id FROM (SELECT json_extract(CAST(payload AS TEXT), '$.id') AS id FROM audit_parts "
    "WHERE memory_id IS NULL AND json_valid(CAST(payload AS TEXT))) WHERE id IS NOT NULL"
)
#: What is checked, the rows that are wrong, and what is said of them.
_CHECKS = (
    ("terms", "memories WHERE status = 'live' AND terms = x''",
     "{} memories have no terms"),
    ("audit of memories", "memories m WHERE NOT EXISTS (SELECT 1 FROM audit_parts p WHERE p.memory_id = m.id)",
     "{} memories have no audit entry"),
    ("versions", "versions v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = v.mid)",
     "{} versions belong to no memory"),
    ("history", "memories m WHERE m.version <> 1 + (SELECT count(*) FROM versions v WHERE v.mid = m.mid)",
     "{} memories lack some of their versions"),
    ("aliases", "aliases a WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = a.mid)",
     "{} aliases name nothing"),
    ("aliases of memories", f"({_ALIASES} EXCEPT SELECT scope_id, alias, mid FROM aliases UNION ALL "
     f"SELECT * FROM (SELECT scope_id, alias, mid FROM aliases EXCEPT {_ALIASES}))",
     "{} aliases are not those of their memories"),
    # One that was begun later under the same id was restored from an export; the mark stays, for other processes.
    ("erasure", "erasures e JOIN scopes s ON s.id = e.scope_id JOIN memories m ON m.id = e.id OR m.mid = e.mid "
     "JOIN scopes n ON n.id = m.scope_id AND n.tenant_id = s.tenant_id WHERE m.mid = e.mid OR e.seq > "
     "coalesce((SELECT min(v.seq) FROM versions v WHERE v.mid = m.mid), m.seq)",
     "{} memories exist that were erased"),
    ("erasure marks", f"erasures e WHERE e.id NOT IN ({_SAID_ERASED}) "
     "OR e.seq > (SELECT t.seq FROM scopes s JOIN tenants t ON t.id = s.tenant_id WHERE s.id = e.scope_id) "
     "OR e.seq < 1 OR e.scope_id NOT IN (SELECT id FROM scopes)", "{} marks of erasures are not as the ledger says"),
    ("sequence", "memories m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
     "WHERE m.seq > t.seq", "{} memories are ahead of their tenant's sequence"),
    ("sequence of tenants", "tenants t WHERE t.seq <> coalesce((SELECT a.seq FROM audit a WHERE a.tenant_id = t.id "
     "ORDER BY a.n DESC LIMIT 1), 0)", "{} tenants have another sequence than their ledger says"),
    ("owners", "scopes s WHERE s.tenant_id NOT IN (SELECT id FROM tenants WHERE name <> '')",
     "{} agents belong to nobody"),
    ("subjects of records", f"({_ABOUT} EXCEPT SELECT memory_id, tenant_id, kind, key FROM record_subjects UNION ALL "
     f"SELECT * FROM (SELECT memory_id, tenant_id, kind, key FROM record_subjects EXCEPT {_ABOUT}))",
     "{} records are filed under memories they are not about"),
    ("recalls", "recalls r WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = r.mid)",
     "{} counts of recalls belong to no memory"),
    ("parts of entries", "(SELECT 1 FROM audit_parts GROUP BY tenant_id, n "
     "HAVING max(i) <> count(*) - 1 OR min(i) <> 0)",
     "{} entries of the ledger have parts out of order"),
    ("audit of statements", "triples t WHERE NOT EXISTS (SELECT 1 FROM audit_parts p WHERE p.memory_id = t.id)",
     "{} statements have no audit entry"),
    ("statements", "triples a JOIN triples b ON b.scope_id = a.scope_id AND b.subject_key = a.subject_key "
     "AND b.predicate = a.predicate AND b.valid_from >= a.valid_from AND b.valid_from < coalesce(a.valid_to, 1 << 60) "
     "WHERE b.subject = a.subject AND b.tid <> a.tid AND (b.valid_to IS NULL OR b.valid_to > b.valid_from)",
     "{} statements hold while another of their subject and predicate does"),
)  # fmt: skip


def _checked(name: str, examine: Callable[..., Finding | tuple[str | None, bool] | str | None], *args: Any) -> Finding:
    """A check's finding. One that breaks off is a finding, too: a doctor meets what nobody has foreseen."""
    try:
        found = examine(*args)
    except Exception as error:
        return _unchecked(name, error)
    if isinstance(found, Finding):
        return found
    problem, repaired = found if isinstance(found, tuple) else (found, False)
    return Finding(name, problem is None or repaired, problem or "ok", repaired)


def _unchecked(name: str, error: Exception) -> Finding:
    return Finding(name, False, f"could not be checked ({type(error).__name__}: {error})")


def _examine_pages(db: apsw.Connection) -> str | None:
    problems = [str(row[0]) for row in db.execute("PRAGMA integrity_check(10)")]
    return None if problems == ["ok"] else "; ".join(problems)


def _examine_schema(db: apsw.Connection) -> str | None:
    fresh = apsw.Connection(":memory:")
    for step in MIGRATIONS:
        step(fresh)
    names = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'vectors_%'"
    lacking = sorted(set(fresh.execute(names)) - set(db.execute(names)))
    fresh.close()
    return None if not lacking else f"the {' '.join(map(str, lacking[0]))} is missing"


def _count_rows(wrong: str, sentence: str, db: apsw.Connection) -> str | None:
    (count,) = fetch_one(db, f"SELECT count(*) FROM {wrong}")
    return sentence.format(count) if count else None


def _examine_contents(db: apsw.Connection) -> Finding:
    rows = (db.execute(f"SELECT id, content, salt, content_hash FROM {table}") for table in ("memories", "versions"))
    return examine_contents(chain.from_iterable(rows))


def _examine_vectors(db: apsw.Connection) -> Finding:
    source = RowSource(db)
    return examine_vectors(0 if source.dimension is None else count_without_vectors(db, source.generation))


def _examine_names(db: apsw.Connection) -> Finding:
    return examine_names(db.execute("SELECT id, subject, subject_key, object, object_key FROM triples"))


#: What can be wrong in the database itself; nothing here can be repaired from elsewhere.
_ROW_CHECKS: dict[str, Callable[[apsw.Connection], Finding | str | None]] = {
    "database": _examine_pages,
    "schema": _examine_schema,
    "cells": wrong_cell,
    **{name: partial(_count_rows, wrong, sentence) for name, wrong, sentence in _CHECKS},
    "contents": _examine_contents,
    "names": _examine_names,
    "vectors": _examine_vectors,
}
