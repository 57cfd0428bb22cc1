"""The legs of a search in small scopes: each scope is read whole, and several by one statement.

Sending what there is costs the database less than sorting it, and asking once costs less than asking for each: whoever
names no agent asks of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commonplace.stores import text
from commonplace.stores.base import Reach, Vectors
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.found_by import halfvec
from commonplace.stores.postgres.sql_where import reach_sql


@dataclass(slots=True, frozen=True)
class Scope:
    id: int
    documents: int
    words: int
    graphs: Sequence[str]  # the tables of parts that have one of this scope


@dataclass(slots=True)
class ScopeFindings:
    """In one scope: how many memories have each term, and the numbers of those that the legs find best."""

    containing: dict[int, int] = field(default_factory=dict)
    mids: set[int] = field(default_factory=set)


#: The partition of one scope is known before anything is read. Several are named by their numbers, too, and not joined:
#: the planner would take a scope that it does not know for one as large as the others of its partition, and read all.
_ONE, _SEVERAL = "scope_id = %s", "scope_id = ANY(%s::integer[])"
#: By scope, each word with the numbers of the memories that have it, and the codes of how they do, in the same order.
_POSTINGS = """
SELECT scope_id, term, string_agg(int8send(mid), ''), string_agg(int2send(code), '')
FROM postings WHERE {scopes} AND term = ANY(%s::bigint[]) GROUP BY scope_id, term
"""
_DISTANCES = """
SELECT scope_id, string_agg(int8send(mid), ''), string_agg(float8send(embedding <#> %s::text::halfvec), '')
FROM {table} WHERE {scopes} GROUP BY scope_id
"""
_IN_REACH = (
    "SELECT string_agg(int8send(m.mid), '') FROM memories m LEFT JOIN recalls r ON r.mid = m.mid "
    "WHERE m.scope_id = ANY(%s) AND {seen}"
)


class SmallScopes:
    """`wanted` are the best of each leg and scope; with a reach only those that are in it."""

    def __init__(self, db: Session, scopes: Sequence[Scope], wanted: int, reach: Reach | None) -> None:
        self._db, self._scopes, self._wanted = db, {scope.id: scope for scope in scopes}, wanted
        ids = list(self._scopes)
        self._named = _ONE if len(ids) == 1 else _SEVERAL
        self._ids: int | list[int] = ids[0] if len(ids) == 1 else ids
        self.found = {id: ScopeFindings() for id in ids}
        self._in_reach: np.ndarray | None = None
        if reach is not None:
            seen, values = reach_sql(reach)
            (sent,) = db.one(_IN_REACH.format(seen=seen), (ids, *values))
            self._in_reach = np.frombuffer(sent or b"", ">i8")

    def by_words(self, terms: Sequence[int]) -> None:
        if not terms:
            return
        signed = dict(zip(np.array(terms, np.uint64).view(np.int64).tolist(), terms, strict=True))
        lists: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        impacts: dict[int, np.ndarray] = {}
        for id, term, sent, codes in self._db.rows(_POSTINGS.format(scopes=self._named), (self._ids, list(signed))):
            scope, mids = self._scopes[id], np.frombuffer(sent, ">i8")
            self.found[id].containing[signed[term]] = len(mids)
            if id not in impacts:
                impacts[id] = text.impact_table(scope.words / scope.documents)
            scores = text.idf(scope.documents, len(mids)) * impacts[id][np.frombuffer(codes, ">i2")]
            lists.setdefault(id, []).append((mids, scores))
        for id, held in lists.items():
            mids, places = np.unique(np.concatenate([mids for mids, _ in held]), return_inverse=True)
            self._note_best(id, mids, -np.bincount(places, np.concatenate([scores for _, scores in held])))

    def by_meaning(self, vectors: Mapping[str, Vectors]) -> None:
        """`vectors`: by table of parts, what its vectors are compared with."""
        for table, vector in vectors.items():
            sql = _DISTANCES.format(scopes=self._named, table=table)
            for id, sent, distances in self._db.rows(sql, (halfvec(vector), self._ids)):
                self._note_best(id, np.frombuffer(sent, ">i8"), np.frombuffer(distances, ">f8"))

    def _note_best(self, id: int, mids: np.ndarray, distances: np.ndarray) -> None:
        if self._in_reach is not None:
            admitted = np.isin(mids, self._in_reach)
            mids, distances = mids[admitted], distances[admitted]
        self.found[id].mids.update(nearest(mids, distances, self._wanted))


def nearest(mids: np.ndarray, distances: np.ndarray, wanted: int) -> set[int]:
    """The first of them, each once: of several distances of one memory the least counts."""
    ordered = mids[np.lexsort((mids, distances))]
    _, first = np.unique(ordered, return_index=True)
    return set(ordered[np.sort(first)[:wanted]].tolist())
