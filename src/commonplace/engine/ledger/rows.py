"""Rows against the ledger: each version's entry says a hash of all of it, so what else changes a row is found out.

Rows may be written and erased while they are compared. A version never changes once it is written, so only two looks
at the same one can mislead: what was erased between them is looked at again before it is called missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import read_all
from commonplace.stores.base import AuditEntry, AuditPart, Primary, Reach
from commonplace.wire.canonical import content_hash, sha256_hex
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import EVERY_STATUS, Memory

_AT_ONCE = 1000
_HELD_VERSIONS = 50_000  # what is known of each is four short values; of a memory with more it is held all the same
#: Left out: what is counted without a version, the salt that goes in first, and the text, which has its own hash.
_UNHASHED = {"content", "demotion", "recalls", "last_recalled_at", "salt"}
_HASHED = tuple(name for name in Memory.__slots__ if name not in _UNHASHED)
_TRIPLE = ("agent_id", "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "provenance",
           "asserted_by", "memory_id")  # fmt: skip
_REAL = ("confidence", "importance")  # whole numbers come back from a column of these as 1.0
_hashed = attrgetter(*_HASHED)
_row_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

Document = dict[str, Any]


def row_hash(memory: Memory) -> str | None:
    """Salted, so that it says nothing once the row is erased."""
    row = dict(zip(_HASHED, _hashed(memory), strict=True))
    for name in _REAL:
        if row[name] is not None:
            row[name] = float(row[name])
    return sha256_hex(memory.salt, _row_json(row).encode("utf-8", "surrogatepass"))


def version_part(memory: Memory, **more: Any) -> AuditPart:
    """What an entry says of a version that was written: enough to tell whether it is still as it was."""
    payload = {"version": memory.version, "content_hash": memory.content_hash, "status": memory.status, **more}
    if memory.demotion != 1.0:
        payload["demotion"] = memory.demotion
    if (hashed := row_hash(memory)) is not None:
        payload["row_hash"] = hashed
    return audit.part(memory.id, payload)


class RowProblem(NamedTuple):
    sentence: str
    entry: int | None = None  # the one that says otherwise, where there is one


class RowDigest(NamedTuple):
    """What is compared of a version, so that its text need not be held."""

    same_text: bool
    status: str
    content_hash: str
    row_hash: str | None

    @classmethod
    def of(cls, row: Memory) -> RowDigest:
        same_text = content_hash(row.content, row.salt) == row.content_hash
        return cls(same_text, row.status, row.content_hash, row_hash(row))


class Histories:
    """The versions of memories by number, each history read once as long as there is room: entries about the versions
    of one memory lie all over a ledger, and reading all of them for each entry would take a day for some."""

    def __init__(self, store: Primary, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._known: dict[str, dict[int, list[RowDigest]]] = {}  # the one used last is at the end
        self.held = 0

    async def versions(self, id: str, *, anew: bool = False) -> dict[int, list[RowDigest]]:
        """More than one row for a number is a fault that the caller names. Unavailable when one cannot be read."""
        if id in self._known and not anew:
            found = self._known[id] = self._known.pop(id)
            return found
        self._let_go(id)
        found = {}
        for row in await self._store.history(self._tenant, id):
            found.setdefault(row.version, []).append(RowDigest.of(row))
        self._known[id] = found
        self.held += len(found)
        while self.held > _HELD_VERSIONS and len(self._known) > 1:
            self._let_go(next(iter(self._known)))
        return found

    def _let_go(self, id: str) -> None:
        self.held -= len(self._known.pop(id, ()))


class RowCheck:
    """Fed a tenant's whole ledger, then finished; `problem` is the first thing that is not as it says. Why a row cannot
    be read may say where the store is, which `is_operator` is told."""

    def __init__(self, core: Core, tenant: str, *, is_operator: bool = True) -> None:
        self._core = core
        self._is_operator = is_operator
        self._store = core.primary
        self._tenant = tenant
        self._histories = Histories(core.primary, tenant)
        self._last = 0  # the entry fed last
        self._created = 0  # memories that entries say were begun
        self._agents: set[str] = set()  # of whom something was stated
        self._statements: dict[str, tuple[int, Document]] = {}  # the last that was said of each
        self._demotions: dict[str, tuple[int, float]] = {}
        self._demoted: set[str] = set()
        self._ahead: set[str] = set()  # memories of which no entry so far has named the version that is there
        self.problem: RowProblem | None = None

    async def feed(self, entries: Sequence[AuditEntry]) -> None:
        said: list[tuple[int, str, Document]] = []
        for entry in entries:
            self._last = entry.n
            for part in entry.parts:
                if part.memory_id is not None and part.payload is not None:
                    said.append((entry.n, part.memory_id, json.loads(part.payload)))
                    if "subject" in said[-1][2]:
                        self._state(entry, part.memory_id, said[-1][2])
        versions = []
        unnumbered: set[str] = set()
        for n, id, payload in said:
            if "subject" in payload:
                continue
            if "version" in payload:
                versions.append((n, id, payload))
                self._created += payload["version"] == 1
                if "row_hash" in payload and (id in self._demotions or "demotion" in payload):
                    self._demotions[id] = (n, float(payload.get("demotion", 1.0)))
            elif "demotion" in payload:
                self._demotions[id] = (n, float(payload["demotion"]))
            else:
                unnumbered.add(id)  # as older entries tell of what was merged
        ids = list(dict.fromkeys(id for _, id, _ in versions))
        current = {memory.id: memory for memory in await self._current(ids)}
        self._demoted |= {id for id, memory in current.items() if memory.demotion != 1.0}
        for n, id, payload in versions:
            row = current.get(id)
            (self._ahead.add if row is not None and row.version > payload["version"] else self._ahead.discard)(id)
            if self.problem is None:
                await self._compare(n, id, payload, row)
        self._ahead -= unnumbered

    def _state(self, entry: AuditEntry, id: str, payload: Document) -> None:
        """What is said of a statement: all of it when it is made, later when it ends."""
        self._agents.add(entry.agent_id)
        made = {"agent_id": entry.agent_id, "asserted_by": entry.principal, "memory_id": payload.get("derived_from")}
        _, before = self._statements.get(id, (entry.n, made))
        self._statements[id] = (entry.n, before | payload)

    async def _current(self, ids: Sequence[str]) -> list[Memory]:
        try:
            return await self._store.get(self._tenant, ids)
        except Unavailable:  # one that cannot be read hides the others: `_compare` finds out which
            return []

    async def _compare(self, n: int, id: str, payload: Document, row: Memory | None) -> None:
        version = payload["version"]
        if row is not None and row.version == version and _difference(RowDigest.of(row), payload) is None:
            return
        problem = None
        for anew in (False, True):  # what was read before may be older than the entry
            try:
                there = (await self._histories.versions(id, anew=anew)).get(version, [])
                problem = _difference(there[0], payload) if len(there) == 1 else f"has {len(there)} rows, not one"
            except Unavailable as fault:
                problem = f"cannot be read: {fault.message_for(is_operator=self._is_operator)}"
            if problem is None:
                return
        if await self._is_still_recorded(n, id):
            self.problem = RowProblem(f"version {version} of memory {id} {problem}", n)

    async def finish(self) -> None:
        """What no single entry tells: demotions, statements, and rows that no entry is about."""
        for check in (self._check_versions, self._check_demotions, self._check_statements, self._check_unlisted_rows):
            if self.problem is None:
                try:
                    self.problem = await check()
                except Unavailable as fault:
                    why = fault.message_for(is_operator=self._is_operator)
                    self.problem = RowProblem(f"rows cannot be read: {why}")

    async def _check_versions(self) -> RowProblem | None:
        ids = list(self._ahead)
        for start in range(0, len(ids), _AT_ONCE):
            for memory in await self._store.get(self._tenant, ids[start : start + _AT_ONCE]):
                if not await self._recorded_since(memory.id):
                    return RowProblem(f"version {memory.version} of memory {memory.id} is in no entry of the ledger")
        return None

    async def _check_demotions(self) -> RowProblem | None:
        ids = list(self._demotions.keys() | self._demoted)
        for start in range(0, len(ids), _AT_ONCE):
            for memory in await self._store.get(self._tenant, ids[start : start + _AT_ONCE]):
                n, factor = self._demotions.get(memory.id, (None, 1.0))
                if memory.demotion != factor and not await self._recorded_since(memory.id):
                    return RowProblem(f"memory {memory.id} is demoted to {memory.demotion}, not {factor}", n)
        return None

    async def _check_statements(self) -> RowProblem | None:
        there: dict[str, Document] = {}
        for agent in self._agents.union(await self._store.agent_names(self._tenant)):
            for triple in await self._store.triples(self._tenant, agent):
                there[triple.id] = {name: getattr(triple, name) for name in _TRIPLE}
        for id, (n, said) in self._statements.items():
            row = there.pop(id, None)
            wrong = [] if row is None else [name for name in _TRIPLE if row[name] != said.get(name)]
            if (row is None or wrong) and await self._is_still_recorded(n, id) and not await self._recorded_since(id):
                return RowProblem(f"statement {id} {f'has another {wrong[0]}' if wrong else 'is gone'}", n)
        for id in there:
            if not await self._recorded_since(id):
                return RowProblem(f"statement {id} is in no entry of the ledger")
        return None

    async def _check_unlisted_rows(self) -> RowProblem | None:
        agents = tuple(await self._store.agent_names(self._tenant))
        reach = Reach(self._tenant, agents, statuses=EVERY_STATUS)
        if await self._store.count(reach) == self._created:
            return None
        # Rows first and the ledger after them, so that what was written meanwhile is in both.
        unknown = {memory.id for memory in await read_all(self._core, reach)}
        after = 0
        while entries := await self._store.audit(self._tenant, after=after, limit=_AT_ONCE):
            unknown -= {part.memory_id or "" for entry in entries for part in entry.parts}
            after = entries[-1].n
        there = await self._store.get(self._tenant, sorted(unknown))  # unless it was erased meanwhile
        return RowProblem(f"memory {there[0].id} is in no entry of the ledger") if there else None

    async def _is_still_recorded(self, n: int, id: str) -> bool:
        """Whether it was not erased meanwhile."""
        entries = await self._store.audit(self._tenant, after=n - 1, limit=1)
        return any(part.memory_id == id for entry in entries if entry.n == n for part in entry.parts)

    async def _recorded_since(self, id: str) -> bool:
        """Whether an entry made since the ledger was read explains a row that differs."""
        after = self._last
        while entries := await self._store.audit(self._tenant, after=after, limit=_AT_ONCE):
            if any(part.memory_id == id for entry in entries for part in entry.parts):
                return True
            after = entries[-1].n
        return False


def _difference(kept: RowDigest, said: Document) -> str | None:
    if not kept.same_text:
        return "is not the text that was written"
    wrong = [name for name in ("status", "content_hash") if name in said and getattr(kept, name) != said[name]]
    if wrong or ("row_hash" in said and kept.row_hash != said["row_hash"]):
        return f"was changed{f': its {wrong[0]} is another' if wrong else ''}"
    return None
