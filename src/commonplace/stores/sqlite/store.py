"""The embedded store as the engine sees it."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from commonplace.stores.base import (
    AgentContext,
    AuditEntry,
    Candidate,
    EmbedderInfo,
    Finding,
    ImportanceDecay,
    Page,
    Progress,
    Reach,
    Record,
    Search,
    Transaction,
    Vectors,
)
from commonplace.stores.graph import Instant, Triple
from commonplace.stores.mixins import TransactVerbs, scan_all
from commonplace.stores.sqlite import generations, graph, pages, reader, source, upkeep
from commonplace.stores.sqlite.context_cache import ContextCache
from commonplace.stores.sqlite.estimates import Estimates
from commonplace.stores.sqlite.files import StoreFiles, close_writable, open_writable
from commonplace.stores.sqlite.index import Catalogue
from commonplace.stores.sqlite.indexer import Indexer
from commonplace.stores.sqlite.reader import Readers
from commonplace.stores.sqlite.rows import one
from commonplace.stores.sqlite.source import embedder_of, rows_of
from commonplace.stores.sqlite.transaction import to_record
from commonplace.stores.sqlite.writer import Writer
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Clock, Memory, system_clock

T = TypeVar("T")
log = logging.getLogger("commonplace.sqlite")
INDEX_MB = 512


class SqliteStore(TransactVerbs):
    name = "sqlite"
    capabilities = frozenset(
        {"semantic", "episodic", "procedural", "emotional", "vector", "fts", "graph", "recall_tracking", "governance"}
    )

    def __init__(
        self, database: Path, clock: Clock = system_clock, *, index_mb: int = INDEX_MB, temporary: bool = False
    ) -> None:
        self.files = StoreFiles(database)
        self._temporary = temporary
        self._db = open_writable(self.files)
        self.store_id: str = one(self._db, "SELECT value FROM meta WHERE key = 'store_id'")[0]
        self._readers = Readers(self.files)
        self.catalogue = Catalogue(self.files.segments, self.store_id, index_mb << 20)
        self._contexts = ContextCache()
        self._estimates = Estimates()
        self._indexer = Indexer(self._readers, self.catalogue)
        self._writer = Writer(self._db, self.files, clock, self._indexer.changed)
        self._closing = threading.Lock()
        self._closed = False

    # the Store protocol

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        return await self._readers.run(lambda db: reader.get(db, tenant, ids))

    async def search(self, search: Search) -> list[Candidate]:
        scopes: list[int] = []

        def foresee(db: apsw.Connection) -> None:
            # The catalogue looks at its files before the rows are read, so that they are never ahead of them.
            scopes.extend(reader.scope_ids(db, search.reach.tenant, search.reach.agents))
            for scope in scopes:
                self.catalogue.begin(scope)

        found = await self._readers.run(
            lambda db: source.search(db, self.catalogue, rows_of(db), search, scopes), before=foresee
        )
        for scope in scopes:
            if self.catalogue.due(scope):
                self._indexer.look(scope)
        return found

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        return await self._readers.run(lambda db: reader.scan(db, reach, limit, cursor, newest_first))

    async def health(self) -> dict[str, Any]:
        def read(db: apsw.Connection) -> dict[str, Any]:
            (count,) = one(db, "SELECT count(*) FROM memories WHERE status = 'live'")
            return {"status": "ok", "memories": count, "database": str(self.files.database)}

        return await self._readers.run(read)

    async def close(self) -> None:
        """Finish what is under way, then leave no erased byte behind in any of our files."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._writer.close()
        if pages.due(self._db):  # also what a process that never got to close has erased
            self._indexer.changed({}, set(upkeep.erased_scopes(self._db)))
        self._indexer.close()
        self._readers.close()
        self.catalogue.close()
        try:
            if pages.clear_gaps(self._db, self.files):
                upkeep.truncate_log(self._db)  # what another process's reading keeps, it clears when it closes
        except apsw.Error:  # a full disk, say: what was acknowledged is in the log, and the next stop tidies up
            log.exception("the store could not be tidied up at its close")
        close_writable(self._db)
        if self._temporary:
            shutil.rmtree(self.files.database.parent, ignore_errors=True)

    # the Primary protocol

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        result: T = await self._writer.submit(tenant, work)
        return result

    async def history(self, tenant: str, id: str) -> list[Memory]:
        return await self._readers.run(lambda db: reader.history(db, tenant, id))

    async def find_alias(self, tenant: str, agents: Sequence[str], alias: str) -> list[Memory]:
        return await self._readers.run(lambda db: reader.find_alias(db, tenant, agents, alias))

    async def agents(self, tenant: str) -> dict[str, int]:
        return await self._readers.run(lambda db: reader.agents(db, tenant))

    async def agent_names(self, tenant: str) -> list[str]:
        return await self._readers.run(lambda db: reader.agent_names(db, tenant))

    async def count(self, reach: Reach) -> int:
        return await self._readers.run(lambda db: reader.count(db, reach))

    async def sequence(self, tenant: str, at: int | None = None) -> int:
        return await self._readers.run(lambda db: reader.sequence(db, tenant, at))

    async def audit(
        self, tenant: str, *, after: int = 0, limit: int = 100, agent_id: str | None = None,
        operation: str | None = None, since: int | None = None, until: int | None = None,
    ) -> list[AuditEntry]:  # fmt: skip
        return await self._readers.run(
            lambda db: reader.audit(db, tenant, after, limit, agent_id, operation, since, until)
        )

    async def audit_head(self, tenant: str) -> tuple[int, str]:
        sql = "SELECT audit_n, audit_hash FROM tenants WHERE name = ?"
        return await self._readers.run(lambda db: db.execute(sql, (tenant,)).fetchone() or (0, ""))

    async def record(self, tenant: str, kind: str, key: str) -> Record | None:
        sql = "SELECT kind, key, value, about FROM records WHERE tenant_id = ? AND kind = ? AND key = ?"

        def read(db: apsw.Connection) -> Record | None:
            row = db.execute(sql, (reader.tenant_id(db, tenant), kind, key)).fetchone()
            return None if row is None else to_record(row)

        return await self._readers.run(read)

    async def records(self, tenant: str, kind: str) -> list[Record]:
        sql = "SELECT kind, key, value, about FROM records WHERE tenant_id = ? AND kind = ? ORDER BY key"
        return await self._readers.run(
            lambda db: [to_record(row) for row in db.execute(sql, (reader.tenant_id(db, tenant), kind))]
        )

    async def embedder(self) -> EmbedderInfo | None:
        return await self._readers.run(embedder_of)

    async def adopt_embedder(self, name: str, dimension: int) -> EmbedderInfo:
        def work(db: apsw.Connection) -> EmbedderInfo:
            db.execute("BEGIN IMMEDIATE")
            if (there := embedder_of(db)) is None:
                db.execute("INSERT INTO meta VALUES('embedder', ?), ('dimension', ?)", (name, dimension))
                there = embedder_of(db)
            db.execute("COMMIT")
            assert there is not None
            return there

        return await self._alone(work)

    async def tenants(self) -> list[str]:
        return await self._readers.run(
            lambda db: [n for (n,) in db.execute("SELECT name FROM tenants ORDER BY name") if n]
        )

    async def context(self, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        return await self._readers.run(lambda db: self._contexts.context(db, tenant, agents, now))

    async def most_important(self, reach: Reach, decay: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        if reach.as_of is not None:  # the past is nowhere ordered
            return decay.order(await scan_all(self, reach), at)[:limit]
        return await self._readers.run(lambda db: self._estimates.most_important(db, reach, decay, at, limit))

    async def neighbours_in_session(self, search: Search, ids: Sequence[str], each: int) -> list[list[Candidate]]:
        return await self._readers.run(lambda db: source.neighbours_in_session(db, rows_of(db), search, ids, each))

    async def triples(
        self, tenant: str, agent_id: str, *, subject: str | None = None, predicate: str | None = None,
        at: Instant | None = None, limit: int | None = None,
    ) -> list[Triple]:  # fmt: skip
        return await self._readers.run(lambda db: graph.triples(db, tenant, agent_id, subject, predicate, at, limit))

    async def triples_about(self, tenant: str, agent_id: str, subject: str, mentions: bool = False) -> list[Triple]:
        return await self._readers.run(lambda db: graph.triples_about(db, tenant, agent_id, subject, mentions))

    async def triple_counts(self, tenant: str, agent_id: str, at: Instant) -> tuple[int, int, int]:
        return await self._readers.run(lambda db: graph.counts(db, tenant, agent_id, at))

    async def path(self, tenant: str, agent_id: str, start: str, end: str, max_hops: int, at: Instant) -> list[Triple]:
        return await self._readers.run(lambda db: graph.path(db, tenant, agent_id, start, end, max_hops, at))

    async def linked(
        self, reach: Reach, ids: Sequence[str], hops: int, at: Instant, most: int
    ) -> dict[str, dict[str, int]]:
        return await self._readers.run(lambda db: graph.linked(db, reach, ids, hops, at, most))

    async def delete_migration_backups(self) -> None:
        for copy in self.files.before_migration():
            copy.unlink(missing_ok=True)

    # the FileUpkeep and Reindexable protocols

    async def sizes(self) -> dict[str, Any]:
        return upkeep.sizes(self.files, self.catalogue)

    async def backup(self, target: Path, progress: Progress | None = None) -> int:
        return await self._readers.run(lambda db: upkeep.backup(db, target, progress))

    async def compact(self, progress: Progress | None = None) -> int:
        def purge(db: apsw.Connection) -> int:
            scopes = upkeep.erased_scopes(db)
            for scope in scopes:
                self.catalogue.purge(rows_of(db), scope)
            return len(scopes)

        purged = await self._readers.run(purge)
        await self.delete_migration_backups()
        await self._alone(lambda db: upkeep.compact(db, self.files, progress))
        return purged

    async def examine(self, repair: bool, progress: Progress | None = None) -> list[Finding]:
        def read(db: apsw.Connection) -> list[Finding]:
            rows = rows_of(db)
            findings = upkeep.examine_rows(db, rows, progress)
            return findings + [upkeep.examine_index(self.catalogue, rows, s, repair) for s in upkeep.scopes(db)]

        found = await self._readers.run(read)
        return [*found, await self._examine_links(repair)]

    async def _examine_links(self, repair: bool) -> Finding:
        wrong = await self._readers.run(graph.links_differ)
        if not wrong or not repair:
            return Finding("links", not wrong, f"{wrong} links between memories are wrong" if wrong else "ok")

        def work(db: apsw.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            graph.rebuild_links(db)
            db.execute("COMMIT")

        await self._alone(work)
        return Finding("links", True, f"{wrong} were wrong; rebuilt from the rows", repaired=True)

    async def begin_generation(self, name: str, dimension: int) -> tuple[int, bool]:
        return await self._alone(lambda db: generations.begin(db, name, dimension))

    async def without_vectors(self, generation: int, after: int, limit: int) -> list[tuple[int, Memory]]:
        return await self._readers.run(lambda db: generations.lacking(db, generation, after, limit))

    async def count_without_vectors(self, generation: int) -> int:
        return await self._readers.run(lambda db: generations.count_lacking(db, generation))

    async def fill_vectors(self, generation: int, vectors: Sequence[tuple[int, Vectors]]) -> None:
        await self._alone(lambda db: generations.fill(db, generation, vectors))

    async def switch_generation(self, generation: int) -> bool:
        return await self._alone(lambda db: generations.switch(db, generation))

    async def warm(self, progress: Progress | None = None) -> None:
        def read(db: apsw.Connection) -> None:
            scopes = upkeep.scopes(db)
            for i, scope in enumerate(scopes):
                self.catalogue.maintain(rows_of(db), scope)
                if progress:
                    progress(i + 1, len(scopes))

        await self._readers.run(read)

    async def _alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run on the writer's connection, alone, outside any transaction, holding the write lock."""
        result: T = await self._writer.submit(None, work)
        return result

    @property
    def commits(self) -> tuple[int, int]:
        """How many groups and how many writes were committed, for metrics."""
        return self._writer.groups, self._writer.writes


def open_url(url: str, clock: Clock = system_clock) -> SqliteStore:
    """`sqlite://` and `sqlite-vec://` followed by `:memory:`, `./relative` or `/absolute`."""
    scheme, _, place = url.partition("://")
    if not place:
        raise ValidationError(f"{url!r} names no file; write {scheme}://./memories.db or {scheme}://:memory:")
    if place == ":memory:":
        return SqliteStore(Path(tempfile.mkdtemp(prefix="commonplace-")) / "memory.db", clock, temporary=True)
    path = Path("/" + place.lstrip("/")) if place.startswith("/") else Path(place)
    return SqliteStore(path.expanduser(), clock)
