"""The search: each leg names the best it finds in the tables, and these few are scored exactly from their rows.

Small scopes are read whole, several by one statement (see `small_scopes`). In a large one, by meaning an HNSW graph of
it alone is asked (see `vector_indexes`), and by words BM25 is added up by the database, as MaxScore does: only of
memories that have one of the rarer words, where no other can be among the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commonplace.stores import exact_search, text
from commonplace.stores.base import Candidate, Reach, Search, StaleGeneration, Vectors
from commonplace.stores.postgres import queries
from commonplace.stores.postgres.connections import Rows, Session, StorePart, read
from commonplace.stores.postgres.found_by import halfvec
from commonplace.stores.postgres.small_scopes import Scope, ScopeFindings, SmallScopes, nearest
from commonplace.stores.postgres.sql_where import reach_sql
from commonplace.stores.row_format import MEMORY_FIELDS, to_memory
from commonplace.stores.row_search import late_scores, rank_rows
from commonplace.stores.text import matched_terms, packed_terms, query_terms
from commonplace.stores.vector_cells import tokens_of, vectors_of

#: Up to so many memories of a scope are compared one by one, also where a filter leaves no more of a larger one.
EXACT = 10_000
#: Up to so many memories of several small scopes are searched by one statement: what it sends is in memory at once.
GROUP_DOCUMENTS = 2_000
#: Beyond what is asked for: vectors are searched at half precision, and several may be of one memory.
_SPARE = 8
_MOST_SCANNED = 100_000  # of a graph's nodes, where a filter passes few

_WIDTH = len(MEMORY_FIELDS)
_SCOPES = (
    "SELECT s.id, s.documents, s.words, "
    "ARRAY(SELECT i.parts FROM vector_indexes i WHERE i.scope_id = s.id AND i.ready) "
    "FROM scopes s JOIN tenants t ON t.id = s.tenant_id WHERE t.name = %s "
    "AND md5(s.agent_id) = ANY(ARRAY(SELECT md5(w) FROM unnest(%s::text[]) w)) AND s.agent_id = ANY(%s::text[])"
)
_CONTAINING = """
SELECT w.term, (SELECT count(*) FROM postings p WHERE p.scope_id = %s AND p.term = w.term)
FROM unnest(%s::bigint[]) AS w(term)
"""
_BY_WORDS = """
WITH w AS MATERIALIZED (SELECT * FROM unnest(%s::bigint[], %s::float8[]) AS w(term, idf)) {rare}
SELECT p.mid, sum(w.idf * (%s::float8[])[p.code + 1]) AS score
FROM w JOIN postings p ON p.scope_id = %s AND p.term = w.term {among} {join}
GROUP BY p.mid ORDER BY score DESC, p.mid LIMIT %s
"""
_RARE = ", rare AS MATERIALIZED (SELECT DISTINCT mid FROM postings WHERE scope_id = %s AND term = ANY(%s::bigint[]))"
#: A word that more than one in so many memories have is common.
_COMMON = 16
_JOIN = "JOIN memories m ON m.mid = p.mid LEFT JOIN recalls r ON r.mid = m.mid WHERE {seen}"
#: Sent as they come: no graph is asked without an order.
_ONE_BY_ONE = """
SELECT string_agg(int8send(p.mid), ''), string_agg(float8send(p.embedding <#> %s::text::halfvec), '')
FROM {table} p {join}
"""


@dataclass(slots=True, frozen=True)
class _View:
    """What a search needs to know of the store, read in its transaction."""

    generation: int
    dimension: int
    second_dimension: int  # 0 where there are no second vectors to search by

    @classmethod
    def of(cls, db: Session, search: Search) -> _View:
        meta = queries.read_meta(db)
        generation = meta["generation"]
        if search.generation is not None and search.generation != generation:
            raise StaleGeneration
        second = queries.second_embedder_of(meta)
        ready = second if second and second.ready else None
        if search.second_generation is not None and search.second_generation != (ready.generation if ready else 0):
            raise StaleGeneration
        return cls(generation, meta.get("dimension") or 0, ready.dimension if ready else 0)


class PostgresSearch(StorePart):
    async def search(self, search: Search) -> list[Candidate]:
        def find(db: Session) -> list[Candidate]:
            return _search(db, search)

        if _is_indexed(search.reach):
            return await self._readers.run(find)
        return await self._readers.run_scan(search.reach.tenant, find)

    @read
    def neighbours_in_session(
        self, db: Session, search: Search, ids: Sequence[str], each: int
    ) -> list[list[Candidate]]:
        view, reach = _View.of(db, search), search.reach
        scopes = queries.scope_ids(db, reach.tenant, reach.agents)
        runs = _session_runs(db, scopes, ids, each)
        terms = query_terms(search.text) if search.text else []
        mids = sorted({mid for run in runs for mid in run})
        by_mid = _score(search, terms, view, _rows(db, view, reach, scopes, mids))
        return [[by_mid[mid] for mid in run if mid in by_mid] for run in runs]


def _is_indexed(reach: Reach) -> bool:
    return reach.as_of is None and reach.statuses == ("live",)


def _search(db: Session, search: Search) -> list[Candidate]:
    view, reach = _View.of(db, search), search.reach
    terms = query_terms(search.text) if search.text else []
    if search.limit <= 0:
        return []
    if not _is_indexed(reach):
        return _search_the_past(db, view, search, terms)
    names = list(reach.agents)
    scopes = [Scope(*row) for row in db.rows(_SCOPES, (reach.tenant, names, names))]
    return [found for group in _groups(scopes) for found in _search_group(db, view, group, search, terms)]


def _groups(scopes: Iterable[Scope]) -> Iterator[list[Scope]]:
    """Those that have anything: small ones together, as long as they are not too much; each large one alone."""
    group, documents = list[Scope](), 0
    for scope in scopes:
        # In a group of several nothing is large, whatever the two limits are.
        if group and documents + scope.documents > min(GROUP_DOCUMENTS, EXACT):
            yield group
            group, documents = [], 0
        if scope.documents:
            group.append(scope)
            documents += scope.documents
    if group:
        yield group


def _search_group(
    db: Session, view: _View, scopes: Sequence[Scope], search: Search, terms: Sequence[int]
) -> list[Candidate]:
    # What has expired is rare: the legs look at rows only where there are conditions, or where some had expired.
    candidates, checked = list[Candidate](), bool(search.reach.where)
    while scopes:
        found = _find(db, view, scopes, search, terms, checked)
        rows = _rows_by_scope(db, view, search.reach, found)
        again: list[Scope] = []
        for scope in scopes:
            if not checked and len(rows[scope.id]) < len(found[scope.id].mids):
                again.append(scope)
            else:
                candidates += _rank(view, scope, found[scope.id].containing, rows[scope.id], search, terms)
        scopes, checked = again, True
    return candidates


def _find(
    db: Session, view: _View, scopes: Sequence[Scope], search: Search, terms: Sequence[int], checked: bool
) -> dict[int, ScopeFindings]:
    vectors = _searched_tables(view, search)
    depth = search.limit if search.tokens is None else max(search.depth, search.limit)
    if scopes[0].documents <= EXACT:
        small = SmallScopes(db, scopes, depth + _SPARE, search.reach if checked else None)
        small.by_words(terms)
        small.by_meaning(vectors)
        return small.found
    (large,) = scopes
    legs = _Legs(db, large, search.reach, depth, checked)
    containing, found = legs.by_words(terms)
    for table, vector in vectors.items():
        found |= legs.by_meaning(table, vector)
    return {large.id: ScopeFindings(containing, found)}


def _searched_tables(view: _View, search: Search) -> dict[str, Vectors]:
    """The tables of parts, each with what is looked for in it."""
    found: dict[str, Vectors] = {}
    if search.vector is not None and view.dimension == len(search.vector):
        found[f"parts_{view.generation}"] = search.vector
    if search.second is not None and view.second_dimension == len(search.second):
        found["second_parts"] = search.second
    return found


def _rows_by_scope(db: Session, view: _View, reach: Reach, found: Mapping[int, ScopeFindings]) -> dict[int, Rows]:
    owners = {mid: scope for scope, each in found.items() for mid in each.mids}
    rows: dict[int, Rows] = {scope: [] for scope in found}
    for row in _rows(db, view, reach, list(found), sorted(owners)):
        rows[owners[row[_WIDTH]]].append(row)
    return rows


def _rank(
    view: _View, scope: Scope, containing: dict[int, int], rows: Rows, search: Search, terms: Sequence[int]
) -> list[Candidate]:
    derived = [(row[_WIDTH + 1], vectors_of(row[_WIDTH + 2], view.dimension)) for row in rows]
    second = None
    if search.second is not None:
        held = [vectors_of(row[_WIDTH + 4], view.second_dimension) for row in rows]
        second = exact_search.dense_scores(held, search.second)
    statistics = exact_search.Statistics(scope.documents, scope.words, containing)

    def tokens(places: Sequence[int]) -> list[bytes | None]:
        return [rows[place][_WIDTH + 3] for place in places]

    return rank_rows(rows, derived, search, terms, tokens, second, statistics)


class _Legs:
    """The numbers of the memories that each leg finds best in one large scope."""

    def __init__(self, db: Session, scope: Scope, reach: Reach, depth: int, checked: bool) -> None:
        self._db, self._scope, self._reach = db, scope, reach
        self._depth, self._wanted = depth, depth + _SPARE
        self._checked = checked  # whether rows are looked at, so that only what is in reach counts
        seen, self._values = reach_sql(reach)
        self._join = _JOIN.format(seen=seen) if checked else ""
        if not checked:
            self._values = []

    def by_words(self, terms: Sequence[int]) -> tuple[dict[int, int], set[int]]:
        """How many have each term, and the best."""
        if not terms:
            return {}, set()
        signed = np.array(terms, np.uint64).view(np.int64).tolist()
        counted: dict[int, int] = dict(self._db.rows(_CONTAINING, (self._scope.id, signed)))
        containing = {term: counted[held] for term, held in zip(terms, signed, strict=True) if counted[held]}
        held = [term for term in signed if counted[term]]
        return containing, self._best_by_words(held, counted) if held else set()

    def _best_by_words(self, terms: list[int], counted: Mapping[int, int]) -> set[int]:
        documents, wanted = self._scope.documents, self._wanted
        impacts = text.impact_table(self._scope.words / max(documents, 1)).tolist()
        idf = [text.idf(documents, counted[term]) for term in terms]
        common = [counted[term] * _COMMON > documents for term in terms]
        rare = [term for term, often in zip(terms, common, strict=True) if not often]
        if rare and len(rare) < len(terms):
            found = self._scored_by_words(terms, idf, impacts, wanted, rare)
            # The upper bound of any memory without a rare word: above it nobody was missed.
            max_common_score = max(impacts) * sum(value for value, often in zip(idf, common, strict=True) if often)
            if len(found) == wanted and found[-1][1] > max_common_score:
                return {mid for mid, _ in found}
        return {mid for mid, _ in self._scored_by_words(terms, idf, impacts, wanted)}

    def _scored_by_words(
        self, terms: list[int], idf: list[float], impacts: list[float], wanted: int, rare: list[int] | None = None
    ) -> Rows:
        """The best, and their scores; of those that have one of the `rare` words, where such are named."""
        those, among, of_rare = "", "", []
        if rare is not None:
            those, among, of_rare = _RARE, "JOIN rare ON rare.mid = p.mid", [self._scope.id, rare]
        sql = _BY_WORDS.format(rare=those, among=among, join=self._join)
        return self._db.rows(sql, (terms, idf, *of_rare, impacts, self._scope.id, *self._values, wanted))

    def by_meaning(self, table: str, vector: Vectors) -> set[int]:
        if table not in self._scope.graphs:
            return self._one_by_one(table, vector)
        if self._checked and (few := self._few_in_reach()) is not None:
            return self._one_by_one(table, vector, few)
        return self._by_graph(table, vector)

    def _one_by_one(self, table: str, vector: Vectors, mids: list[int] | None = None) -> set[int]:
        values: list[Any] = [halfvec(vector)]
        if mids is not None:
            join = "WHERE p.scope_id = %s AND p.mid = ANY(%s)"
            values += [self._scope.id, mids]
        else:
            join = f"{self._join or 'WHERE true'} AND p.scope_id = %s"
            values += [*self._values, self._scope.id]
        sent, distances = self._db.one(_ONE_BY_ONE.format(table=table, join=join), values)
        if sent is None:
            return set()
        return nearest(np.frombuffer(sent, ">i8"), np.frombuffer(distances, ">f8"), self._wanted)

    def _few_in_reach(self) -> list[int] | None:
        """All that the filter passes; None when they are too many to compare one by one."""
        seen, values = reach_sql(self._reach)
        sql = f"SELECT m.mid FROM memories m LEFT JOIN recalls r ON r.mid = m.mid WHERE m.scope_id = %s AND {seen}"
        found = [mid for (mid,) in self._db.rows(f"{sql} LIMIT %s", (self._scope.id, *values, EXACT + 1))]
        return None if len(found) > EXACT else found

    def _by_graph(self, table: str, vector: Vectors) -> set[int]:
        wanted = 2 * self._depth + _SPARE
        ahead = {
            "hnsw.ef_search": min(max(4 * self._depth, 200), 1000),
            "hnsw.max_scan_tuples": _MOST_SCANNED,
            # The planner does not know what a graph is for: anything but it would sort every row.
            "enable_seqscan": "off",
            "enable_bitmapscan": "off",
            "enable_sort": "off",
        }
        for name, value in ahead.items():
            self._db.execute(f"SET LOCAL {name} = {value}")
        where = ""
        if self._checked:
            join = self._join.removeprefix("JOIN memories m ON m.mid = p.mid ").replace(
                "WHERE ", "WHERE m.mid = p.mid AND ", 1
            )
            where = f"AND EXISTS (SELECT 1 FROM memories m {join})"
        # The scope is part of the statement: a graph of one scope is only used where it is known which is meant.
        sql = (
            f"SELECT p.mid FROM {table} p WHERE p.scope_id = {self._scope.id} {where} "
            "ORDER BY p.embedding <#> %s::text::halfvec LIMIT %s"
        )
        found = self._db.rows(sql, (*self._values, halfvec(vector), wanted))
        for name in ahead:
            self._db.execute(f"SET LOCAL {name} TO DEFAULT")
        return set(list(dict.fromkeys(mid for (mid,) in found))[: self._wanted])


def _rows(db: Session, view: _View, reach: Reach, scopes: Sequence[int], mids: Sequence[int]) -> Rows:
    """Those of `mids` that the reach admits, with (mid, terms, vectors, tokens, second vectors) at their end: whatever
    an index says, nothing else gets out."""
    if not mids:
        return []
    seen, values = reach_sql(reach)
    second = "x.data" if view.second_dimension else "NULL::bytea"
    extra = f"m.mid, m.terms, v.data, v.tokens, {second}"
    join = f"LEFT JOIN vectors_{view.generation} v ON v.vid = m.vid "
    join += "LEFT JOIN second_vectors x ON x.vid = m.vid " if view.second_dimension else ""
    # Of the scope no index is asked: the numbers name the rows, and an index would be read for all that the scope has.
    where = f"WHERE m.mid = ANY(%s) AND m.scope_id + 0 = ANY(%s) AND {seen} ORDER BY m.mid"
    return db.rows(queries.select("memories", extra) + join + where, (list(mids), list(scopes), *values))


def _score(search: Search, terms: Sequence[int], view: _View, rows: Rows) -> dict[int, Candidate]:
    """Every one of these rows as a candidate, without a score by words; by its number."""
    wanted = packed_terms(terms)
    vectors = [vectors_of(row[_WIDTH + 2], view.dimension) for row in rows]
    dense = None if search.vector is None else exact_search.dense_scores(vectors, search.vector)
    late: Sequence[float | None] = [None] * len(rows)
    if search.tokens is not None:
        kept = [tokens_of(row[_WIDTH + 3], held) for row, held in zip(rows, vectors, strict=True)]
        late = late_scores(search.tokens, kept)
    second = None
    if search.second is not None:
        held = [vectors_of(row[_WIDTH + 4], view.second_dimension) for row in rows]
        second = exact_search.dense_scores(held, search.second)
    return {
        row[_WIDTH]: Candidate(
            to_memory(row),
            exact_search.given(dense, i),
            None,
            matched_terms(row[_WIDTH + 1], wanted),
            late[i],
            exact_search.given(second, i),
        )
        for i, row in enumerate(rows)
    }


def _search_the_past(db: Session, view: _View, search: Search, terms: Sequence[int]) -> list[Candidate]:
    """Every version the reach sees, scored one by one: for instants in the past, which no index holds."""
    found: Rows = []
    for table, condition, values in queries.versions_in_reach(db, search.reach):
        join = f"LEFT JOIN vectors_{view.generation} v ON v.vid = m.vid"
        sql = f"{queries.select(table, extra='m.vid, m.terms, v.data')} {join} WHERE {condition}"
        found += db.rows(sql, values)
    # Which table a version lies in changes with later writes; which of equals are among the best must not.
    found.sort(key=lambda row: str(row[0]))
    derived = [(row[_WIDTH + 1], vectors_of(row[_WIDTH + 2], view.dimension)) for row in found]

    def cells(column: str, table: str, vids: Sequence[int]) -> dict[int, bytes]:
        sql = f"SELECT vid, {column} FROM {table} WHERE vid = ANY(%s) AND {column} IS NOT NULL"
        return dict(db.rows(sql, (list(vids),)))

    def tokens(places: Sequence[int]) -> list[bytes | None]:
        vids = [found[place][_WIDTH] for place in places]
        kept = cells("tokens", f"vectors_{view.generation}", vids)
        return [kept.get(vid) for vid in vids]

    second = None
    if search.second is not None:
        vids = [row[_WIDTH] for row in found]
        held = cells("data", "second_vectors", vids)
        second = exact_search.dense_scores([vectors_of(held.get(v), len(search.second)) for v in vids], search.second)
    return rank_rows(found, derived, search, terms, tokens, second)


def _session_runs(db: Session, scopes: Sequence[int], ids: Sequence[str], each: int) -> list[list[int]]:
    """Numbers of live memories, in the order written: these and up to `each` around them in their sessions."""
    beside = (
        "SELECT mid FROM memories WHERE scope_id = n.scope_id AND md5(session_id) = md5(n.session_id) "
        "AND session_id = n.session_id AND status = 'live' AND mid {} n.mid ORDER BY mid {} LIMIT %s"
    )
    sql = (
        "SELECT n.scope_id, n.session_id, n.mid, ARRAY(SELECT mid FROM ("
        f"({beside.format('<', 'DESC')}) UNION ALL ({beside.format('>', 'ASC')})) b) "
        "FROM memories n WHERE n.id = ANY(%s::text[]) AND n.scope_id = ANY(%s) AND n.session_id IS NOT NULL "
        "ORDER BY n.scope_id, n.session_id, n.mid"
    )
    runs: list[tuple[tuple[int, str], set[int]]] = []
    for scope, session, mid, around in db.rows(sql, (each, each, list(ids), list(scopes))):
        run = {mid, *around}
        if runs and runs[-1][0] == (scope, session) and runs[-1][1] & run:  # within reach of the one before
            runs[-1][1].update(run)
        else:
            runs.append(((scope, session), run))
    return [sorted(run) for _, run in runs]
