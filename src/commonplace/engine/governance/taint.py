"""What came from a bad source, and what was made from that: read off the ledger, entry by entry. Changes nothing.

Taint flows forward. What a bad writer wrote, forgot or stated is tainted from that version on. A merge that a tainted
memory took part in taints everything it touched, and so does a promotion of short-term memory; a statement is tainted
with the memory it was taken from.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.stores.base import AuditEntry
from commonplace.wire.record import Memory

Document = dict[str, Any]
#: Entries in which every version was made from all of the others.
_JOINING = ("merge", "consolidate")


@dataclass(slots=True, frozen=True)
class BadSource:
    """Whose doings are meant: all that is given must hold."""

    source: str | None = None
    principal: str | None = None
    since: int | None = None  # ms
    agent_id: str | None = None

    def covers(self, entry: AuditEntry) -> bool:
        """Whether the entry may be theirs, as far as its header tells."""
        mine = self.principal is None or entry.principal == self.principal
        return mine and (self.since is None or entry.at >= self.since)


@dataclass(slots=True)
class TaintedMemory:
    """`version` is the first that is tainted: the one before it, if there is one, is what was good."""

    id: str
    version: int
    entry: int  # that wrote it
    direct: bool  # theirs, and not only made from it
    versions: set[int] = field(default_factory=set)  # that they made, or that were made from theirs


@dataclass(slots=True)
class TaintedStatement:
    id: str
    agent_id: str
    entry: int
    direct: bool
    ended: bool = False  # they ended it; otherwise they stated it


@dataclass(slots=True)
class Taint:
    bad: BadSource
    source_of: Callable[[str, int], Awaitable[str | None]]  # the `source` of a version of a memory
    memories: dict[str, TaintedMemory] = field(default_factory=dict)
    statements: dict[str, TaintedStatement] = field(default_factory=dict)
    demoted: set[str] = field(default_factory=set)
    erased: int = 0  # what they erased, which nothing brings back

    async def feed(self, entries: Sequence[AuditEntry]) -> None:
        for entry in entries:
            said = [(p.memory_id, json.loads(p.payload)) for p in entry.parts if p.payload is not None]
            theirs = self.bad.covers(entry)
            if theirs and self.bad.source is None:
                self.erased += sum(id is None and payload.get("erased") is True for id, payload in said)
            versions = [(id, payload) for id, payload in said if id is not None and "version" in payload]
            for id, payload in versions:
                direct = theirs and await self._is_from_source(id, payload["version"])
                made_from = [*payload.get("promoted_from", ()), payload.get("merged_into")]
                if direct or any(each in self.memories for each in made_from):
                    self._taint(id, payload, entry, direct)
            if entry.operation in _JOINING and any(id in self.memories for id, _ in versions):
                for id, payload in versions:
                    self._taint(id, payload, entry, False)
            for name, payload in said:
                if name is None or "version" in payload:
                    continue
                if "subject" in payload:
                    self._state(entry, name, payload, theirs)
                elif "demotion" in payload and theirs and self.bad.source is None:
                    self.demoted.add(name)

    async def _is_from_source(self, id: str, version: int) -> bool:
        return self.bad.source is None or await self.source_of(id, version) == self.bad.source

    def _taint(self, id: str, payload: Document, entry: AuditEntry, direct: bool) -> None:
        known = id in self.memories
        tainted = self.memories.setdefault(id, TaintedMemory(id, payload["version"], entry.n, direct))
        # A source alone does not tell who wrote a version: later ones carry it on, whoever made them.
        if not (known and direct and self.bad.source is not None and self.bad.principal is None):
            tainted.versions.add(payload["version"])

    def _state(self, entry: AuditEntry, id: str, payload: Document, theirs: bool) -> None:
        """An entry about statements: the one that is stated says since when it holds, one that ends does not."""
        stated = "valid_from" in payload
        named = self.bad.source is None or payload.get("provenance") == self.bad.source
        if stated and (theirs and named):
            self.statements.setdefault(id, TaintedStatement(id, entry.agent_id, entry.n, True))
        elif stated and payload.get("derived_from") in self.memories:
            self.statements.setdefault(id, TaintedStatement(id, entry.agent_id, entry.n, False))
        elif not stated and theirs and self.bad.source is None and entry.operation == "graph_retract":
            self.statements.setdefault(id, TaintedStatement(id, entry.agent_id, entry.n, True, ended=True))


def last_good(tainted: TaintedMemory, versions: Sequence[Memory]) -> Memory | None:
    """What the memory was before, as its history has it; None where it never was anything good."""
    return max((v for v in versions if v.version < tainted.version), key=lambda v: v.version, default=None)
