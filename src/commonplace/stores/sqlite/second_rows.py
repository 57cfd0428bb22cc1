"""The cells of `second_vectors`: what a second embedder made of one version of a memory."""

from __future__ import annotations

from collections.abc import Iterable

from apsw import Connection

from commonplace.stores import exact_search
from commonplace.stores.base import Vectors
from commonplace.stores.sqlite.vector_rows import vectors_of


def scores_by_number(db: Connection, vids: Iterable[int], vector: Vectors) -> exact_search.Scores:
    """Of versions, by the numbers of their vectors."""
    read_one = "SELECT data FROM second_vectors WHERE vid = ?"
    held = [next(iter(db.execute(read_one, (vid,))), (None,))[0] for vid in vids]
    return exact_search.dense_scores([vectors_of(data, len(vector)) for data in held], vector)
