"""Who speaks in a scope and which memories were replaced: kept in memory, brought up to date by what changed since."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from commonplace.stores.base import AgentContext
from commonplace.stores.sqlite import reader, rows

_ROWS = "SELECT mid, id, status, speaker, supersedes, expires_at FROM memories WHERE scope_id = ?"
_FIRST = f"{_ROWS} AND supersedes IS NOT NULL"
_SINCE = f"{_ROWS} AND seq > ?"
_ERASED = "SELECT mid FROM erasures WHERE scope_id = ? AND seq > ?"
_NEXT_SPEAKER = "SELECT min(speaker) FROM memories WHERE scope_id = ? AND speaker > ?"
_LATEST = (
    "SELECT max(coalesce((SELECT max(seq) FROM memories WHERE scope_id = ?1), 0), "
    "coalesce((SELECT max(seq) FROM erasures WHERE scope_id = ?1), 0))"
)


@dataclass(slots=True)
class _Scope:
    seq: int = -1
    speakers: set[str] = field(default_factory=set)
    #: mid → (id, what it replaces, until when)
    superseding: dict[int, tuple[str, tuple[str, ...], float]] = field(default_factory=dict)
    context: AgentContext = field(default_factory=AgentContext)
    since: float = 0  # `context` holds from the expiry before until the one after
    until: float = 0


class ContextCache:
    """Safe for threads."""

    def __init__(self) -> None:
        self._scopes: dict[int, _Scope] = {}
        self._lock = threading.Lock()

    def context(self, db: apsw.Connection, tenant: str, agents: Sequence[str], now: int | None = None) -> AgentContext:
        found = [self._follow(db, scope, now or 0) for scope in reader.scope_ids(db, tenant, agents)]
        if len(found) == 1:
            return found[0]
        replaced = {old: new for one in found for old, new in one.replaced.items()}
        return AgentContext(frozenset().union(*(one.speakers for one in found)), replaced)

    def _follow(self, db: apsw.Connection, scope: int, now: int) -> AgentContext:
        (latest,) = rows.one(db, _LATEST, (scope,))
        with self._lock:
            held = self._scopes.setdefault(scope, _Scope())
            if held.seq < latest:
                erased = [mid for (mid,) in db.execute(_ERASED, (scope, held.seq))]
                for mid in erased:
                    held.superseding.pop(mid, None)
                if erased or held.seq < 0:  # nothing of what was erased is remembered, not even a name
                    held.speakers = set(_speakers(db, scope))
                first = held.seq < 0
                for row in db.execute(_FIRST, (scope,)) if first else db.execute(_SINCE, (scope, held.seq)):
                    _take(held, *row)
                held.seq = latest
                held.until = held.since  # nothing holds any longer
            if not held.since <= now < held.until:
                _settle(held, now)
            return held.context


def _settle(held: _Scope, now: int) -> None:
    """What is known at this instant, and how long that stays so."""
    ends = {end for _, _, end in held.superseding.values()}
    held.since = max((end for end in ends if end <= now), default=-math.inf)
    held.until = min((end for end in ends if end > now), default=math.inf)
    replaced = {old: id for id, olds, end in held.superseding.values() if end > now for old in olds}
    held.context = AgentContext(frozenset(held.speakers), replaced)


def _take(
    held: _Scope, mid: int, id: str, status: str, speaker: str | None, supersedes: str | None, expires_at: int | None
) -> None:
    held.superseding.pop(mid, None)
    if speaker:
        held.speakers.add(speaker)
    if supersedes and status == "live":
        held.superseding[mid] = (id, tuple(json.loads(supersedes)), math.inf if expires_at is None else expires_at)


def _speakers(db: apsw.Connection, scope: int) -> list[str]:
    """Distinct names by jumping through the index from one to the next."""
    speakers: list[str] = []
    while (name := rows.one(db, _NEXT_SPEAKER, (scope, speakers[-1] if speakers else ""))[0]) is not None:
        speakers.append(name)
    return speakers
