"""What recall needs of every memory of a scope, kept in memory and brought up to date by what changed since.

Both caches would otherwise read all rows of a large scope at every recall.
"""

from __future__ import annotations

import itertools
import json
import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from apsw import Connection
from numpy.typing import NDArray

from commonplace.stores.base import AgentContext, ImportanceDecay, Reach
from commonplace.stores.row_format import to_memory
from commonplace.stores.sqlite import queries
from commonplace.stores.sqlite.connections import StorePart, read
from commonplace.wire.record import Memory

_LATEST = (
    "SELECT max(coalesce((SELECT max(seq) FROM memories WHERE scope_id = ?1), 0), "
    "coalesce((SELECT max(seq) FROM erasures WHERE scope_id = ?1), 0))"
)


def _latest_change(db: Connection, scope: int) -> int:
    return int(queries.fetch_one(db, _LATEST, (scope,))[0])


def _erased(db: Connection, scope: int, since: int) -> list[int]:
    return [m for (m,) in db.execute("SELECT mid FROM erasures WHERE scope_id = ? AND seq > ?", (scope, since))]


# who speaks, and what was replaced

_SUPERSEDING = "SELECT mid, id, status, speaker, supersedes, expires_at FROM memories WHERE scope_id = ?"
_NEXT_SPEAKER = "SELECT min(speaker) FROM memories WHERE scope_id = ? AND speaker > ?"


@dataclass(slots=True)
class _ScopeContext:
    seq: int = -1
    speakers: set[str] = field(default_factory=set)
    #: mid → (id, what it replaces, until when)
    superseding: dict[int, tuple[str, tuple[str, ...], float]] = field(default_factory=dict)
    context: AgentContext = field(default_factory=AgentContext)
    since: float = 0  # `context` holds from the expiry before until the one after
    until: float = 0

    def update(self, db: Connection, scope: int, latest: int) -> None:
        erased = _erased(db, scope, self.seq)
        for mid in erased:
            self.superseding.pop(mid, None)
        if self.seq < 0:
            found = db.execute(f"{_SUPERSEDING} AND supersedes IS NOT NULL", (scope,))
        else:
            found = db.execute(f"{_SUPERSEDING} AND seq > ?", (scope, self.seq))
        if erased or self.seq < 0:  # nothing of what was erased is remembered, not even a name
            self.speakers = set(_speakers(db, scope))
        for mid, id, status, speaker, supersedes, expires_at in found:
            self.superseding.pop(mid, None)
            if speaker:
                self.speakers.add(speaker)
            if supersedes and status == "live":
                end = math.inf if expires_at is None else expires_at
                self.superseding[mid] = (id, tuple(json.loads(supersedes)), end)
        self.seq = latest
        self.until = self.since  # nothing holds any longer

    def at(self, now: int) -> AgentContext:
        """What is known at this instant; kept until that changes."""
        if not self.since <= now < self.until:
            ends = {end for _, _, end in self.superseding.values()}
            self.since = max((end for end in ends if end <= now), default=-math.inf)
            self.until = min((end for end in ends if end > now), default=math.inf)
            replaced = {old: id for id, olds, end in self.superseding.values() if end > now for old in olds}
            self.context = AgentContext(frozenset(self.speakers), replaced)
        return self.context


class ContextCache:
    """Safe for threads."""

    def __init__(self) -> None:
        self._scopes: dict[int, _ScopeContext] = {}
        self._lock = threading.Lock()

    def of_scope(self, db: Connection, scope: int, now: int) -> AgentContext:
        latest = _latest_change(db, scope)
        with self._lock:
            held = self._scopes.setdefault(scope, _ScopeContext())
            if held.seq < latest:
                held.update(db, scope, latest)
            return held.at(now)


def _speakers(db: Connection, scope: int) -> list[str]:
    """Distinct names by jumping through the index from one to the next."""
    speakers: list[str] = []
    while (name := queries.fetch_one(db, _NEXT_SPEAKER, (scope, speakers[-1] if speakers else ""))[0]) is not None:
        speakers.append(name)
    return speakers


# what each memory is worth

_STATUSES = ("live", "archived", "pending", "deleted")
_CODES = {name: code for code, name in enumerate(_STATUSES)}
_WORTH = "SELECT mid, status, importance, created_at, expires_at FROM memories WHERE scope_id = ?"
_RECALLED = "SELECT count(*), total(recalls), max(last_recalled_at) FROM recalls"
_MAX_ROWS = 4_000_000  # held for all scopes together; the one not asked for longest goes first
_SPARE = 16  # rows fetched beyond those wanted, for what has changed a moment ago

_ROW = np.dtype(
    [("mid", "i8"), ("status", "u1"), ("given", "f8"), ("created", "i8"), ("expires", "i8"), ("recalls", "i8")]
)
_PAIR = np.dtype([("mid", "i8"), ("recalls", "i8")])
_Rows = NDArray[np.void]


@dataclass(slots=True)
class _ScopeImportance:
    seq: int = -1
    rows: _Rows = field(default_factory=lambda: np.empty(0, _ROW))  # in order of mid
    counted: Any = None  # the state of the recall counters that `rows` knows


class ImportanceCache:
    """Safe for threads."""

    def __init__(self) -> None:
        self._scopes: dict[int, _ScopeImportance] = {}
        self._lock = threading.Lock()

    def of_scope(self, db: Connection, scope: int) -> _Rows:
        latest = _latest_change(db, scope)
        counters = queries.fetch_one(db, _RECALLED)
        with self._lock:
            held = self._scopes.pop(scope, None) or _ScopeImportance()
            if held.seq < latest:
                held.rows = _with_changes(held.rows, db, scope, held.seq)
                held.seq, held.counted = latest, None
            if held.counted != counters:
                held.rows = _with_recalls(held.rows, db)
                held.counted = counters
            self._scopes[scope] = held  # now the one asked for last
            while len(self._scopes) > 1 and sum(len(s.rows) for s in self._scopes.values()) > _MAX_ROWS:
                self._scopes.pop(next(iter(self._scopes)))
            return held.rows


def _with_changes(known: _Rows, db: Connection, scope: int, since: int) -> _Rows:
    found = db.execute(_WORTH, (scope,)) if since < 0 else db.execute(f"{_WORTH} AND seq > ?", (scope, since))
    rows = (
        (mid, _CODES[status], math.nan if given is None else given, created, expires or 0, 0)
        for mid, status, given, created, expires in found
    )
    changed = np.fromiter(rows, _ROW)
    gone = np.array(_erased(db, scope, since), np.int64)
    kept = known[~np.isin(known["mid"], np.concatenate([changed["mid"], gone]))] if len(known) else known
    together = np.concatenate([kept, changed])
    return together[np.argsort(together["mid"], kind="stable")]


def _with_recalls(known: _Rows, db: Connection) -> _Rows:
    counted = np.fromiter(db.execute("SELECT mid, recalls FROM recalls ORDER BY mid"), _PAIR)
    fresh = known.copy()  # readers of the one before may still look at it
    fresh["recalls"] = 0
    if len(counted) and len(fresh):
        at = np.searchsorted(fresh["mid"], counted["mid"])
        at[at == len(fresh)] = 0
        same = fresh["mid"][at] == counted["mid"]
        fresh["recalls"][at[same]] = counted["recalls"][same]
    return fresh


def _visible(rows: _Rows, reach: Reach) -> NDArray[np.bool_]:
    wanted = np.zeros(len(_STATUSES), bool)
    wanted[[_CODES[status] for status in reach.statuses]] = True
    seen: NDArray[np.bool_] = wanted[rows["status"]]
    return seen if reach.now is None else seen & ((rows["expires"] == 0) | (rows["expires"] > reach.now))


def _best(rows: _Rows, decay: ImportanceDecay, at: int, limit: int) -> Iterable[tuple[float, int, int]]:
    """(value, created_at, mid) of the best, in no order."""
    given = np.where(np.isnan(rows["given"]), decay.base, rows["given"])
    age = np.maximum(at - rows["created"], 0)
    value = given * np.exp2(-age / decay.half_life) + np.minimum(decay.each * rows["recalls"], decay.most)
    if len(rows) > limit:
        # As sorting all of them and taking the last, without sorting those that have no chance.
        able = np.flatnonzero(value >= np.partition(value, -limit)[-limit])
        best = able[np.lexsort((able, rows["created"][able], value[able]))[-limit:]]
        rows, value = rows[best], value[best]
    return zip(value.tolist(), rows["created"].tolist(), rows["mid"].tolist(), strict=True)


# for the store


class SqliteScopeReads(StorePart):
    _contexts: ContextCache
    _importance: ImportanceCache

    @read
    def context(self, db: Connection, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        return self._context_in(db, tenant, agents, now)

    def _context_in(self, db: Connection, tenant: str, agents: Sequence[str], now: int | None) -> AgentContext:
        found = [self._contexts.of_scope(db, scope, now or 0) for scope in queries.scope_ids(db, tenant, agents)]
        if len(found) == 1:
            return found[0]
        replaced = {old: new for one in found for old, new in one.replaced.items()}
        return AgentContext(frozenset().union(*(one.speakers for one in found)), replaced)

    @read
    def most_important(self, db: Connection, reach: Reach, decay: ImportanceDecay, at: int, limit: int) -> list[Memory]:
        if reach.as_of is not None:  # the past is nowhere ordered
            then = queries.versions_in_reach(db, reach)
            found = [queries.fetch_memories(db, f"WHERE {where}", values, table) for table, where, values in then]
            return decay.order(itertools.chain(*found), at)[:limit]
        # Chosen by what is remembered of them; the rows themselves say whether they are in reach, and the order.
        best: list[tuple[float, int, int]] = []
        scopes = queries.scope_ids(db, reach.tenant, reach.agents)
        for scope in scopes if limit > 0 else ():
            rows = self._importance.of_scope(db, scope)
            seen = _visible(rows, reach)
            if reach.where:
                seen &= np.isin(rows["mid"], np.fromiter(queries.mids_in_reach(db, reach, scope), np.int64))
            best += _best(rows[seen], decay, at, limit + _SPARE)
        best.sort(reverse=True)
        chosen = [mid for _, _, mid in best[: limit + _SPARE]]
        return decay.order(map(to_memory, queries.rows_in_reach(db, reach, scopes, chosen)), at)[:limit]
