"""Backup, compaction and the doctor's rounds of the embedded store."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from commonplace.stores.base import Finding, Progress
from commonplace.stores.sqlite.connections import StorePart, exclusive, read
from commonplace.stores.sqlite.files import StoreFiles, backup_to
from commonplace.stores.sqlite.graph import count_wrong_links, rebuild_links
from commonplace.stores.sqlite.index import SegmentIndex
from commonplace.stores.sqlite.queries import fetch_one
from commonplace.stores.sqlite.search import RowSource
from commonplace.wire.canonical import content_hash
from commonplace.wire.errors import Conflict, Unavailable

_TEMPORARY = "SQLITE_TMPDIR"
_compacting = threading.Lock()  # the environment is the whole process's


class SqliteUpkeep(StorePart):
    """The protocol `FileUpkeep`."""

    index: SegmentIndex

    async def sizes(self) -> dict[str, Any]:
        database = 0
        for path in (self.files.database, self.files.wal):
            with contextlib.suppress(FileNotFoundError):
                database += path.stat().st_size
        index = self.index.sizes()
        return {"database": str(self.files.database), "size_bytes": database + index["bytes"], "index": index}

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
        wrong = await self._readers.run(count_wrong_links)
        if not wrong or not repair:
            detail = f"{wrong} links between memories are wrong" if wrong else "ok"
            return [*found, Finding("links", not wrong, detail)]
        await self._rebuild_links()
        return [*found, Finding("links", True, f"{wrong} were wrong; rebuilt from the rows", repaired=True)]

    @read
    def warm(self, db: apsw.Connection, progress: Progress | None = None) -> None:
        scopes = _scopes(db)
        for i, scope in enumerate(scopes):
            self.index.maintain(RowSource(db), scope)
            if progress:
                progress(i + 1, len(scopes))

    @read
    def _purge_segments(self, db: apsw.Connection) -> int:
        scopes = erased_scopes(db)
        for scope in scopes:
            self.index.purge_erased(RowSource(db), scope)
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
        source = RowSource(db)
        findings = []
        for finding in _examine_rows(db, source):
            findings.append(finding)
            if progress:
                progress(len(findings), len(_CHECKS) + 3)
        for scope in _scopes(db):
            check, problems = f"index of scope {scope}", self.index.verify(source, scope)
            if problems and repair:
                self.index.rebuild(source, scope)
                findings.append(Finding(check, True, f"{problems[0]}; rebuilt from the rows", repaired=True))
            else:
                findings.append(Finding(check, not problems, problems[0] if problems else "ok"))
        return findings

    @exclusive
    def _rebuild_links(self, db: apsw.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        rebuild_links(db)
        db.execute("COMMIT")


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
    ("erasure", "erasures e JOIN memories m ON m.id = e.id",
     "{} memories exist that were erased"),
    ("sequence", "memories m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
     "WHERE m.seq > t.seq", "{} memories are ahead of their tenant's sequence"),
    ("audit of statements", "triples t WHERE NOT EXISTS (SELECT 1 FROM audit_parts p WHERE p.memory_id = t.id)",
     "{} statements have no audit entry"),
    ("statements", "triples a JOIN triples b ON b.scope_id = a.scope_id AND b.subject_key = a.subject_key "
     "AND b.predicate = a.predicate AND b.valid_from >= a.valid_from AND b.valid_from < coalesce(a.valid_to, 1 << 60) "
     "WHERE b.subject = a.subject AND b.tid <> a.tid AND (b.valid_to IS NULL OR b.valid_to > b.valid_from)",
     "{} statements hold while another of their subject and predicate does"),
)  # fmt: skip


def _examine_rows(db: apsw.Connection, source: RowSource) -> Iterator[Finding]:
    """What can be wrong in the database itself; nothing here can be repaired from elsewhere."""
    problems = [row[0] for row in db.execute("PRAGMA integrity_check(10)")]
    yield Finding("database", problems == ["ok"], "; ".join(problems))
    for name, wrong, sentence in _CHECKS:
        (count,) = fetch_one(db, f"SELECT count(*) FROM {wrong}")
        yield Finding(name, count == 0, sentence.format(count) if count else "ok")
    yield _examine_contents(db)
    if source.dimension is not None:
        without = f"LEFT JOIN vectors_{source.generation} v ON v.vid = m.vid WHERE m.status = 'live' AND v.data IS NULL"
        (count,) = fetch_one(db, f"SELECT count(*) FROM memories m {without}")
        waiting = f"{count} memories wait for their vectors; a running server makes them, or `commonplace reindex`"
        yield Finding("vectors", True, waiting if count else "ok")  # nothing is wrong: they are found by their words


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
