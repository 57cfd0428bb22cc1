"""A search of the index turned back into memories; and rows as the index wants them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from apsw import Connection

from commonplace.stores import exact_search
from commonplace.stores.base import AgentContext, Candidate, Reach, Search, StaleGeneration, Vectors
from commonplace.stores.optional import ReadView
from commonplace.stores.row_format import to_memory
from commonplace.stores.row_search import late_scores, rank_rows
from commonplace.stores.sqlite import queries
from commonplace.stores.sqlite.connections import read
from commonplace.stores.sqlite.index import IndexHit, IndexQuery, IndexRow, SegmentIndex
from commonplace.stores.sqlite.indexer import Indexer
from commonplace.stores.sqlite.scope_caches import SqliteScopeReads
from commonplace.stores.text import matched_terms, packed_terms, query_terms
from commonplace.stores.vector_cells import fixed_point_bytes, tokens_of, vectors_of
from commonplace.wire.filters import Condition
from commonplace.wire.record import MEMORY_TYPES

if TYPE_CHECKING:
    from commonplace.stores.sqlite.second_vectors import SecondIndex

T = TypeVar("T")
_TYPES = {name: code for code, name in enumerate(MEMORY_TYPES)}
_INDEXED = (
    "SELECT m.mid, {} AS change, m.status = 'live', m.type, m.user_id, m.created_at, m.expires_at, m.terms, v.data, "
    "v.tokens"
)
#: Rows as they were written, and those whose vector came later, which counts as the change.
_CHANGES = (
    f"{_INDEXED.format('m.seq')} FROM memories m LEFT JOIN {{0}} v ON v.vid = m.vid "
    "WHERE m.scope_id = ?1 AND m.seq > ?2 "
    "AND NOT EXISTS (SELECT 1 FROM late_vectors l WHERE l.mid = m.mid AND l.seq > m.seq) "
    f"UNION ALL {_INDEXED.format('l.seq')} FROM late_vectors l JOIN memories m ON m.mid = l.mid AND m.seq < l.seq "
    "LEFT JOIN {0} v ON v.vid = m.vid WHERE l.scope_id = ?1 AND l.seq > ?2 ORDER BY change"
)
_Scores = dict[int, IndexHit]  # by mid


class RowSource:
    """The rows of one read transaction, as the index reads them."""

    def __init__(self, db: Connection) -> None:
        info = queries.embedder_of(db)
        self._db = db
        self.generation = info.generation if info else 1
        self.dimension = info.dimension if info else None
        self._table = f"vectors_{self.generation}"

    def changes(self, scope: int, after_seq: int) -> Iterator[IndexRow]:
        found = self._db.execute(_CHANGES.format(self._table), (scope, after_seq))
        for mid, seq, live, type, user_id, created, expires, terms, data, tokens in found:
            vectors = fixed_point_bytes(data)
            of = (mid, seq, bool(live), _TYPES[type], _user_code(user_id), created, expires or 0)
            yield IndexRow(*of, terms, vectors, tokens)

    def erasures(self, scope: int, after_seq: int) -> Iterable[tuple[int, int]]:
        sql = "SELECT mid, seq FROM erasures WHERE scope_id = ? AND seq > ? ORDER BY seq"
        yield from self._db.execute(sql, (scope, after_seq))

    def last_seq(self, scope: int) -> int:
        """Of the last change that there was in it."""
        tables = ("memories", "erasures", "late_vectors")
        latest = [f"coalesce((SELECT max(seq) FROM {table} WHERE scope_id = ?1), 0)" for table in tables]
        return int(queries.fetch_one(self._db, f"SELECT max({', '.join(latest)})", (scope,))[0])

    def count(self, scope: int) -> int:
        sql = "SELECT count(*) FROM memories WHERE scope_id = ? AND status = 'live'"
        return int(queries.fetch_one(self._db, sql, (scope,))[0])


class SqliteSearch(SqliteScopeReads):
    index: SegmentIndex
    second: SecondIndex
    _indexer: Indexer

    async def search(self, search: Search) -> list[Candidate]:
        return await self.view(search.reach, lambda view: view.search(search), second=search.second is not None)

    async def view(self, reach: Reach, work: Callable[[ReadView], T], *, second: bool = False) -> T:
        """All reads of a recall in one transaction and one change of threads, each of which takes as long as a read."""
        scopes: list[int] = []

        def prefetch(db: Connection) -> None:
            # The index looks at its files before the rows are read, so that they are never ahead of them.
            scopes.extend(queries.scope_ids(db, reach.tenant, reach.agents))
            for scope in scopes:
                self.index.prefetch(scope)
                if second:
                    self.second.index.prefetch(scope)

        def look(db: Connection) -> T:
            return work(_View(self, db, scopes))

        if is_indexed(reach):
            found = await self._readers.run(look, before=prefetch)
        else:
            found = await self._readers.run_scan(reach.tenant, look, before=prefetch)
        for scope in scopes:
            if self.index.maintenance_due(scope) or self.second.index.maintenance_due(scope):
                self._indexer.schedule(scope)
        return found

    def _search(self, db: Connection, search: Search, scopes: list[int]) -> list[Candidate]:
        source, reach = checked_source(db, search), search.reach
        terms = query_terms(search.text) if search.text else []
        if not is_indexed(reach):
            return _search_exactly(db, source, search, terms)
        masks, rest = _index_masks(reach)
        scores: _Scores = {}
        only_second: list[int] = []
        for scope in scopes:
            allowed = np.fromiter(queries.mids_in_reach(db, reach, scope), np.int64) if rest else None
            wanted = (terms, search.vector, search.limit, reach.now)
            query = IndexQuery(*wanted, allowed=allowed, tokens=search.tokens, depth=search.depth, **masks)
            scores.update((hit.mid, hit) for hit in self.index.search(source, scope, query))
            if search.second is not None:
                only_second += self.second.nearest(db, scope, query, search.second)
        only_second = [mid for mid in only_second if mid not in scores]
        scores.update((mid, IndexHit(mid, None, None)) for mid in only_second)
        by_mid = candidates_of(db, reach, scopes, scores, terms)
        score_by_rows(db, source, search, {mid: by_mid[mid] for mid in only_second if mid in by_mid})
        self.second.score_by_rows(db, search, by_mid)
        return list(by_mid.values())

    @read
    def neighbours_in_session(
        self, db: Connection, search: Search, ids: Sequence[str], each: int
    ) -> list[list[Candidate]]:
        return self._neighbours(db, search, ids, each)

    def _neighbours(self, db: Connection, search: Search, ids: Sequence[str], each: int) -> list[list[Candidate]]:
        """Scored from their rows: these few are not worth another pass of the index, which missed them by words."""
        source, reach = checked_source(db, search), search.reach
        scopes = queries.scope_ids(db, reach.tenant, reach.agents)
        runs = [mids for scope in scopes for mids in _session_runs(db, scope, ids, each)]
        terms = query_terms(search.text) if search.text else []
        unknown = {mid: IndexHit(mid, None, None) for mids in runs for mid in mids}
        by_mid = candidates_of(db, reach, scopes, unknown, terms)
        score_by_rows(db, source, search, by_mid)
        self.second.score_by_rows(db, search, by_mid)
        return [[by_mid[mid] for mid in mids if mid in by_mid] for mids in runs]


class _View:
    """As `ReadView` has it, for as long as the transaction."""

    def __init__(self, store: SqliteSearch, db: Connection, scopes: list[int]) -> None:
        self._store, self._db, self._scopes = store, db, scopes

    def context(self, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        return self._store._context_in(self._db, tenant, agents, now)

    def search(self, search: Search) -> list[Candidate]:
        return self._store._search(self._db, search, self._scopes)

    def neighbours_in_session(self, search: Search, ids: Sequence[str], each: int) -> list[list[Candidate]]:
        return self._store._neighbours(self._db, search, ids, each)


def is_indexed(reach: Reach) -> bool:
    return reach.as_of is None and reach.statuses == ("live",)


def checked_source(db: Connection, search: Search) -> RowSource:
    source = RowSource(db)
    if search.generation is not None and search.generation != source.generation:
        raise StaleGeneration
    if search.second_generation is not None:
        second = queries.second_embedder_of(db)
        if search.second_generation != (second.generation if second and second.ready else 0):
            raise StaleGeneration
    return source


def candidates_of(
    db: Connection, reach: Reach, scopes: Sequence[int], scores: _Scores, terms: Sequence[int]
) -> dict[int, Candidate]:
    """By mid."""
    wanted = packed_terms(terms)
    found: dict[int, Candidate] = {}
    for row in queries.rows_in_reach(db, reach, scopes, list(scores), extra="m.terms, m.mid"):
        _, dense, keyword, late = scores[row[-1]]
        matched = matched_terms(row[-2], wanted)
        found[row[-1]] = Candidate(to_memory(row), dense, keyword, matched, late)
    return found


def score_by_rows(db: Connection, source: RowSource, search: Search, by_mid: dict[int, Candidate]) -> None:
    """Fill in the cosine and late interaction of these candidates."""
    if not by_mid or (search.vector is None and search.tokens is None):
        return
    sql = (
        f"SELECT m.mid, v.data, v.tokens FROM memories m JOIN vectors_{source.generation} v ON v.vid = m.vid "
        f"WHERE m.mid IN ({queries.marks(by_mid)})"
    )
    mids, vectors, tokens = [], [], []
    for mid, data, packed in db.execute(sql, tuple(by_mid)):
        mids.append(mid)
        vectors.append(vectors_of(data, source.dimension or 0))
        tokens.append(tokens_of(packed, vectors[-1]))
    if search.vector is not None:
        for mid, cosine in zip(mids, exact_search.dense_scores(vectors, search.vector).tolist(), strict=True):
            by_mid[mid].dense = None if cosine == -math.inf else cosine
    if search.tokens is not None:
        for mid, late in zip(mids, late_scores(search.tokens, tokens), strict=True):
            by_mid[mid].late = late


def _index_masks(reach: Reach) -> tuple[dict[str, Any], list[Condition]]:
    """The conditions that the index answers by itself, and the rest, which need the rows."""
    masks: dict[str, Any] = {}
    rest = []
    for c in reach.where:
        if c.path == ("type",) and c.op in ("eq", "in") and "types" not in masks:
            wanted = c.value if c.op == "in" else [c.value]
            masks["types"] = frozenset(_TYPES[t] for t in wanted if isinstance(t, str) and t in _TYPES)
        elif c.path == ("user_id",) and c.op == "eq" and isinstance(c.value, str) and "user" not in masks:
            masks["user"] = _user_code(c.value)
        elif c.path == ("created_at",) and c.op == "gte" and type(c.value) is int and "created_from" not in masks:
            masks["created_from"] = c.value
        else:
            rest.append(c)
    return masks, rest


def _user_code(user_id: str | None) -> int:
    if user_id is None:
        return 0
    return int.from_bytes(blake2b(user_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


def _search_exactly(db: Connection, source: RowSource, search: Search, terms: Sequence[int]) -> list[Candidate]:
    """Every version the reach sees, scored one by one: for instants in the past, which no segment holds."""
    found: list[tuple[Any, ...]] = []
    for table, condition, values in queries.versions_in_reach(db, search.reach):
        join = f"LEFT JOIN vectors_{source.generation} v ON v.vid = m.vid"
        sql = f"{queries.select(table, extra='m.vid, m.terms, v.data')} {join} WHERE {condition}"
        found += db.execute(sql, values)
    # Which table a version lies in changes with later writes; which of equals are among the best must not.
    found.sort(key=lambda row: row[0])
    derived = [(row[-2], vectors_of(row[-1], source.dimension or 0)) for row in found]

    def tokens(places: Sequence[int]) -> list[bytes | None]:
        kept = _tokens_by_number(db, source.generation, [found[place][-3] for place in places])
        return [kept.get(found[place][-3]) for place in places]

    second = None if search.second is None else _second_scores(db, [row[-3] for row in found], search.second)
    return rank_rows(found, derived, search, terms, tokens, second)


def _tokens_by_number(db: Connection, generation: int, vids: Sequence[int]) -> dict[int, bytes]:
    sql = f"SELECT vid, tokens FROM vectors_{generation} WHERE vid IN ({queries.marks(vids)}) AND tokens IS NOT NULL"
    return dict(db.execute(sql, tuple(vids)))


def _session_runs(db: Connection, scope: int, ids: Sequence[str], each: int) -> list[list[int]]:
    """Numbers of live memories, in the order written: these and up to `each` around them in their sessions."""
    sql = f"SELECT mid, session_id FROM memories WHERE id IN ({queries.marks(ids)}) AND +scope_id = ?"
    named = sorted((session, mid) for mid, session in db.execute(sql, (*ids, scope)) if session is not None)
    beside = "SELECT mid FROM memories WHERE scope_id = ? AND session_id = ? AND status = 'live' AND mid {} LIMIT ?"
    before, after = beside.format("< ? ORDER BY mid DESC"), beside.format("> ? ORDER BY mid")
    found: list[tuple[str, list[int]]] = []
    for session, mid in named:
        if found and found[-1][0] == session and mid in found[-1][1]:
            run = found.pop()[1]  # within reach of the one before: they share a run
            run = run[: run.index(mid)]
        else:
            run = [m for (m,) in db.execute(before, (scope, session, mid, each))][::-1]
            if found and found[-1][0] == session and run and run[0] in found[-1][1]:
                earlier = found.pop()[1]
                run = earlier[: earlier.index(run[0])] + run
        run += [mid, *(m for (m,) in db.execute(after, (scope, session, mid, each)))]
        found.append((session, run))
    return [run for _, run in found]


def _second_scores(db: Connection, vids: Iterable[int], vector: Vectors) -> exact_search.Scores:
    """What a second embedder made of these versions, by the numbers of their vectors."""
    read_one = "SELECT data FROM second_vectors WHERE vid = ?"
    held = [next(iter(db.execute(read_one, (vid,))), (None,))[0] for vid in vids]
    return exact_search.dense_scores([vectors_of(data, len(vector)) for data in held], vector)
