"""What every memory of a scope is worth: a few numbers for each, kept in memory and brought up to date by what changed.

Ordering a large scope by worth would otherwise read all of its rows at every recall.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from commonplace.stores.base import ImportanceDecay, Reach
from commonplace.stores.sqlite import reader, rows
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.wire.record import Memory

_STATUSES = ("live", "archived", "pending", "deleted")
_CODES = {name: code for code, name in enumerate(_STATUSES)}
_FIRST = "SELECT mid, status, importance, created_at, expires_at FROM memories WHERE scope_id = ?"
_SINCE = f"{_FIRST} AND seq > ?"
_ERASED = "SELECT mid FROM erasures WHERE scope_id = ? AND seq > ?"
_LATEST = (
    "SELECT max(coalesce((SELECT max(seq) FROM memories WHERE scope_id = ?1), 0), "
    "coalesce((SELECT max(seq) FROM erasures WHERE scope_id = ?1), 0))"
)
_RECALLED = "SELECT count(*), total(recalls), max(last_recalled_at) FROM recalls"
_MOST_ROWS = 4_000_000  # held for all scopes together; the one not asked for longest goes first
_SPARE = 16  # rows fetched beyond those wanted, for what has changed a moment ago
_FEW = 400  # memories fetched per statement

_ROW = np.dtype(
    [("mid", "i8"), ("status", "u1"), ("given", "f8"), ("created", "i8"), ("expires", "i8"), ("recalls", "i8")]
)
_PAIR = np.dtype([("mid", "i8"), ("recalls", "i8")])
Rows = NDArray[np.void]


@dataclass(slots=True)
class _Scope:
    seq: int = -1
    rows: Rows = field(default_factory=lambda: np.empty(0, _ROW))  # in order of mid
    counted: Any = None  # the state of the recall counters that `rows` knows


class Estimates:
    """Safe for threads."""

    def __init__(self) -> None:
        self._scopes: dict[int, _Scope] = {}
        self._lock = threading.Lock()

    def most_important(
        self, db: apsw.Connection, reach: Reach, worth: ImportanceDecay, at: int, limit: int
    ) -> list[Memory]:
        """Chosen by what is remembered of them; the rows themselves say whether they are in reach, and the order."""
        best: list[tuple[float, int, int]] = []
        scopes = reader.scope_ids(db, reach.tenant, reach.agents)
        for scope in scopes if limit > 0 else ():
            best += _best(self._follow(db, scope), reach, worth, at, limit + _SPARE, _allowed(db, reach, scope))
        best.sort(reverse=True)
        chosen = [mid for _, _, mid in best[: limit + _SPARE]]
        return worth.order(_fetch(db, reach, scopes, chosen), at)[:limit]

    def _follow(self, db: apsw.Connection, scope: int) -> Rows:
        (latest,) = rows.one(db, _LATEST, (scope,))
        counters = rows.one(db, _RECALLED)
        with self._lock:
            held = self._scopes.pop(scope, None) or _Scope()
            if held.seq < latest:
                held.rows = _changed(held.rows, db, scope, held.seq)
                held.seq, held.counted = latest, None
            if held.counted != counters:
                held.rows = _counted(held.rows, db)
                held.counted = counters
            self._scopes[scope] = held  # now the one asked for last
            while len(self._scopes) > 1 and sum(len(s.rows) for s in self._scopes.values()) > _MOST_ROWS:
                self._scopes.pop(next(iter(self._scopes)))
            return held.rows


def _changed(known: Rows, db: apsw.Connection, scope: int, since: int) -> Rows:
    found = db.execute(_FIRST, (scope,)) if since < 0 else db.execute(_SINCE, (scope, since))
    nothing = float("nan")
    changed = np.fromiter(
        ((mid, _CODES[status], nothing if given is None else given, created, expires or 0, 0)
         for mid, status, given, created, expires in found),
        _ROW,
    )  # fmt: skip
    gone = np.fromiter((mid for (mid,) in db.execute(_ERASED, (scope, since))), np.int64)
    kept = known[~np.isin(known["mid"], np.concatenate([changed["mid"], gone]))] if len(known) else known
    together = np.concatenate([kept, changed])
    return together[np.argsort(together["mid"], kind="stable")]


def _counted(known: Rows, db: apsw.Connection) -> Rows:
    counted = np.fromiter(db.execute("SELECT mid, recalls FROM recalls ORDER BY mid"), _PAIR)
    fresh = known.copy()  # readers of the one before may still look at it
    fresh["recalls"] = 0
    if len(counted) and len(fresh):
        at = np.searchsorted(fresh["mid"], counted["mid"])
        at[at == len(fresh)] = 0
        same = fresh["mid"][at] == counted["mid"]
        fresh["recalls"][at[same]] = counted["recalls"][same]
    return fresh


def _best(
    known: Rows, reach: Reach, worth: ImportanceDecay, at: int, limit: int, allowed: Sequence[int] | None
) -> Iterable[tuple[float, int, int]]:
    """(value, created_at, mid) of the best, in no order."""
    wanted = np.zeros(len(_STATUSES), bool)
    wanted[[_CODES[status] for status in reach.statuses]] = True
    seen = wanted[known["status"]]
    if reach.now is not None:
        seen &= (known["expires"] == 0) | (known["expires"] > reach.now)
    if allowed is not None:
        seen &= np.isin(known["mid"], np.asarray(allowed, np.int64))
    some = known[seen]
    given = np.where(np.isnan(some["given"]), worth.base, some["given"])
    age = np.maximum(at - some["created"], 0)
    value = given * np.exp2(-age / worth.half_life) + np.minimum(worth.each * some["recalls"], worth.most)
    if len(some) > limit:
        best = _highest(value, some["created"], limit)
        some, value = some[best], value[best]
    return zip(value.tolist(), some["created"].tolist(), some["mid"].tolist(), strict=True)


def _highest(value: NDArray[np.float64], created: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """As sorting all of them and taking the last, without sorting those that have no chance."""
    least = np.partition(value, -limit)[-limit]
    able = np.flatnonzero(value >= least)
    return able[np.lexsort((able, created[able], value[able]))[-limit:]]


def _allowed(db: apsw.Connection, reach: Reach, scope: int) -> list[int] | None:
    if not reach.where:
        return None
    sql, values = reach_sql(reach)
    query = f"SELECT m.mid FROM memories m LEFT JOIN recalls r ON r.mid = m.mid WHERE m.scope_id = ? AND {sql}"
    return [mid for (mid,) in db.execute(query, (scope, *values))]


def _fetch(db: apsw.Connection, reach: Reach, scopes: Sequence[int], mids: Sequence[int]) -> list[Memory]:
    sql, values = reach_sql(reach)
    inside = ", ".join("?" * len(scopes))
    found: list[Memory] = []
    for start in range(0, len(mids), _FEW):
        some = mids[start : start + _FEW]
        query = (
            f"{rows.select('memories')} "
            f"WHERE m.mid IN ({', '.join('?' * len(some))}) AND +m.scope_id IN ({inside}) AND {sql}"
        )
        found += [rows.to_memory(row) for row in db.execute(query, (*some, *scopes, *values))]
    return found
