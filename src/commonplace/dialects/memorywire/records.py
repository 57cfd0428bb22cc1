"""memorywire's messages and our record, each from the other. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from commonplace.engine import (
    AuditEntry,
    DeliveryReport,
    Draft,
    Expire,
    Forget,
    ForgetResult,
    Hit,
    Merge,
    ProcedureResult,
    Triple,
    Update,
)
from commonplace.wire.metadata_fields import fields_from_metadata, metadata_with_fields
from commonplace.wire.models import (
    ErasureReport,
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    RecallHit,
    RememberRequest,
    UpdateRequest,
)
from commonplace.wire.record import Memory

NAME = "memorywire"
_SHOWN = ("id", "agent_id", "type", "content", "created_at", "updated_at", "version", "status", "confidence")
_SHOWN_IN_HITS = ("id", "type", "content", "created_at", "confidence", "source", "user_id", "expires_at")
_OPTIONAL = ("user_id", "source", "expires_at", "merged_into", "last_recalled_at", "aliases", "recalls", "supersedes")
_RECEIVED = ("source", "from", "witnesses", "chain")  # of the provenance of what came from another agent
_TRIPLE = ("id", "agent_id", "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "asserted_by")


def to_draft(request: RememberRequest) -> Draft:
    metadata = request.metadata or {}
    return Draft(
        agent_id=request.agent_id,
        type=request.type,
        content=request.content,
        user_id=request.user_id,
        metadata=metadata,
        confidence=request.confidence,
        source=request.source,
        provenance={"dialect": NAME},
        privacy=request.privacy_intent.model_dump(exclude_none=True) if request.privacy_intent else {},
        expires_at=request.expires_at,
        embedding=request.embedding,
        **fields_from_metadata(metadata),
    )


def to_update(ref: str, request: UpdateRequest) -> Update:
    sharing = request.privacy_intent
    fields = {**dict(request), "privacy_intent": None if sharing is None else sharing.model_dump()}
    removes = "expires_at" in request.model_fields_set and request.expires_at is None
    return Update(id=ref, remove_expiry=removes, **fields)


def to_forget(request: ForgetRequest) -> Forget:
    return Forget(**{**dict(request), "ids": request.ids or ()})


def to_merge(request: MergeRequest) -> Merge:
    return Merge(**dict(request))


def to_expire(request: ExpireRequest) -> Expire:
    policy = request.policy.model_dump() if request.policy is not None else {}
    return Expire(request.agent_id, action=request.action, **policy)


def shown_metadata(memory: Memory) -> dict[str, Any]:
    """Metadata as written, plus what another protocol kept in fields that memorywire shows here."""
    metadata = metadata_with_fields(memory)
    if memory.provenance.get("dialect", NAME) != NAME and "kind" not in metadata:
        metadata["kind"] = memory.kind
    return metadata


def to_hit(hit: Hit) -> RecallHit:
    memory = hit.memory
    # What the store gives back was checked when it was written; checking every hit again costs more than the rest.
    return RecallHit.model_construct(
        **{name: getattr(memory, name) for name in _SHOWN_IN_HITS},
        metadata=shown_metadata(memory),
        score=hit.score,
        supporting=hit.supporting or None,
        source_store=hit.source_store,
        relevance=hit.relevance,
        demotion=memory.demotion if memory.demotion != 1.0 else None,
        explain=hit.explain,
    )


def to_wire(memory: Memory) -> dict[str, Any]:
    """A memory as `get`, `list` and `history` show it: nothing empty, the engine's secrets left out."""
    document = {name: getattr(memory, name) for name in _SHOWN}
    document |= {"metadata": shown_metadata(memory), "content_hash": memory.content_hash}
    document |= {name: value for name in _OPTIONAL if (value := getattr(memory, name))}
    if memory.privacy:
        document["privacy_intent"] = memory.privacy
    if memory.provenance.get("source") == "received":
        document["provenance"] = {name: memory.provenance[name] for name in _RECEIVED if name in memory.provenance}
    if memory.demotion != 1.0:
        document["demotion"] = memory.demotion
    return document


def to_procedure(result: ProcedureResult) -> dict[str, Any]:
    memory, machine = result.memory, result.machine
    possible = []
    for trigger, move in machine.moves(machine.current).items():
        guards = {"conditions": list(move.conditions), "unless": list(move.unless)}
        dest = machine.current if move.dest is None else move.dest
        possible.append({"trigger": trigger, "dest": dest} | {name: names for name, names in guards.items() if names})
    document = {name: getattr(memory, name) for name in ("id", "agent_id", "version")}
    document |= {"name": machine.name, "state": machine.current, "initial": machine.initial}
    return document | {"states": list(machine.states), "possible": possible}


def triple_to_wire(triple: Triple) -> dict[str, Any]:
    document = {name: getattr(triple, name) for name in _TRIPLE}
    return document if triple.provenance is None else {**document, "provenance": triple.provenance}


def _payload(data: bytes) -> dict[str, Any]:
    """A ledger that was damaged can still be read; `audit verify` says where it was."""
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": True}


def entry_to_wire(entry: AuditEntry) -> dict[str, Any]:
    shown = ("n", "at", "seq", "operation", "agent_id", "principal", "payload_hash", "hash", "previous")
    payload: list[dict[str, Any]] = []
    for part in entry.parts:
        if part.payload is None:
            payload.append({"erased": True})
        else:
            named = {"memory_id": part.memory_id} if part.memory_id else {}
            payload.append({**named, **_payload(part.payload)})
    return {**{name: getattr(entry, name) for name in shown}, "payload": payload}


def store_errors(report: DeliveryReport, field: str = "errors") -> dict[str, Any]:
    """The field of an answer that names the stores beside the primary which have not done it yet; none, if all have."""
    return undelivered_to_wire(report.problems(), field)


def undelivered_to_wire(problems: Mapping[str, str], field: str = "errors") -> dict[str, Any]:
    errors = [{"store": store, "error": why} for store, why in problems.items()]
    return {field: errors} if errors else {}


def erasure_report(result: ForgetResult) -> ErasureReport | None:
    if not (result.descendants or result.sources or result.backup_count):
        return None
    return ErasureReport(
        descendants=result.descendants,
        sources=result.sources or None,
        backups=result.backups,
        backup_count=result.backup_count or None,
    )
