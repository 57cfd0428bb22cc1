"""Recovery from poisoning: what a bad source wrote, and what was made from it, taken back, in one operation.

A memory that was good before goes back to that version; one that never was is quarantined, which hides it everywhere
and erases nothing. Everything is one unit of work with one audit entry, and can be undone as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core, StaleRead
from commonplace.engine.governance.taint import BadSource, Taint, TaintedMemory, TaintedStatement, last_good
from commonplace.engine.graph.statements import end_at
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.undelete import QUARANTINED
from commonplace.engine.memory.undo import UndoResult
from commonplace.stores.base import AuditPart, Entry, Record, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.canonical import content_hash, mint_id, new_salt
from commonplace.wire.errors import Conflict, Forbidden, NotFound, ValidationError
from commonplace.wire.record import ALL_AGENTS, Memory, Principal

RECOVERY = "recovery"
_AT_ONCE = 1000
Document = dict[str, Any]
#: What differs between two versions that say the same.
_PER_VERSION: Document = {
    "version": 0,
    "seq": 0,
    "updated_at": 0,
    "recalls": 0,
    "last_recalled_at": None,
    "demotion": 1.0,
}

Action = Literal["quarantine", "revert", "rank", "never_stated", "reopen"]


@dataclass(slots=True, frozen=True)
class AffectedItem:
    id: str
    agent_id: str
    kind: Literal["memory", "statement"]
    action: Action
    direct: bool  # from the bad source itself, and not only made from it
    entry: int  # the one of the ledger by which it went bad
    back_to: int | None = None  # the version it goes back to

    def to_wire(self) -> Document:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(slots=True)
class RecoveryResult:
    affected: list[AffectedItem] = field(default_factory=list)
    erased: int = 0  # what they erased, which nothing brings back
    recovery_id: str | None = None


@dataclass(slots=True)
class _Step:
    """One memory on its way back: as it is, and as it will be."""

    now: Memory
    target: Memory
    affected: AffectedItem


@dataclass(slots=True)
class _Plan:
    steps: list[_Step]
    statements: list[tuple[TaintedStatement, Triple]]
    demoted: list[Memory]
    result: RecoveryResult


class Recovery:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def preview(self, who: Principal, bad: BadSource) -> RecoveryResult:
        """What `recover` would touch."""
        self._require(who, bad)
        return (await self._plan(who, bad)).result

    async def recover(self, who: Principal, bad: BadSource) -> RecoveryResult:
        self._require(who, bad)

        async def attempt() -> RecoveryResult:
            plan = await self._plan(who, bad)
            if not plan.result.affected:
                return plan.result
            entries = await self._entries(plan.steps)
            return await self._core.transact(who.tenant, lambda tx: self._apply(tx, who, bad, plan, entries))

        return await self._core.retry_on_conflict(attempt)

    async def undo(self, who: Principal, recovery_id: str, reason: str | None = None) -> UndoResult:
        """Put everything back to where the recovery found it; what has changed since stays, each with its fault."""
        require_role(who, "admin")
        self._core.check_names(recovery_id=recovery_id)
        why = {} if reason is None else {"reason": await self._core.redact_async(reason, "reason")}

        async def attempt() -> UndoResult:
            record = await self._core.primary.record(who.tenant, RECOVERY, recovery_id)
            if record is None or not _may(who, record.value["bad"]["agent_id"]):
                raise NotFound(f"there is no recovery {recovery_id:.80}; its id is in what `commonplace recover` said")
            if record.value.get("undone"):
                raise Conflict(f"recovery {recovery_id} was undone already")
            steps, moved = await self._steps_back(who, record.value)
            entries = await self._entries(steps)
            return await self._core.transact(
                who.tenant, lambda tx: self._apply_undo(tx, who, record, steps, entries, moved, why)
            )

        return await self._core.retry_on_conflict(attempt)

    def _require(self, who: Principal, bad: BadSource) -> None:
        require_role(who, "admin")
        self._core.check_names(source=bad.source, principal=bad.principal, agent_id=bad.agent_id)
        if bad.source is None and bad.principal is None and bad.since is None:
            raise ValidationError("recover needs a source, a principal or a time: name at least one", field="source")
        if not _may(who, bad.agent_id):
            what = "every agent" if bad.agent_id is None else f"agent {bad.agent_id!r}"
            raise Forbidden(f"{who.name} may not use {what}")

    # planning

    async def _plan(self, who: Principal, bad: BadSource) -> _Plan:
        histories: dict[str, list[Memory]] = {}

        async def history(id: str) -> list[Memory]:
            if id not in histories:
                histories[id] = await self._core.primary.history(who.tenant, id)
            return histories[id]

        async def source_of(id: str, version: int) -> str | None:
            return next((each.source for each in await history(id) if each.version == version), None)

        taint, after = Taint(bad, source_of), 0
        while entries := await self._core.primary.audit(
            who.tenant, after=after, limit=_AT_ONCE, agent_id=bad.agent_id, since=bad.since
        ):
            await taint.feed(entries)
            after = entries[-1].n
        plan = _Plan([], [], [], RecoveryResult(erased=taint.erased))
        for tainted in taint.memories.values():
            versions = await history(tainted.id)  # none where it was erased since
            if versions and (step := _step(tainted, versions)) is not None:
                plan.steps.append(step)
        plan.statements = await self._statements(who, taint)
        for memory in await self._core.primary.get(who.tenant, sorted(taint.demoted - taint.memories.keys())):
            if memory.demotion != 1.0:
                plan.demoted.append(memory)
        plan.result.affected = [
            *(step.affected for step in plan.steps),
            *(AffectedItem(m.id, m.agent_id, "memory", "rank", True, 0) for m in plan.demoted),
            *(
                AffectedItem(t.id, t.agent_id, "statement", "reopen" if t.ended else "never_stated", t.direct, t.entry)
                for t, _ in plan.statements
            ),
        ]
        return plan

    async def _statements(self, who: Principal, taint: Taint) -> list[tuple[TaintedStatement, Triple]]:
        there: dict[str, Triple] = {}
        for agent in {each.agent_id for each in taint.statements.values()}:
            there |= {triple.id: triple for triple in await self._core.primary.triples(who.tenant, agent)}
        found = [(each, there[each.id]) for each in taint.statements.values() if each.id in there]
        due = [(t, triple) for t, triple in found if (triple.valid_to is not None if t.ended else not triple.empty)]
        # The latest first: each hands its time to the one before, and that may be tainted, too.
        return sorted(due, key=lambda pair: pair[1].valid_from, reverse=True)

    async def _entries(self, steps: Sequence[_Step]) -> dict[str, Entry]:
        """With vectors and terms for those that will be found again. Secrets registered since are taken out; rules are
        not asked: what comes back was let in, or let in by who decides now."""
        entries: dict[str, Entry] = {}
        for step in steps:
            target = step.target
            if target.status == "deleted":
                entries[target.id] = Entry(target, None, b"")
                continue
            clean, _ = await self._core.redactor.redact_record_async(target)
            if clean.content != target.content:
                salt = new_salt()
                clean = replace(clean, content_hash=content_hash(clean.content, salt), salt=salt)
            (entries[target.id],) = await self._core.make_entries([clean])
        return entries

    # doing

    def _apply(
        self, tx: Transaction, who: Principal, bad: BadSource, plan: _Plan, entries: dict[str, Entry]
    ) -> RecoveryResult:
        recovery_id = mint_id(tx.now)
        kept, parts = _put_all(tx, plan.steps, entries, recovery_id)
        ends: list[Document] = []
        for tainted, triple in plan.statements:
            parts += _restate(tx, tainted, triple, ends)
        for memory in plan.demoted:
            tx.demote([memory.id], 1.0)
            parts.append(audit.part(memory.id, {"demotion": 1.0}))
        counts = {"memories": len(plan.steps) + len(plan.demoted), "statements": len(plan.statements)}
        said = {name: value for name, value in asdict(bad).items() if value is not None}
        parts.insert(0, audit.part(None, {"recovery_id": recovery_id, **said, **counts}))
        audit.append(tx, who, "recover", bad.agent_id or ALL_AGENTS, parts)
        ranks = {memory.id: memory.demotion for memory in plan.demoted}
        value = {"bad": asdict(bad), "by": who.name, "at": tx.now, "memories": kept, "ends": ends, "ranks": ranks}
        tx.put_record(Record(RECOVERY, recovery_id, value))
        plan.result.recovery_id = recovery_id
        return plan.result

    # undoing

    async def _steps_back(self, who: Principal, value: Document) -> tuple[list[_Step], list[str]]:
        steps, moved = [], []
        for each in value["memories"]:
            versions = {v.version: v for v in await self._core.primary.history(who.tenant, each["id"])}
            now = versions.get(max(versions, default=0))
            if now is None or now.version != each["to"] or each["from"] not in versions:
                moved.append(each["id"])
                continue
            target = replace(versions[each["from"]], version=now.version, demotion=now.demotion)
            steps.append(_Step(now, target, AffectedItem(now.id, now.agent_id, "memory", "revert", True, 0)))
        return steps, moved

    def _apply_undo(
        self, tx: Transaction, who: Principal, record: Record, steps: Sequence[_Step], entries: dict[str, Entry],
        moved: Sequence[str], why: Document,
    ) -> UndoResult:  # fmt: skip
        now = tx.record(RECOVERY, record.key)
        if now is None or now.value.get("undone"):
            raise StaleRead
        kept, parts = _put_all(tx, steps, entries, record.key)
        done, left = [each["id"] for each in kept], list(moved)
        for each in reversed(record.value["ends"]):
            triple = tx.triple(each["id"])
            if triple is None or triple.valid_to != each["to"]:
                left.append(each["id"])
                continue
            parts.append(end_at(tx, triple, each["from"]))
            done.append(each["id"])
        for id, demotion in record.value["ranks"].items():
            if (memory := tx.get(id)) is None or memory.demotion != 1.0:
                left.append(id)
                continue
            tx.demote([id], demotion)
            parts.append(audit.part(id, {"demotion": demotion}))
            done.append(id)
        parts.insert(0, audit.part(None, {"recovery_id": record.key, **why}))
        audit.append(tx, who, "undo_recovery", record.value["bad"]["agent_id"] or ALL_AGENTS, parts)
        tx.put_record(Record(RECOVERY, record.key, {**record.value, "undone": {"by": who.name, "at": tx.now}}))
        faults = {id: Conflict(f"{id} has changed since the recovery, or is gone, and stays as it is") for id in left}
        return UndoResult(list(dict.fromkeys(done)), [], {**faults})


def _may(who: Principal, agent_id: str | None) -> bool:
    return who.uses_all_agents if agent_id is None else who.may_use(agent_id)


def _step(tainted: TaintedMemory, versions: Sequence[Memory]) -> _Step | None:
    """What becomes of a tainted memory; None where it is so already."""
    now, good, direct, entry = versions[-1], last_good(tainted, versions), tainted.direct, tainted.entry
    if good is None:
        if now.status == "deleted" and now.merged_into is None:
            return None
        target = replace(now, status="deleted", merged_into=None)
        return _Step(now, target, AffectedItem(now.id, now.agent_id, "memory", "quarantine", direct, entry))
    target = replace(good, version=now.version, demotion=now.demotion)
    # What others have hidden or closed since is not undone with what was bad.
    if now.status in ("deleted", "archived") and now.merged_into is None and _is_good(tainted, versions, "status"):
        target = replace(target, status=now.status, merged_into=None)
    if _is_good(tainted, versions, "privacy"):
        target = replace(target, privacy=now.privacy)
    if replace(target, **_PER_VERSION) == replace(now, **_PER_VERSION):
        return None
    return _Step(now, target, AffectedItem(now.id, now.agent_id, "memory", "revert", direct, entry, good.version))


def _is_good(tainted: TaintedMemory, versions: Sequence[Memory], name: str) -> bool:
    """Whether what a field is now was set by another than the bad one."""
    since = versions[-1]
    for version in reversed(versions):
        if getattr(version, name) != getattr(since, name):
            break
        since = version
    return since.version not in tainted.versions


def _put_all(
    tx: Transaction, steps: Sequence[_Step], entries: dict[str, Entry], recovery_id: str
) -> tuple[list[Document], list[AuditPart]]:
    """The next version of each: what gives up names first, so that they are free for whom they come back to."""
    kept, parts = [], []
    for step in sorted(steps, key=lambda step: (step.target.status != "deleted", step.now.status == "deleted")):
        row = tx.get(step.now.id)
        if row is None or row.version != step.now.version:
            raise StaleRead
        memory = entries[row.id].memory
        if step.affected.action == "quarantine":
            memory = replace(memory, provenance={**memory.provenance, QUARANTINED: recovery_id})
        free = [name for name in memory.aliases if (at := tx.by_alias(row.agent_id, name)) is None or at.id == row.id]
        put = tx.put(replace(entries[row.id], memory=replace(memory, aliases=free)))
        kept.append({"id": put.id, "from": row.version, "to": put.version})
        parts.append(version_part(put, recovery=recovery_id))
    return kept, parts


def _restate(tx: Transaction, tainted: TaintedStatement, seen: Triple, ends: list[Document]) -> list[AuditPart]:
    """A bad statement never held, and what it took the place of holds on; one that they ended goes on. `ends` is told
    what each ended at before."""
    triple = tx.triple(seen.id)
    if triple is None:
        raise StaleRead
    line = (triple.agent_id, triple.subject, triple.predicate)

    def set_end(which: Triple, at: int | None) -> AuditPart:
        ends.append({"id": which.id, "from": which.valid_to, "to": at})
        return end_at(tx, which, at)

    if tainted.ended:
        later = tx.triple_after(*line, triple.valid_from)
        return [set_end(triple, None if later is None else later.valid_from)]
    before = tx.triple_at(*line, triple.valid_from - 1)
    parts = [set_end(triple, triple.valid_from)]
    if before is not None and before.valid_to == triple.valid_from:
        parts.append(set_end(before, triple.valid_to))
    return parts
