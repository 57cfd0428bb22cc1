"""Rows as the index wants them, and a search of the index turned back into memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import apsw
import numpy as np

from commonplace.stores import exact_search
from commonplace.stores.base import Candidate, EmbedderInfo, Reach, Search, StaleGeneration
from commonplace.stores.sqlite import reader, rows
from commonplace.stores.sqlite.index import Catalogue, IndexQuery, IndexRow
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.stores.text import matched_terms, packed_terms, query_terms
from commonplace.wire.filters import Condition
from commonplace.wire.record import MEMORY_TYPES

_TYPES = {name: code for code, name in enumerate(MEMORY_TYPES)}
_FEW = 400  # memories fetched per statement


def user_code(user_id: str | None) -> int:
    if user_id is None:
        return 0
    return int.from_bytes(blake2b(user_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


def embedder_of(db: apsw.Connection) -> EmbedderInfo | None:
    meta = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('embedder', 'dimension', 'generation')"))
    if "embedder" not in meta:
        return None
    return EmbedderInfo(meta["embedder"], meta["dimension"], meta["generation"])


def rows_of(db: apsw.Connection) -> Rows:
    info = embedder_of(db)
    return Rows(db, info, info.generation if info else 1)


class Rows:
    """The index's view of one read transaction."""

    def __init__(self, db: apsw.Connection, info: EmbedderInfo | None, generation: int) -> None:
        self._db = db
        self.generation = generation
        self.dimension = info.dimension if info else None

    def changes(self, scope: int, after_seq: int) -> Iterator[IndexRow]:
        found = self._db.execute(
            "SELECT m.mid, m.seq, m.status = 'live', m.type, m.user_id, m.created_at, m.expires_at, m.terms, v.data "
            f"FROM memories m LEFT JOIN vectors_{self.generation} v ON v.vid = m.vid "
            "WHERE m.scope_id = ? AND m.seq > ? ORDER BY m.seq",
            (scope, after_seq),
        )
        for mid, seq, live, type, user_id, created_at, expires_at, terms, data in found:
            yield IndexRow(
                mid, seq, bool(live), _TYPES[type], user_code(user_id), created_at, expires_at or 0, terms, data
            )

    def erasures(self, scope: int, after_seq: int) -> Iterable[tuple[int, int]]:
        sql = "SELECT mid, seq FROM erasures WHERE scope_id = ? AND seq > ? ORDER BY seq"
        yield from self._db.execute(sql, (scope, after_seq))

    def count(self, scope: int) -> int:
        sql = "SELECT count(*) FROM memories WHERE scope_id = ? AND status = 'live'"
        return int(rows.one(self._db, sql, (scope,))[0])


def search(db: apsw.Connection, catalogue: Catalogue, view: Rows, search: Search, scopes: list[int]) -> list[Candidate]:
    _check_generation(view, search)
    reach = search.reach
    if reach.as_of is not None or reach.statuses != ("live",):
        return _exactly(db, view, search, scopes)
    terms = query_terms(search.text) if search.text else []
    masks, rest = _masks(reach)
    found: dict[int, tuple[float | None, float | None]] = {}
    for scope in scopes:
        allowed = _allowed(db, reach, scope) if rest else None
        query = IndexQuery(terms, search.vector, search.limit, reach.now, allowed=allowed, **masks)
        for hit in catalogue.search(view, scope, query):
            found[hit.mid] = (hit.dense, hit.keyword)
    return [candidate for _, candidate in _fetch(db, scopes, reach, found, terms)]


def neighbours_in_session(
    db: apsw.Connection, view: Rows, search: Search, ids: Sequence[str], each: int
) -> list[list[Candidate]]:
    """Scored from their rows: these few are not worth another pass of the index, and have been missed by its words."""
    _check_generation(view, search)
    reach = search.reach
    scopes = reader.scope_ids(db, reach.tenant, reach.agents)
    runs = [mids for scope in scopes for mids in reader.runs(db, scope, ids, each)]
    terms = query_terms(search.text) if search.text else []
    by_mid = dict(_fetch(db, scopes, reach, {mid: (None, None) for mids in runs for mid in mids}, terms))
    if search.vector is not None and by_mid:
        sql = (
            f"SELECT m.mid, v.data FROM memories m JOIN vectors_{view.generation} v ON v.vid = m.vid "
            f"WHERE m.mid IN ({', '.join('?' * len(by_mid))})"
        )
        found = [(mid, data) for mid, data in db.execute(sql, tuple(by_mid)) if data]
        vectors = [np.frombuffer(data, np.float32).reshape(-1, view.dimension or 1) for _, data in found]
        for (mid, _), cosine in zip(found, exact_search.dense_scores(vectors, search.vector).tolist(), strict=True):
            by_mid[mid].dense = cosine
    return [[by_mid[mid] for mid in mids if mid in by_mid] for mids in runs]


def _check_generation(view: Rows, search: Search) -> None:
    if search.generation is not None and search.generation != view.generation:
        raise StaleGeneration


def _masks(reach: Reach) -> tuple[dict[str, Any], list[Condition]]:
    """The conditions that the index answers by itself, and the rest, which need the rows."""
    masks: dict[str, Any] = {"types": None, "user": None, "created_from": None, "created_before": None}
    rest = []
    for c in reach.where:
        if c.path == ("type",) and c.op in ("eq", "in") and masks["types"] is None:
            wanted = c.value if c.op == "in" else [c.value]
            masks["types"] = frozenset(_TYPES[t] for t in wanted if isinstance(t, str) and t in _TYPES)
        elif c.path == ("user_id",) and c.op == "eq" and isinstance(c.value, str) and masks["user"] is None:
            masks["user"] = user_code(c.value)
        elif c.path == ("created_at",) and c.op == "gte" and type(c.value) is int and masks["created_from"] is None:
            masks["created_from"] = c.value
        else:
            rest.append(c)
    return masks, rest


def _allowed(db: apsw.Connection, reach: Reach, scope: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    sql, values = reach_sql(reach)
    found = db.execute(
        "SELECT m.mid FROM memories m LEFT JOIN recalls r ON r.mid = m.mid "
        f"WHERE m.scope_id = ? AND {sql} ORDER BY m.mid",
        (scope, *values),
    )
    return np.fromiter((mid for (mid,) in found), dtype=np.int64)


def _fetch(
    db: apsw.Connection,
    scopes: list[int],
    reach: Reach,
    found: dict[int, tuple[float | None, float | None]],
    terms: Sequence[int],
) -> list[tuple[int, Candidate]]:
    # The rows have the last word: whatever the index says, nothing outside the reach gets out.
    sql, values = reach_sql(reach)
    mids = list(found)
    inside = ", ".join("?" * len(scopes))
    wanted = packed_terms(terms)
    candidates = []
    for start in range(0, len(mids), _FEW):
        some = mids[start : start + _FEW]
        query = (
            f"{rows.select('memories', extra='m.terms, m.mid')} "
            f"WHERE m.mid IN ({', '.join('?' * len(some))}) AND +m.scope_id IN ({inside}) AND {sql}"
        )
        for row in db.execute(query, (*some, *scopes, *values)):
            *_, blob, mid = row
            dense, keyword = found[mid]
            candidates.append((mid, Candidate(rows.to_memory(row), dense, keyword, matched_terms(blob, wanted))))
    return candidates


def _exactly(db: apsw.Connection, view: Rows, search: Search, scopes: list[int]) -> list[Candidate]:
    """Every version the reach sees, scored one by one: for instants in the past, which no segment holds."""
    found: list[tuple[Any, ...]] = []
    for table, condition, values in reader.versions_in(search.reach, scopes):
        query = (
            f"{rows.select(table, extra='m.terms, v.data')} "
            f"LEFT JOIN vectors_{view.generation} v ON v.vid = m.vid WHERE {condition}"
        )
        found += db.execute(query, values)
    # Which table a version lies in changes with later writes; which of equals are among the best must not.
    found.sort(key=lambda row: row[0])
    derived = [(row[-2], None if row[-1] is None else _parts(row[-1], view)) for row in found]
    terms = query_terms(search.text or "")
    ranked = exact_search.rank(derived, terms, search.vector, search.limit)
    wanted = packed_terms(terms)
    # Only the best are made memories: of an agent with many, that is what takes the time.
    return [Candidate(rows.to_memory(found[i]), d, k, matched_terms(found[i][-2], wanted)) for i, d, k in ranked]


def _parts(data: bytes, view: Rows) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(data, np.float32).reshape(-1, view.dimension or 1)
