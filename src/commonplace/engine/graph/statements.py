"""The temporal knowledge graph: what is stated about things, since when, and until when.

Statements of one subject and predicate form a line in time and never overlap. A new one holds from `valid_from` (now,
unless given) until the next one on that line begins; the one that held at that instant ends there. So stating
something new closes what was active, and stating something about the past leaves what came after it alone.

Names are kept as written (but for white space around them), and a statement is found under exactly its subject. Paths
and hops compare names without regard to case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory.read import resolve
from commonplace.stores.base import AuditPart, Reach, Transaction
from commonplace.stores.graph import At, Triple
from commonplace.wire.canonical import is_uuid, mint_id
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.knowledge import LAST_INSTANT, MAX_CHARS
from commonplace.wire.plain import check_json
from commonplace.wire.record import Principal

__all__ = ["Triple"]

MAX_HOPS = 3  # of neighbours, as in recall
MAX_PATH = 6
NEIGHBOURS = 1000
_CHUNK = 64  # statements erased per unit of work, so that the write lock is never held for long

ASSERT, RETRACT, ERASE = "graph_assert", "graph_retract", "graph_erase"


@dataclass(slots=True)
class Erased:
    """The ids of statements that are gone, and the backups that may still hold them."""

    ids: list[str]
    backups: list[str] = field(default_factory=list)  # where they lie, told to the operator alone
    backup_count: int = 0


@dataclass(slots=True)
class AssertResult:
    """A new statement, and the one that held until then, as it is now."""

    triple: Triple
    replaced: Triple | None = None


async def state(
    core: Core,
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
    core.require(who, agent_id, "writer")
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
        raise ValidationError(f"confidence must be a number from 0 to 1, not {confidence!r}", field="confidence")
    if valid_from is not None:
        _check_instant(valid_from, "valid_from")
    names = {"subject": subject, "predicate": predicate, "object": object}
    kept = {name: _clean(core, name, text) for name, text in names.items()}
    source = None if provenance is None else _clean(core, "provenance", provenance)

    def work(tx: Transaction) -> AssertResult:
        start = tx.now if valid_from is None else valid_from
        on_line = (agent_id, kept["subject"], kept["predicate"])
        held, later = tx.triple_at(*on_line, start), tx.triple_after(*on_line, start)
        triple = Triple(
            mint_id(tx.now), agent_id, **kept, valid_from=start, valid_to=None if later is None else later.valid_from,
            confidence=float(confidence), provenance=source, asserted_by=who.name,
            memory_id=_named_memory(tx, agent_id, source),
        )  # fmt: skip
        parts = []
        if held is not None:
            parts.append(_ended(tx, held, start))
        tx.put_triple(triple)
        told = {"provenance": source} if source is not None else {}
        parts.append(audit.part(triple.id, {**_spoken(triple), "valid_from": start, "valid_to": triple.valid_to,
                                             "confidence": confidence, **told}))  # fmt: skip
        audit.append(tx, who, ASSERT, agent_id, parts)
        return AssertResult(triple, None if held is None else replace(held, valid_to=start))

    return await core.transact(who.tenant, work)


def _clean(core: Core, field: str, text: str) -> str:
    """A name as it is kept; redaction runs here, on everything a statement says."""
    kept = core.redact_text(_asked(field, text), field)
    if len(kept) > MAX_CHARS:
        raise ValidationError(f"{field} has {len(kept):,} characters; at most {MAX_CHARS:,} are kept", field=field)
    return kept


def _check_instant(at: int, field: str) -> None:
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= LAST_INSTANT:
        raise ValidationError(
            f"{field} must be milliseconds since 1970, from 0 to {LAST_INSTANT} (the year 9999), not {at!r}",
            field=field,
        )


def _named_memory(tx: Transaction, agent_id: str, provenance: str | None) -> str | None:
    """The memory a provenance names, by id or alias, so that erasing that one finds what was derived from it."""
    if provenance is None:
        return None
    spelled = tx.get(provenance) if is_uuid(provenance) else None
    if spelled is None and (aliased := tx.by_alias(agent_id, provenance)) is not None:
        return aliased.id  # which may look like an id of ours
    return provenance if is_uuid(provenance) else None


def _spoken(triple: Triple) -> dict[str, Any]:
    return {"subject": triple.subject, "predicate": triple.predicate, "object": triple.object}


def _ended(tx: Transaction, triple: Triple, at: int) -> AuditPart:
    tx.put_triple(replace(triple, valid_to=at))
    return audit.part(triple.id, {**_spoken(triple), "valid_to": at})


# reading


async def query(
    core: Core, who: Principal, agent_id: str, subject: str, *, as_of: int | None = None, predicate: str | None = None
) -> list[Triple]:
    """What is stated about a subject now, or was valid at `as_of` (ms)."""
    core.require(who, agent_id, "reader")
    at = _at(core, as_of)
    found = await core.primary.triples(
        who.tenant, agent_id, subject=_asked("subject", subject), predicate=_predicate(predicate), at=at
    )
    return sorted(found, key=lambda t: t.predicate)


async def history(
    core: Core, who: Principal, agent_id: str, subject: str, predicate: str | None = None
) -> list[Triple]:
    """Everything that was ever stated about a subject, in the order it began."""
    core.require(who, agent_id, "reader")
    return await core.primary.triples(
        who.tenant, agent_id, subject=_asked("subject", subject), predicate=_predicate(predicate)
    )


async def listing(
    core: Core, who: Principal, agent_id: str, *, as_of: int | None = None, limit: int | None = None
) -> list[Triple]:
    """All that an agent holds to be so now, or at `as_of`, whatever it is about."""
    core.require(who, agent_id, "reader")
    return await core.primary.triples(who.tenant, agent_id, at=_at(core, as_of), limit=limit)


async def counts(core: Core, who: Principal, agent_id: str) -> dict[str, int]:
    """How many statements there are of all times, how many hold now, and about how many subjects."""
    core.require(who, agent_id, "reader")
    total, active, subjects = await core.primary.triple_counts(who.tenant, agent_id, At(core.clock()))
    return {"triples": total, "active": active, "subjects": subjects}


async def path(
    core: Core, who: Principal, agent_id: str, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None
) -> list[Triple]:
    """The fewest statements that lead from one thing to another, each in either direction; [] when none do."""
    core.require(who, agent_id, "reader")
    _check_steps("max_hops", max_hops, 1, MAX_PATH)
    at = _at(core, as_of)
    return await core.primary.path(who.tenant, agent_id, _asked("start", start), _asked("end", end), max_hops, at)


async def neighbours(core: Core, who: Principal, agent_id: str, ref: str, hops: int) -> dict[str, int]:
    """The live memories within so many hops of this one, nearest first, with their distance."""
    core.require(who, agent_id, "reader")
    _check_steps("hops", hops, 0, MAX_HOPS)
    memory = await resolve(core, who, agent_id, _asked("memory_id", ref))
    if hops == 0:
        return {}
    reach = Reach(who.tenant, (agent_id,), now=core.clock())
    return (await core.primary.linked(reach, [memory.id], hops, At(core.clock()), NEIGHBOURS))[memory.id]


def _check_steps(field: str, steps: int, least: int, most: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not least <= steps <= most:
        raise ValidationError(f"{field} must be a whole number from {least} to {most}, not {steps!r}", field=field)


def _at(core: Core, as_of: int | None) -> At:
    if as_of is None:
        return At(core.clock())
    _check_instant(as_of, "as_of")
    return At(as_of, given=True)


def _asked(field: str, text: str) -> str:
    if not isinstance(text, str):
        raise ValidationError(f"{field} must be text", field=field)
    try:
        check_json(text)
    except ValueError as why:
        raise ValidationError(f"{field} {why}", field=field) from None
    if not text.strip():
        raise ValidationError(f"{field} must hold something besides white space", field=field)
    return text.strip()


def _predicate(text: str | None) -> str | None:
    return None if text is None else _asked("predicate", text)


# ending and erasing


async def retract(core: Core, who: Principal, agent_id: str, which: Triple | str | tuple[str, str]) -> Triple:
    """End a statement now without another in its place: a triple, its id, or the (subject, predicate) that holds."""
    core.require(who, agent_id, "writer")
    asked = which.id if isinstance(which, Triple) else which

    def work(tx: Transaction) -> Triple:
        if isinstance(asked, str):
            triple = tx.triple(asked)
            if triple is None or triple.agent_id != agent_id:
                raise NotFound(f"no statement {asked} for agent {agent_id}; `commonplace kg query` shows their ids")
            if triple.valid_to is not None and triple.valid_to <= max(tx.now, triple.valid_from):
                raise Conflict(f"statement {asked} has ended already", valid_to=triple.valid_to)
        else:
            subject, predicate = _asked("subject", asked[0]), _asked("predicate", asked[1])
            found = tx.triple_at(agent_id, subject, predicate, tx.now)
            if found is None:
                raise NotFound(
                    f"nothing is stated about {subject!r} with {predicate!r} for agent {agent_id}; "
                    "`commonplace kg query SUBJECT` shows what is"
                )
            triple = found
        ended = replace(triple, valid_to=max(tx.now, triple.valid_from))
        assert ended.valid_to is not None
        audit.append(tx, who, RETRACT, agent_id, [_ended(tx, triple, ended.valid_to)])
        return ended

    return await core.transact(who.tenant, work)


async def preview_erase(
    core: Core, who: Principal, agent_id: str, subject: str, *, mentions: bool = False
) -> list[Triple]:
    """What `erase` would remove."""
    core.require(who, agent_id, "writer")
    named = _asked("subject", subject)
    return await core.transact(who.tenant, lambda tx: tx.triples_of(agent_id, named, mentions))


async def erase(core: Core, who: Principal, agent_id: str, subject: str, *, mentions: bool = False) -> list[str]:
    """Remove everything ever stated about a subject, of all times, and what the ledger says of it.

    With `mentions` also what names it as the object. The ids of what is gone.
    """
    gone: list[str] = []

    def work(tx: Transaction, chosen: Sequence[str]) -> list[str]:
        ids = [id for id in chosen if tx.triple(id) is not None]
        if ids:
            audit.append(tx, who, ERASE, agent_id, erase_now(tx, ids))
        return ids

    # Again until nothing is left: someone may have stated more of it meanwhile.
    while found := await preview_erase(core, who, agent_id, subject, mentions=mentions):
        for start in range(0, len(found), _CHUNK):
            ids = [triple.id for triple in found[start : start + _CHUNK]]
            gone += await core.transact(who.tenant, lambda tx, ids=ids: work(tx, ids))  # type: ignore[misc]
    if gone:
        await core.primary.delete_migration_backups()
    return gone


def erase_now(tx: Transaction, ids: Sequence[str]) -> list[AuditPart]:
    """Erase statements; what the ledger keeps of that."""
    for id in ids:
        tx.erase_triple(id)
    return [audit.part(None, {"id": id, "erased": True}) for id in ids]
