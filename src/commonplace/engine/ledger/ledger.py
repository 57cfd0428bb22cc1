"""The audit trail for those who may read it, and the proof that nobody has changed it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from commonplace.engine.checks import check_page_size, require_operator, require_role
from commonplace.engine.core import Core
from commonplace.engine.ledger.audit import AUDIT_OPERATIONS, Verifier
from commonplace.engine.ledger.evidence import Evidence
from commonplace.engine.ledger.export import as_lines, batches, export
from commonplace.engine.ledger.rows import RowCheck
from commonplace.engine.ledger.tree_heads import TreeHeads
from commonplace.engine.peers.identity import Identity
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.stores.base import AuditEntry, AuditPart
from commonplace.stores.graph import Triple
from commonplace.stores.optional import Progress
from commonplace.wire import keys
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.record import ALL_AGENTS, Principal

_AT_ONCE = 1000
Document = dict[str, Any]
_CURSOR_DIGITS = 18  # which a number of an entry has at most
_BACKWARDS = "-"  # before it in the cursor of a page that is the newest first
_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
#: What a part says to a caller from whom a rule hides it.
_WITHHELD: Document = {"memory_id": None, "payload": b'{"withheld":true}', "salt": None}


class Conditions(TypedDict, total=False):
    """Which entries are meant; times are ms since 1970, both included."""

    agent_id: str | None
    operation: str | None
    since: int | None
    until: int | None


class Ledger:
    def __init__(self, core: Core, log: RecallLog, identity: Identity) -> None:
        self._core = core
        self._log = log
        self.heads = TreeHeads(core, identity)

    async def entries(
        self, who: Principal, *, limit: int = 100, after: int = 0, **conditions: Unpack[Conditions]
    ) -> Sequence[AuditEntry]:
        """The next `limit` entries with n above `after` that are about agents the caller may use."""
        await self._admit(who, conditions)
        # Of many agents' entries a caller may see few, so a page of theirs takes more than a page to find.
        step = limit if who.uses_all_agents else max(limit, _AT_ONCE)
        found: list[AuditEntry] = []
        while len(found) < limit:
            batch = await self._core.primary.audit(who.tenant, limit=step, after=after, **conditions)
            found += [entry for entry in batch if _may_read(who, entry)]
            if len(batch) < step:
                break
            after = batch[-1].n
        return await self._shown(who, found[:limit])

    async def _latest(
        self, who: Principal, limit: int, before: int | None, **conditions: Unpack[Conditions]
    ) -> Sequence[AuditEntry]:
        """As `entries`, the newest first and from `before` on."""
        await self._admit(who, conditions)
        step = limit if who.uses_all_agents else max(limit, _AT_ONCE)
        found: list[AuditEntry] = []
        while len(found) < limit:
            batch = await self._core.primary.audit_before(who.tenant, limit=step, before=before, **conditions)
            found += [entry for entry in batch if _may_read(who, entry)]
            if len(batch) < step:
                break
            before = batch[-1].n
        return await self._shown(who, found[:limit])

    async def _shown(self, who: Principal, entries: Sequence[AuditEntry]) -> Sequence[AuditEntry]:
        """With nothing of a memory that a rule withholds from the caller, whoever names it, nor of a statement that one
        hides, or hides a part of; every hash stays."""
        if not await self._core.policies.limit_reading(who):
            return entries
        show = await self._core.policies.triple_reader(who)

        named = (id for entry in entries for part in entry.parts for id in _memories_in(part))
        withheld = await self._core.policies.withheld(who, named)

        def hidden(entry: AuditEntry, part: AuditPart) -> bool:
            if not withheld.isdisjoint(_memories_in(part)):
                return True
            said = json.loads(part.payload) if part.payload is not None else {}
            if "subject" not in said or "object" not in said:
                return False
            terms = (said["subject"], said["predicate"], said["object"])
            more = {name: said[name] for name in ("confidence", "provenance") if name in said}
            triple = Triple(part.memory_id or "", entry.agent_id, *terms, said.get("valid_from") or 0, **more)
            return show(triple) != triple

        return [replace(e, parts=[replace(p, **_WITHHELD) if hidden(e, p) else p for p in e.parts]) for e in entries]

    async def _admit(self, who: Principal, conditions: Conditions) -> None:
        require_role(who, "reviewer")
        if (agent_id := conditions.get("agent_id")) is not None:
            self._core.require(who, agent_id, "reviewer")
        await self._log.flush()

    async def page(
        self,
        who: Principal,
        *,
        limit: int = 100,
        cursor: str | None = None,
        newest_first: bool = False,
        **conditions: Unpack[Conditions],
    ) -> tuple[Sequence[AuditEntry], str | None]:
        """A page of the entries, oldest first unless said otherwise, and the cursor of the next one; None after the
        last."""
        sign = _BACKWARDS if newest_first else ""
        place = None if cursor is None else _place(cursor, sign)
        check_page_size(limit)
        if newest_first:
            found = await self._latest(who, limit + 1, place, **conditions)
        else:
            found = await self.entries(who, limit=limit + 1, after=place or 0, **conditions)
        operation = conditions.get("operation")
        # One that an earlier version wrote and none writes any more is still found.
        if operation is not None and operation not in AUDIT_OPERATIONS and not found:
            there = ", ".join(AUDIT_OPERATIONS)
            raise ValidationError(f"there is no operation {operation!r:.80}; there are {there}", field="operation")
        shown = found[:limit]
        return shown, f"{sign}{shown[-1].n}" if len(found) > limit else None

    def require_verify(self, who: Principal) -> None:
        """Refuses who may not verify, before anything is begun."""
        require_role(who, "reviewer")
        if not who.uses_all_agents:
            raise Forbidden(f"{who.name} may not use every agent, and the audit chain is about all of them")

    async def export(self, who: Principal, path: Path) -> int:
        """Append what a file does not have yet of the ledger's headers, and a signed head; how many entries."""
        require_role(who, "reviewer")
        require_operator(who, "write the ledger to a file")
        return await export(self._core, self.heads, who.tenant, path)

    def export_lines(self, who: Principal) -> AsyncIterator[bytes]:
        """What `export` would write to a new file: every header and a signed head, a JSON document to a line."""
        self.require_verify(who)

        async def lines() -> AsyncIterator[bytes]:
            async for batch in batches(self._core, self.heads, who.tenant):
                yield as_lines(batch)

        return lines()

    async def verify(
        self,
        who: Principal,
        progress: Progress | None = None,
        *,
        evidence: Iterable[Document] = (),
        key: str | None = None,
    ) -> Verifier:
        """What is written is verified as it is: whoever checks the chain does not wait for the write lock.

        `evidence` are signed heads and exported entries that were kept elsewhere, which this must still be the ledger
        of; `key` is the one that heads must be signed with, by default any that this installation ever had.
        """
        self.require_verify(who)
        known = [keys.check_public(key)] if key is not None else self.heads.public_keys() if evidence else []
        kept = Evidence(who.tenant, evidence, known)
        return await self.verify_tenant(who.tenant, progress, kept, is_operator=who.is_operator)

    async def verify_tenant(
        self,
        tenant: str,
        progress: Progress | None = None,
        evidence: Evidence | None = None,
        *,
        is_operator: bool = True,
    ) -> Verifier:
        """Walk the whole chain to where the tenant's own count says it ends, and compare the rows with what it says."""
        verifier, rows = Verifier(), RowCheck(self._core, tenant, is_operator=is_operator)
        evidence = evidence or Evidence(tenant, (), ())
        store = self._core.primary
        last, head = await store.audit_head(tenant)
        while verifier.first_bad is None and (
            batch := await store.audit(tenant, after=verifier.entries, limit=_AT_ONCE)
        ):
            verifier.feed(batch)
            evidence.feed(entry for entry in batch if entry.n <= verifier.entries)
            if verifier.first_bad is None and rows.problem is None:
                await rows.feed(batch)
            if verifier.entries > last:  # than when the walk began
                last, head = await store.audit_head(tenant)
            if progress is not None:
                progress(verifier.entries, last)
        if verifier.first_bad is None and (verifier.entries, verifier.head) != (last, head):
            verifier.first_bad = min(verifier.entries, max(last, 0)) + 1
            where = f"the tenant's own count says that it ends with entry {last}"
            missing = f"entries are missing from {verifier.first_bad} on"
            verifier.problem = f"{where}, but {missing if verifier.entries <= last else 'there are more'}"
        if verifier.first_bad is None:
            evidence.finish(verifier.entries)
        # Of two entries that are named the first is where it begins; a chain without a fault may still be another's.
        if evidence.problem is not None and (verifier.first_bad is None or evidence.problem[1] is not None):
            verifier.problem, verifier.first_bad = evidence.problem
            return verifier
        if verifier.first_bad is None:
            if rows.problem is None:
                await rows.finish()
            if rows.problem is not None:
                verifier.problem, verifier.first_bad = rows.problem
        return verifier


def _place(cursor: str, sign: str) -> int:
    """The number of the entry that a page ended with. The sign tells the newest first from the oldest first: the same
    number is another place there."""
    number = cursor.removeprefix(sign)
    if f"{sign}{number}" == cursor and number.isascii() and number.isdecimal() and len(number) <= _CURSOR_DIGITS:
        return int(number)
    raise ValidationError(f"invalid cursor {cursor!r:.80}; pass back next_cursor as it came", field="cursor")


def _memories_in(part: AuditPart) -> set[str]:
    """Every id that it names: a recall names what it found, a merge what it joined."""
    named = {found.decode() for found in _UUID.findall(part.payload or b"")}
    return named if part.memory_id is None else named | {part.memory_id}


def _may_read(who: Principal, entry: AuditEntry) -> bool:
    # An entry about several agents names memories of all of them.
    return who.uses_all_agents if entry.agent_id == ALL_AGENTS else who.may_use(entry.agent_id)
