"""The temporal knowledge graph: what is stated about things, since when, and until when.

Statements of one subject and predicate form a line in time and never overlap. A new one holds from `valid_from` (now,
unless given) until the next one on that line begins; the one that held at that instant ends there. So stating
something new closes what was active, and stating something about the past leaves what came after it alone.

Names are kept as written (but for white space around them), and a statement is found under exactly its subject. Paths
and hops compare names without regard to case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commonplace.engine.checks import memory_not_found
from commonplace.engine.core import REVIEW, Core
from commonplace.engine.graph.statements import (
    AssertResult,
    apply_erase,
    apply_statement,
    check_instant,
    check_text,
    clean_statement,
    end_at,
    plan_statement,
)
from commonplace.engine.ledger import audit
from commonplace.engine.memory.erase_records import erase_records, reject_pending
from commonplace.engine.memory.read import resolve
from commonplace.engine.types import Statement
from commonplace.stores.base import Reach, Transaction
from commonplace.stores.graph import Instant, Triple
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.record import Principal

MAX_HOPS = 3  # of neighbours, as in recall
MAX_PATH = 6
_MAX_NEIGHBOURS = 1000
_MAX_SUBJECTS = 2000  # statements that are looked at to list what they are about
_CHUNK = 64  # statements erased per unit of work, so that the write lock is never held for long

RETRACT, ERASE = "graph_retract", "graph_erase"


@dataclass(slots=True)
class EraseResult:
    """The ids of statements that are gone, and the backups that may still hold them; why others are still there."""

    ids: list[str]
    backups: list[str] = field(default_factory=list)  # where they lie, told to the operator alone
    backup_count: int = 0
    remaining: list[str] = field(default_factory=list)
    error: str | None = None


class Graph:
    """Statements, for every protocol to read and write."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def assert_fact(
        self,
        who: Principal,
        agent_id: str,
        *,
        subject: str,
        predicate: str,
        object: str,
        confidence: float = 1.0,
        provenance: str | None = None,
        valid_from: int | None = None,
    ) -> AssertResult:
        """State something; what was stated of this subject and predicate until now ends in the same transaction."""
        said = Statement(agent_id, subject, predicate, object, confidence, provenance, valid_from)
        return await self.assert_statement(who, said)

    async def assert_statement(self, who: Principal, statement: Statement) -> AssertResult:
        """As `assert_fact`, at once: whether it should wait for approval is not asked here."""
        clean = await clean_statement(self._core, who, statement)
        return await self._core.transact(
            who.tenant, lambda tx: apply_statement(tx, who, plan_statement(tx, who, clean, mint_id(tx.now)))
        )

    def _name(self, field: str, text: str) -> str:
        """A name that is looked for, which must hold no secret: answers repeat it."""
        named = check_text(field, text)
        self._core.check_names(**{field: named})
        return named

    # reading

    async def query(
        self, who: Principal, agent_id: str, subject: str, *, as_of: int | None = None, predicate: str | None = None
    ) -> list[Triple]:
        """What is stated about a subject now, or was valid at `as_of` (ms); `predicate` narrows it."""
        self._core.require(who, agent_id, "reader")
        at, named = self._at(as_of), self._name("subject", subject)
        predicate = None if predicate is None else self._name("predicate", predicate)
        found = await self._core.primary.triples(who.tenant, agent_id, subject=named, predicate=predicate, at=at)
        return sorted(await self._core.policies.shown_triples(who, found), key=lambda t: t.predicate)

    async def history(self, who: Principal, agent_id: str, subject: str, predicate: str | None = None) -> list[Triple]:
        """Everything that was ever stated about a subject, in the order it began."""
        self._core.require(who, agent_id, "reader")
        named = self._name("subject", subject)
        predicate = None if predicate is None else self._name("predicate", predicate)
        found = await self._core.primary.triples(who.tenant, agent_id, subject=named, predicate=predicate)
        return await self._core.policies.shown_triples(who, found)

    async def around(self, who: Principal, agent_id: str, name: str, *, limit: int = 50) -> Sequence[Triple]:
        """What holds now and names this thing, as subject or as object; the latest first."""
        self._core.require(who, agent_id, "reader")
        named = self._name("name", name)
        found = await self._core.primary.triples_about(who.tenant, agent_id, named, mentions=True)
        now = self._core.clock()
        holding = sorted((t for t in found if t.holds(now)), key=lambda t: (-t.valid_from, t.id))
        return (await self._core.policies.shown_triples(who, holding))[:limit]

    async def subjects(self, who: Principal, agent_id: str, limit: int = 100) -> list[tuple[str, int]]:
        """Things that something is stated about now, and how many such statements there are, of the first thousands."""
        self._core.require(who, agent_id, "reader")
        found = await self._core.primary.triples(who.tenant, agent_id, at=self._at(None), limit=_MAX_SUBJECTS)
        seen = await self._core.policies.shown_triples(who, found)
        return Counter(triple.subject for triple in seen).most_common(limit)

    async def counts(self, who: Principal, agent_id: str) -> dict[str, int]:
        """How many statements there are of all times, how many hold now, and about how many subjects: of those that the
        caller may see."""
        self._core.require(who, agent_id, "reader")
        if await self._core.policies.limit_reading(who):
            found = await self._core.primary.triples(who.tenant, agent_id)
            seen, now = await self._core.policies.shown_triples(who, found), self._core.clock()
            holding = [triple for triple in seen if triple.holds(now)]
            return {"triples": len(seen), "active": len(holding), "subjects": len({t.subject for t in holding})}
        counted = await self._core.primary.triple_counts(who.tenant, agent_id, self._at(None))
        return dict(zip(("triples", "active", "subjects"), counted, strict=True))

    async def path(
        self, who: Principal, agent_id: str, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None
    ) -> list[Triple]:
        """The fewest statements that lead from one thing to another, each in either direction; [] when none do."""
        self._core.require(who, agent_id, "reader")
        _check_steps("max_hops", max_hops, 1, MAX_PATH)
        at, ends = self._at(as_of), (self._name("start", start), self._name("end", end))
        found = await self._core.primary.path(who.tenant, agent_id, *ends, max_hops, at)
        seen = await self._core.policies.shown_triples(who, found)
        return seen if len(seen) == len(found) else []  # a path with a gap leads nowhere

    async def neighbours(self, who: Principal, agent_id: str, ref: str, hops: int) -> dict[str, int]:
        """The live memories within so many hops of this one, nearest first, with their distance."""
        self._core.require(who, agent_id, "reader")
        _check_steps("hops", hops, 0, MAX_HOPS)
        memory = await resolve(self._core, who, agent_id, check_text("memory_id", ref))
        if hops == 0:
            return {}
        reach = Reach(who.tenant, (agent_id,), now=self._core.clock())
        linked = await self._core.primary.linked(reach, [memory.id], hops, self._at(None), _MAX_NEIGHBOURS)
        near = linked[memory.id]
        if not await self._core.policies.limit_reading(who):
            return near
        there = await self._core.primary.get(who.tenant, [memory.id, *near])
        seen = {each.id for each in await self._core.policies.shown(who, there)}
        if memory.id not in seen:
            raise memory_not_found(agent_id, ref)
        return {id: distance for id, distance in near.items() if id in seen}

    def _at(self, as_of: int | None) -> Instant:
        if as_of is None:
            return Instant(self._core.clock())
        check_instant(as_of, "as_of")
        return Instant(as_of, given=True)

    # ending and erasing

    async def retract(self, who: Principal, agent_id: str, which: Triple | str | tuple[str, str]) -> Triple:
        """End a statement now with none in its place: a triple, its id, or the (subject, predicate) that holds."""
        self._core.require(who, agent_id, "writer")
        asked = which.id if isinstance(which, Triple) else which
        self._core.check_names(
            **({"id": asked} if isinstance(asked, str) else {"subject": asked[0], "predicate": asked[1]})
        )

        guard = await self._core.policies.triple_guard(who, "forget")

        def work(tx: Transaction) -> Triple:
            triple = _by_id(tx, agent_id, asked) if isinstance(asked, str) else _current_triple(tx, agent_id, *asked)
            guard(triple)
            end = max(tx.now, triple.valid_from)
            audit.append(tx, who, RETRACT, agent_id, [end_at(tx, triple, end)])
            return replace(triple, valid_to=end)

        ended = await self._core.transact(who.tenant, work)
        named = () if isinstance(asked, str) else tuple(term.strip() for term in asked)
        return (await self._core.policies.masked_triples(who, [ended], *named))[0]

    async def preview_erase(
        self, who: Principal, agent_id: str, subject: str, *, mentions: bool = False
    ) -> list[Triple]:
        """What `erase` would remove; of what the caller may not read, only that it is there."""
        found = await self._about(who, agent_id, subject, mentions)
        return await self._core.policies.masked_triples(who, found, subject.strip())

    async def _about(self, who: Principal, agent_id: str, subject: str, mentions: bool) -> list[Triple]:
        self._core.require(who, agent_id, "writer")
        named = check_text("subject", subject)
        return await self._core.primary.triples_about(who.tenant, agent_id, named, mentions)

    async def erase(self, who: Principal, agent_id: str, subject: str, *, mentions: bool = False) -> EraseResult:
        """Remove everything ever stated about a subject, of all times, and what the ledger says of it.

        With `mentions` also what names it as the object.
        """
        gone, remaining, why = list[str](), list[str](), None
        guard = await self._core.policies.triple_guard(who, "forget")

        def work(tx: Transaction, batch: Sequence[str]) -> list[str]:
            there = [triple for id in batch if (triple := tx.triple(id)) is not None]
            for triple in there:
                guard(triple)
            ids = [triple.id for triple in there]
            if ids:
                audit.append(tx, who, ERASE, agent_id, apply_erase(tx, ids))
            return ids

        # Again until nothing is left: someone may have stated more of it meanwhile.
        while why is None and (found := await self._about(who, agent_id, subject, mentions)):
            ids = [triple.id for triple in found]
            done, why = await self._core.transact_in_chunks(who, ids, _CHUNK, work, begun=bool(gone))
            gone += done
            remaining = [] if why is None else [id for id in ids if id not in done]
        quoting = list[str]()
        if why is None:
            quoting, staged = await self._erase_staged(who, agent_id, check_text("subject", subject), mentions)
            gone += staged
        if not gone and not quoting:
            return EraseResult([])
        why = why or await self._core.delete_migration_backups(who)
        return EraseResult(gone, *await self._core.backups(who), remaining, why)

    async def _erase_staged(
        self, who: Principal, agent_id: str, name: str, mentions: bool
    ) -> tuple[list[str], list[str]]:
        """Take out of reviews what waits to be stated of it or was rejected; what waits is thereby rejected. The
        reviews, and the statements that are no more."""
        found = await self._core.primary.records(who.tenant, REVIEW)
        quoting = [r.key for r in found if _quotes(r.value, agent_id, name, mentions)]
        if not quoting:
            return [], []

        def work(tx: Transaction) -> list[str]:
            gone, parts = [], []
            for key in quoting:
                record = tx.record(REVIEW, key)
                if record is not None and _quotes(record.value, agent_id, name, mentions):
                    id = record.value["statement_id"]
                    stated = tx.triple(id)
                    if stated is not None and not _names(stated.subject, stated.object, name, mentions):
                        erase_records(tx, id)  # what was approved instead is about others
                        continue
                    parts += apply_erase(tx, [id])
                    reject_pending(tx, who, key)
                    gone.append(id)
            if gone:
                audit.append(tx, who, ERASE, agent_id, parts)
            return gone

        return quoting, await self._core.transact(who.tenant, work)


def _quotes(review: dict[str, Any], agent_id: str, name: str, mentions: bool) -> bool:
    """Whether a statement that never was, or is not yet, names this."""
    said = review.get("statement")
    if review["agent_id"] != agent_id or said is None or review.get("erased"):
        return False
    return _names(said["subject"], said["object"], name, mentions)


def _names(subject: str, object: str, name: str, mentions: bool) -> bool:
    return subject == name or (mentions and object == name)


def _by_id(tx: Transaction, agent_id: str, id: str) -> Triple:
    triple = tx.triple(id)
    if triple is None or triple.agent_id != agent_id:
        raise NotFound(f"no statement {id} for agent {agent_id}", hint="`commonplace kg query` shows their ids")
    if triple.valid_to is not None and triple.valid_to <= max(tx.now, triple.valid_from):
        raise Conflict(f"statement {id} has already ended", valid_to=triple.valid_to)
    return triple


def _current_triple(tx: Transaction, agent_id: str, subject: str, predicate: str) -> Triple:
    subject, predicate = check_text("subject", subject), check_text("predicate", predicate)
    found = tx.triple_at(agent_id, subject, predicate, tx.now)
    if found is None:
        raise NotFound(
            f"nothing is stated about {subject!r} with {predicate!r} for agent {agent_id}",
            hint="`commonplace kg query SUBJECT` shows what is",
        )
    return found


def _check_steps(field: str, steps: int, least: int, most: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not least <= steps <= most:
        raise ValidationError(f"{field} must be a whole number from {least} to {most}, not {steps!r}", field=field)
