"""`sqlite-vec://`: the embedded store with a real vec0 table beside it, which finds the nearest by meaning.

The table lies in a file of its own, `NAME.vec0.db`, that sqlite-vec and every tool for it can read. It is derived: each
search first takes over what its scope has changed since, whoever wrote it, and a file that is lost or damaged is made
anew. Everything else is `stores.sqlite`'s.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np

from commonplace.__about__ import install_command
from commonplace.stores.base import Candidate, Search, StoreSettings, Vectors
from commonplace.stores.optional import Progress
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.sqlite.files import connect
from commonplace.stores.sqlite.index import IndexHit, IndexQuery
from commonplace.stores.sqlite.queries import mids_in_reach
from commonplace.stores.sqlite.search import RowSource, candidates_of, checked_source, is_indexed, score_by_rows
from commonplace.stores.sqlite.store import database_path
from commonplace.stores.text import query_terms
from commonplace.stores.vector_cells import FIXED_POINT, vectors_of
from commonplace.wire.errors import OperatorActionRequired
from commonplace.wire.record import Clock, system_clock

_MOST = 4096  # neighbours that vec0 gives for one question
_TABLES = """
CREATE TABLE IF NOT EXISTS source(store_id TEXT NOT NULL, generation INTEGER NOT NULL, dimension INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS scopes(scope INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parts(
  part INTEGER PRIMARY KEY, mid INTEGER NOT NULL, scope INTEGER NOT NULL, expires_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS parts_by_memory ON parts(mid);
CREATE INDEX IF NOT EXISTS parts_by_expiry ON parts(scope, expires_at) WHERE expires_at > 0;
"""
_ADD_PART = "INSERT INTO parts(mid, scope, expires_at) VALUES(?, ?, ?)"
_ADD_VECTOR = "INSERT INTO memories_vec(rowid, scope, embedding) VALUES(?, ?, ?)"


class Vec0Index:
    """One connection, used by one thread at a time; other processes may share the file."""

    def __init__(self, path: Path, store_id: str, database: Path) -> None:
        self._path = path
        self._database = database  # whose vectors it has
        self._store_id = store_id
        self._lock = threading.Lock()
        try:
            self._db = self._open()
        except (apsw.CorruptError, apsw.NotADBError):
            self._start_anew()

    def _open(self) -> apsw.Connection:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))  # as private as what it is derived from
        db = apsw.Connection(str(self._path))
        db.set_busy_timeout(10_000)
        _load_extension(db)
        # Nothing here is worth a wait for the disk: what is lost is made anew from the rows.
        db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA secure_delete=ON").fetchall()
        db.execute(_TABLES)
        return db

    def nearest(
        self, source: RowSource, scope: int, vector: Vectors, limit: int, only: Sequence[int] | None
    ) -> list[int]:
        """Numbers of the memories of this scope whose best part is nearest, of those in `only` where it is given."""
        with self._lock:
            try:
                return self._nearest(source, scope, vector, limit, only)
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
                self._start_anew()
                return self._nearest(source, scope, vector, limit, only)

    def _nearest(
        self, source: RowSource, scope: int, vector: Vectors, limit: int, only: Sequence[int] | None
    ) -> list[int]:
        self._follow(source, [scope])
        where, values = "embedding MATCH ? AND scope = ?", [vector.astype("<f4").tobytes(), scope]
        if only is not None:
            parts = "SELECT part FROM parts WHERE mid IN (SELECT value FROM json_each(?))"
            where, values = f"{where} AND rowid IN ({parts})", [*values, json.dumps(list(only))]
        wanted = limit
        while True:
            # Several parts of one memory may be near: more are taken until there are enough memories.
            k = min(wanted, _MOST)
            found = self._db.execute(f"SELECT rowid FROM memories_vec WHERE {where} AND k = ?", (*values, k)).fetchall()
            of = "SELECT mid FROM parts WHERE part = ?"
            mids = list(dict.fromkeys(mid for (part,) in found for (mid,) in self._db.execute(of, (part,))))
            if len(mids) >= limit or len(found) < k or k == _MOST:
                return mids[:limit]
            wanted *= 2

    def any_expired(self, source: RowSource, scope: int, now: int) -> bool:
        with self._lock:
            self._follow(source, [scope])
            sql = "SELECT 1 FROM parts WHERE scope = ? AND expires_at > 0 AND expires_at <= ? LIMIT 1"
            return bool(self._db.execute(sql, (scope, now)).fetchall())

    def follow_all(self, source: RowSource) -> None:
        """What was erased since anyone searched is gone from here, too."""
        with self._lock:
            known: list[tuple[int]] = self._db.execute("SELECT scope FROM scopes").fetchall()  # type: ignore[assignment]
            self._follow(source, [scope for (scope,) in known])

    def compact(self) -> None:
        with self._lock:
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._lock:
            with suppress(apsw.Error):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._db.close()

    def _start_anew(self) -> None:
        with suppress(apsw.Error, AttributeError):
            self._db.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        self._db = self._open()

    def _follow(self, source: RowSource, scopes: Sequence[int]) -> None:
        """Take over what these scopes have changed since they were last looked at."""
        if source.dimension is None:
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            of = (self._store_id, source.generation, source.dimension)
            is_other = self._db.execute("SELECT * FROM source").fetchall() != [of]
            if is_other or any(self._is_ahead(source, scope) for scope in scopes):
                self._db.execute(
                    "DROP TABLE IF EXISTS memories_vec; DELETE FROM scopes; DELETE FROM parts; DELETE FROM source"
                )
                self._db.execute("INSERT INTO source VALUES(?, ?, ?)", of)
                self._db.execute(
                    "CREATE VIRTUAL TABLE memories_vec USING vec0(scope INTEGER PARTITION KEY, "
                    f"embedding FLOAT[{int(source.dimension)}] DISTANCE_METRIC=cosine)"
                )
            for scope in scopes:
                self._follow_scope(source, scope, source.dimension)
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            raise

    def _is_ahead(self, source: RowSource, scope: int) -> bool:
        """Whether it has followed changes that the store does not have: an older copy lies in its place, where the same
        numbers come to mean other memories."""
        followed = self._followed(scope)
        if followed <= source.last_seq(scope):
            return False
        # This search may have begun before a write that another one took over meanwhile.
        db = connect(self._database)
        try:
            return followed > RowSource(db).last_seq(scope)
        finally:
            db.close()

    def _followed(self, scope: int) -> int:
        return next((seq for (seq,) in self._db.execute("SELECT seq FROM scopes WHERE scope = ?", (scope,))), 0)

    def _follow_scope(self, source: RowSource, scope: int, dimension: int) -> None:
        after = self._followed(scope)
        last = after
        for mid, seq in source.erasures(scope, after):
            self._drop(mid)
            last = max(last, seq)
        for row in source.changes(scope, after):
            self._drop(row.mid)
            last = max(last, row.seq)
            vectors = vectors_of(row.vectors + FIXED_POINT, dimension) if row.searchable and row.vectors else None
            for vector in () if vectors is None else vectors:
                self._db.execute(_ADD_PART, (row.mid, scope, row.expires_at))
                self._db.execute(_ADD_VECTOR, (self._db.last_insert_rowid(), scope, vector.astype("<f4").tobytes()))
        if last > after:
            self._db.execute("INSERT OR REPLACE INTO scopes VALUES(?, ?)", (scope, last))

    def _drop(self, mid: int) -> None:
        for (part,) in self._db.execute("SELECT part FROM parts WHERE mid = ?", (mid,)).fetchall():
            self._db.execute("DELETE FROM memories_vec WHERE rowid = ?", (part,))
        self._db.execute("DELETE FROM parts WHERE mid = ?", (mid,))


class SqliteVecStore(SqliteStore):
    name = "sqlite-vec"

    def __init__(self, database: Path, clock: Clock = system_clock, settings: StoreSettings | None = None) -> None:
        require_extension()
        super().__init__(database, clock, settings)
        self._vec0 = Vec0Index(self.files.vec0, self.store_id, self.files.database)

    def _search(self, db: apsw.Connection, search: Search, scopes: list[int]) -> list[Candidate]:
        if search.vector is None or not is_indexed(search.reach):
            return super()._search(db, search, scopes)
        source = checked_source(db, search)
        depth = max(search.limit, search.depth if search.tokens is not None else 0)
        found = {
            c.memory.id: c for c in super()._search(db, replace(search, vector=None, tokens=None, limit=depth), scopes)
        }
        terms = query_terms(search.text) if search.text else []
        for scope in scopes:
            near = self._near(db, source, search, scope, depth)
            hits = {mid: IndexHit(mid, None, 0.0 if terms else None) for mid in near}
            if terms and near:
                worded = IndexQuery(terms, None, len(near), search.reach.now, allowed=np.array(sorted(near), np.int64))
                hits |= {hit.mid: hit for hit in self.index.search(source, scope, worded)}
            for candidate in candidates_of(db, search.reach, [scope], hits, terms).values():
                found.setdefault(candidate.memory.id, candidate)
        numbers = _numbers(db, list(found))
        by_mid = {numbers[id]: candidate for id, candidate in found.items() if id in numbers}
        score_by_rows(db, source, search, by_mid)
        self.second.score_by_rows(db, search, by_mid)
        return _best(list(by_mid.values()), search.limit)

    def _near(self, db: apsw.Connection, source: RowSource, search: Search, scope: int, depth: int) -> list[int]:
        reach, now = search.reach, search.reach.now
        # vec0 knows scopes alone. What else must hold is settled before the cut, by the rows.
        filtered = bool(reach.where) or (now is not None and self._vec0.any_expired(source, scope, now))
        only = list(mids_in_reach(db, reach, scope)) if filtered else None
        assert search.vector is not None
        return self._vec0.nearest(source, scope, search.vector, depth, only)

    async def compact(self, progress: Progress | None = None) -> int:
        purged = await super().compact(progress)
        await self._readers.run(lambda db: self._vec0.follow_all(RowSource(db)))
        await self._readers.run(lambda db: self._vec0.compact())
        return purged

    async def close(self) -> None:
        if not self._closed:
            with suppress(Exception):  # derived: the next to open the store follows
                await self._readers.run(lambda db: self._vec0.follow_all(RowSource(db)))
            self._vec0.close()
        await super().close()


def _numbers(db: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    sql = "SELECT id, mid FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.execute(sql, (json.dumps(ids),)))


def _best(found: list[Candidate], limit: int) -> list[Candidate]:
    """At most `limit` by each leg."""
    chosen: dict[str, Candidate] = {}
    for leg in ("dense", "keyword", "late", "second"):
        scored = [c for c in found if getattr(c, leg) is not None and (leg != "keyword" or getattr(c, leg) > 0)]
        scored.sort(key=lambda c: (-getattr(c, leg), c.memory.id))
        chosen |= {c.memory.id: c for c in scored[:limit]}
    return list(chosen.values())


def require_extension() -> None:
    """Raises, before anything is opened, where the package is missing."""
    try:
        import sqlite_vec  # noqa: F401
    except ImportError:
        raise OperatorActionRequired(
            "sqlite-vec:// needs the package sqlite-vec", hint=install_command("sqlite-vec")
        ) from None


def _load_extension(db: apsw.Connection) -> None:
    import sqlite_vec

    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.enable_load_extension(False)


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> SqliteVecStore:
    """`sqlite-vec://` followed by `:memory:`, `./relative` or `/absolute`."""
    path = database_path(url)
    if path is not None:
        return SqliteVecStore(path, clock, settings)
    require_extension()
    store = SqliteVecStore(Path(tempfile.mkdtemp(prefix="commonplace-")) / "memory.db", clock, settings)
    store.temporary = True
    return store
