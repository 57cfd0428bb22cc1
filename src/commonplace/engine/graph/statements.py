"""A statement of the knowledge graph: as it may be kept, what it makes and ends, and what the ledger says of it.

Whether it may be stated now is asked elsewhere: `Graph` states at once, `governance` after a review.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from commonplace.engine.checks import check_agent_name
from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.memory.erase_records import erase_records
from commonplace.engine.types import Statement
from commonplace.stores.base import AuditPart, Transaction
from commonplace.stores.graph import Triple
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import ValidationError
from commonplace.wire.plain import check_field, check_not_blank
from commonplace.wire.record import MAX_TERM_CHARS, Principal
from commonplace.wire.times import LAST_INSTANT

ASSERT = "graph_assert"
_LONG_CHARS = 16 * 1024  # beyond which looking for secrets takes long enough for others to notice


@dataclass(slots=True)
class AssertResult:
    """A new statement, and the one that held until then, as it is now."""

    triple: Triple
    replaced: Triple | None = None
    held: Triple | None = None  # what `replaced` was until now
    review_id: str | None = None  # while it waits for approval, and none of it has happened


async def clean_statement(
    core: Core, who: Principal, statement: Statement, *, author: Principal | None = None, reviewed: bool = False
) -> Statement:
    """A statement as it may be kept; redaction and policies run here, on everything that it says. `author` is who asked
    for it, where that is another; policies want it `reviewed` or are asked."""
    given = (statement.subject, statement.predicate, statement.object, statement.provenance)
    if sum(len(text) for text in given if isinstance(text, str)) > _LONG_CHARS:
        clean = await asyncio.to_thread(_clean_statement, core, who, statement)
    else:
        clean = _clean_statement(core, who, statement)
    said = Triple(
        "", clean.agent_id, clean.subject, clean.predicate, clean.object, 0,
        confidence=float(clean.confidence), provenance=clean.provenance,
    )  # fmt: skip
    kept = await core.policies.admit_triple(author or who, "statement", said, reviewed=reviewed)
    return replace(clean, **{name: getattr(kept, name) for name in ("subject", "predicate", "object", "provenance")})


def _clean_statement(core: Core, who: Principal, statement: Statement) -> Statement:
    core.require(who, statement.agent_id, "writer")
    check_agent_name(statement.agent_id)
    confidence = statement.confidence
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
        raise ValidationError(f"confidence must be a number from 0 to 1, not {confidence!r}", field="confidence")
    if statement.valid_from is not None:
        check_instant(statement.valid_from, "valid_from")
    kept: dict[str, Any] = {n: _clean(core, n, getattr(statement, n)) for n in ("subject", "predicate", "object")}
    kept["object"] = core.redactor.redact_statement(**kept)
    source = None if statement.provenance is None else _clean(core, "provenance", statement.provenance)
    return replace(statement, **kept, provenance=source)


def _clean(core: Core, field: str, text: str) -> str:
    kept = core.redact_text(check_text(field, text), field)
    if len(kept) > MAX_TERM_CHARS:
        raise ValidationError(f"{field} has {len(kept):,} characters; at most {MAX_TERM_CHARS:,} are kept", field=field)
    return kept


def plan_statement(tx: Transaction, author: Principal, clean: Statement, id: str) -> AssertResult:
    """What stating it now would make, and what it would end; nothing is written."""
    start = tx.now if clean.valid_from is None else clean.valid_from
    timeline = (clean.agent_id, clean.subject, clean.predicate)
    held, later = tx.triple_at(*timeline, start), tx.triple_after(*timeline, start)
    triple = Triple(
        id,
        *timeline,
        clean.object,
        valid_from=start,
        valid_to=None if later is None else later.valid_from,
        confidence=float(clean.confidence),
        provenance=clean.provenance,
        asserted_by=author.name,
        memory_id=_named_memory(tx, clean.agent_id, clean.provenance),
    )
    return AssertResult(triple, None if held is None else replace(held, valid_to=start), held)


def apply_statement(tx: Transaction, author: Principal, made: AssertResult) -> AssertResult:
    """Write what `plan_statement` made in the same transaction."""
    triple = made.triple
    parts = [] if made.held is None else [end_at(tx, made.held, triple.valid_from)]
    tx.put_triple(triple)
    said = {**_as_payload(triple), "valid_from": triple.valid_from, "valid_to": triple.valid_to}
    said["confidence"] = triple.confidence
    said |= {} if triple.memory_id is None else {"derived_from": triple.memory_id}
    said |= {} if triple.provenance is None else {"provenance": triple.provenance}
    parts.append(audit.part(triple.id, said))
    audit.append(tx, author, ASSERT, triple.agent_id, parts)
    return made


def apply_erase(tx: Transaction, ids: Sequence[str]) -> list[AuditPart]:
    """Erase statements; what the ledger keeps of that."""
    for id in ids:
        erase_records(tx, id)
        tx.erase_triple(id)
    return [audit.part(None, {"id": id, "erased": True}) for id in ids]


def end_at(tx: Transaction, triple: Triple, at: int | None) -> AuditPart:
    """Let a statement hold until then, or without an end; what the ledger says of that."""
    tx.put_triple(replace(triple, valid_to=at))
    return audit.part(triple.id, {**_as_payload(triple), "valid_to": at})


def _as_payload(triple: Triple) -> dict[str, Any]:
    return {"subject": triple.subject, "predicate": triple.predicate, "object": triple.object}


def _named_memory(tx: Transaction, agent_id: str, provenance: str | None) -> str | None:
    """The memory a provenance names, by id or alias, so that erasing that one finds what was derived from it."""
    if provenance is None:
        return None
    spelled = tx.get(provenance) if is_uuid(provenance) else None
    if spelled is None and (aliased := tx.by_alias(agent_id, provenance)) is not None:
        return aliased.id  # which may look like an id of ours
    return provenance if is_uuid(provenance) else None


def check_instant(at: int, field: str) -> None:
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= LAST_INSTANT:
        raise ValidationError(
            f"{field} must be milliseconds since 1970, from 0 to {LAST_INSTANT} (the year 9999), not {at!r}",
            field=field,
        )


def check_text(field: str, text: str) -> str:
    if not isinstance(text, str):
        raise ValidationError(f"{field} must be text", field=field)
    check_field(text, field)
    check_not_blank(text, field)
    return text.strip()
