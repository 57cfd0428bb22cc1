"""Sizes, compaction and the doctor's rounds of a PostgreSQL store; its backups are the server's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commonplace.stores import text
from commonplace.stores.findings import examine_contents, examine_names, examine_vectors
from commonplace.stores.optional import Finding, Progress
from commonplace.stores.postgres import found_by, queries
from commonplace.stores.postgres.connections import Session, StorePart, exclusive, read
from commonplace.stores.postgres.generations import count_without_vectors
from commonplace.stores.postgres.schema import GUARDS, TABLES
from commonplace.stores.postgres.vector_indexes import build_indexes
from commonplace.wire.errors import OperatorActionRequired

#: A schema may have tables of others beside ours, as `public` has in many databases.
_OURS = f"c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname ~ '{TABLES}'"
_TABLES = f"SELECT c.relname FROM pg_class c WHERE {_OURS}"
#: Another store may be in another schema of the database.
_TRIGGERS = (
    "SELECT t.tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND c.relnamespace = current_schema()::regnamespace"
)
_SIZES = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, coalesce(sum(pg_total_relation_size(c.oid)) "
    "FILTER (WHERE c.relname ~ '^(postings|parts_|second_parts)'), 0)::bigint, "
    "(SELECT count(*) FROM vector_indexes WHERE ready) "
    f"FROM pg_class c WHERE {_OURS}"
)
#: What can be wrong in the rows themselves: the name of the check, the rows that are, and what is said of them.
_ROW_CHECKS = (
    ("sequence", "memories m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
     "WHERE m.seq > t.seq", "{} memories are ahead of their tenant's sequence"),
    ("versions", "versions v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = v.mid)",
     "{} versions belong to no memory"),
    ("aliases", "aliases a WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = a.mid)",
     "{} aliases belong to no memory"),
    ("recalls", "recalls r WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.mid = r.mid)",
     "{} counts of recalls belong to no memory"),
    ("parts of entries", "(SELECT 1 FROM audit_parts GROUP BY tenant_id, n "
     "HAVING max(i) <> count(*) - 1 OR min(i) <> 0) x", "{} entries of the ledger have parts out of order"),
)  # fmt: skip
_FEW = 1000


class PostgresUpkeep(StorePart):
    """The protocol `FileUpkeep`."""

    @read
    def sizes(self, db: Session) -> dict[str, Any]:
        size, index, graphs = db.one(_SIZES)
        return {"database": str(self.address), "size_bytes": size, "index": {"bytes": index, "graphs": graphs}}

    async def backup(self, target: Path, progress: Progress | None = None) -> int:
        raise OperatorActionRequired(
            f"{self.address} is not backed up to a file by us", hint="use pg_dump, or archives of the server's log"
        )

    async def compact(self, progress: Progress | None = None) -> int:
        return await self._writer.run_outside(lambda db: _compact(db, progress or (lambda done, total: None)))

    async def warm(self, progress: Progress | None = None) -> None:
        """Make the graphs that large scopes lack, after a reindex for instance."""
        await self._writer.run_outside(lambda db: _build_graphs(db, progress or (lambda done, total: None)))

    async def examine(self, repair: bool, progress: Progress | None = None) -> list[Finding]:
        wrong, findings = await self._examine(progress)
        if wrong and repair:
            await self._rebuild(wrong)
            detail = f"{len(wrong)} were not what their rows say; rebuilt from the rows"
            return [*findings, Finding("indexes", True, detail, repaired=True)]
        said = f"{len(wrong)} are not what their rows say" if wrong else "ok"
        return [*findings, Finding("indexes", not wrong, said)]

    @read
    def _examine(self, db: Session, progress: Progress | None) -> tuple[list[int], list[Finding]]:
        findings = []
        for name, rows, sentence in _ROW_CHECKS:
            (count,) = db.one(f"SELECT count(*) FROM {rows}")
            findings.append(Finding(name, not count, sentence.format(count) if count else "ok"))
            if progress:
                progress(len(findings), len(_ROW_CHECKS) + 4)
        findings += [
            _examine_guards(db),
            examine_contents(_contents(db)),
            examine_names(db.rows("SELECT id, subject, subject_key, object, object_key FROM triples ORDER BY tid")),
            examine_vectors(_waiting(db)),
        ]
        scopes = [scope for (scope,) in db.rows("SELECT id FROM scopes ORDER BY id")]
        return [scope for scope in scopes if not _is_indexed(db, scope)], findings

    @exclusive
    def _rebuild(self, db: Session, scopes: list[int]) -> None:
        for scope in scopes:
            _rebuild_scope(db, scope)


def _compact(db: Session, progress: Progress) -> int:
    tables = [name for (name,) in db.rows(_TABLES)]
    (scopes,) = db.one("SELECT count(DISTINCT scope_id) FROM erasures")
    for i, table in enumerate(tables):
        progress(i, len(tables))
        db.execute(f"VACUUM (FULL, ANALYZE) {table}")
    progress(len(tables), len(tables))
    return int(scopes)


def _build_graphs(db: Session, progress: Progress) -> None:
    scopes = [scope for (scope,) in db.rows("SELECT id FROM scopes ORDER BY id")]
    for i, scope in enumerate(scopes):
        build_indexes(db, scope)
        progress(i + 1, len(scopes))


def _examine_guards(db: Session) -> Finding:
    held = {name for (name,) in db.rows(_TRIGGERS)}
    lacking = [name for name in GUARDS if name not in held]
    return Finding("guards", not lacking, f"the trigger {lacking[0]} is missing" if lacking else "ok")


def _contents(db: Session) -> Iterator[tuple[str, str, bytes, str]]:
    for table in ("memories", "versions"):
        last = 0
        sql = f"SELECT vid, id, content, salt, content_hash FROM {table} WHERE vid > %s ORDER BY vid LIMIT %s"
        while rows := db.rows(sql, (last, _FEW)):
            for _, id, content, salt, written in rows:
                yield id, content, salt, written
            last = rows[-1][0]


def _waiting(db: Session) -> int:
    meta = queries.read_meta(db)
    return count_without_vectors(db, meta["generation"]) if "dimension" in meta else 0


def _is_indexed(db: Session, scope: int) -> bool:
    """Whether what is searched is what the live rows of a scope say."""
    documents, words, postings = 0, 0, 0
    last = 0
    sql = "SELECT mid, terms FROM memories WHERE scope_id = %s AND status = 'live' AND mid > %s ORDER BY mid LIMIT %s"
    while rows := db.rows(sql, (scope, last, _FEW)):
        for _, terms in rows:
            hashes, counts = text.decode(terms)
            postings += len(hashes)
            words += int(counts.sum())
        documents += len(rows)
        last = rows[-1][0]
    kept = db.one("SELECT documents, words FROM scopes WHERE id = %s", (scope,))
    (found,) = db.one("SELECT count(*) FROM postings WHERE scope_id = %s", (scope,))
    if (*kept, found) != (documents, words, postings):
        return False
    meta = queries.read_meta(db)
    if "dimension" not in meta:
        return True
    generation = meta["generation"]
    lacking = (
        f"SELECT count(*) FROM (SELECT m.mid FROM memories m JOIN vectors_{generation} v ON v.vid = m.vid "
        "WHERE m.scope_id = %s AND m.status = 'live' AND v.data IS NOT NULL) l "
        f"FULL JOIN (SELECT DISTINCT mid FROM parts_{generation} WHERE scope_id = %s) p ON p.mid = l.mid "
        "WHERE l.mid IS NULL OR p.mid IS NULL"
    )
    return bool(db.one(lacking, (scope, scope))[0] == 0)


def _rebuild_scope(db: Session, scope: int) -> None:
    meta = queries.read_meta(db)
    generation, dimension = meta["generation"], meta.get("dimension")
    db.execute("DELETE FROM postings WHERE scope_id = %s", (scope,))
    db.execute("UPDATE scopes SET documents = 0, words = 0 WHERE id = %s", (scope,))
    if dimension is not None:
        db.execute(f"DELETE FROM parts_{generation} WHERE scope_id = %s", (scope,))
    sql = (
        f"SELECT m.mid, m.terms, v.data FROM memories m LEFT JOIN vectors_{generation} v ON v.vid = m.vid "
        "WHERE m.scope_id = %s AND m.status = 'live' ORDER BY m.mid"
    )
    for mid, terms, data in db.rows(sql, (scope,)):
        found_by.add_words(db, scope, mid, terms)
        if dimension is not None:
            found_by.add_vectors(db, f"parts_{generation}", dimension, scope, mid, data)
