"""What a live memory is found by, as rows: the postings of its words, and its vectors at half precision."""

from __future__ import annotations

import json

import numpy as np

from commonplace.stores import text
from commonplace.stores.base import Vectors
from commonplace.stores.postgres.connections import Session
from commonplace.stores.vector_cells import vectors_of

_COUNT = "UPDATE scopes SET documents = documents + %s, words = words + %s WHERE id = %s"


def add_words(db: Session, scope: int, mid: int, terms: bytes) -> None:
    """With its scope's counts, which words are weighed by."""
    hashes, counts = text.decode(terms)
    words = int(counts.sum())
    if len(hashes):
        codes = text.code(counts, words)
        sql = "INSERT INTO postings SELECT %s, term, %s, code FROM unnest(%s::bigint[], %s::int[]) w(term, code)"
        db.execute(sql, (scope, mid, hashes.view(np.int64).tolist(), codes.tolist()))
    db.execute(_COUNT, (1, words, scope))


def drop_words(db: Session, scope: int, mid: int, terms: bytes) -> None:
    hashes, counts = text.decode(terms)
    if len(hashes):
        sql = "DELETE FROM postings WHERE scope_id = %s AND mid = %s AND term = ANY(%s::bigint[])"
        db.execute(sql, (scope, mid, hashes.view(np.int64).tolist()))
    db.execute(_COUNT, (-1, -int(counts.sum()), scope))


def add_vectors(db: Session, table: str, dimension: int | None, scope: int, mid: int, data: bytes | None) -> None:
    """Of a cell of this dimension; nothing where it has none."""
    vectors = vectors_of(data, dimension or 0)
    if vectors is not None:
        sql = f"INSERT INTO {table} SELECT %s, %s, i, v FROM unnest(%s::halfvec[]) WITH ORDINALITY w(v, i)"
        db.execute(sql, (scope, mid, [halfvec(vector) for vector in vectors]))


def drop_vectors(db: Session, table: str, scope: int, mid: int) -> None:
    db.execute(f"DELETE FROM {table} WHERE scope_id = %s AND mid = %s", (scope, mid))


def halfvec(vector: Vectors) -> str:
    """As pgvector reads it; six digits are more than half precision keeps."""
    return json.dumps(np.round(vector.astype(np.float64), 6).tolist(), separators=(",", ":"))
