"""What comes from others: vouches, and attestations kept as memories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.dialects.mrp import attestations
from commonplace.dialects.mrp.messages import Document
from commonplace.engine import Engine
from commonplace.wire.errors import NotFound, SecretLeakage, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import milliseconds
from commonplace.wire.validate import check

_REDACTED = "it holds something that redaction would take out, and a changed attestation would no longer verify"


async def vouch(engine: Engine, who: Principal, authenticated: bool, document: Any) -> Document:
    check("mrp/vouch", document)
    given = document["vouch"]
    _refuse_secrets(engine, given, "vouch")
    counted = await engine.peers.keep_vouch(who, given, authenticated=authenticated)
    return {"vouch_id": given["id"], "counted": counted}


async def vouches_for(engine: Engine, who: Principal, subject: str) -> Document:
    return {"vouches": await engine.peers.vouches_for(who, subject)}


async def keep(
    engine: Engine, who: Principal, attestation: Any, *, from_agent: str, agent: str, public_key: str | None,
    share_with: list[str] | None,
) -> Document:  # fmt: skip
    check("mrp/attestation-v1", attestation)
    milliseconds(attestation["created_at"], "created_at")
    bound = (await engine.peers.bindings(who.tenant)).get(attestation["agent"])
    attestations.check_signed(attestation, public_key or (bound.key if bound else None))
    _refuse_secrets(engine, attestation, "attestation")
    draft = attestations.to_draft(attestation, agent, from_agent)
    draft.supersedes = await engine.peers.replaceable(who, draft.supersedes, lambda m: _same_hand(m, attestation))
    if share_with:
        draft.privacy = {"share_with": list(share_with)}
    try:
        held = await engine.find(who, attestation["id"], agent)
    except NotFound:
        receipt = await engine.remember(who, draft)
        return {"memory_id": receipt.id, "created": True}
    if attestations.verbatim(held) == attestation:
        if share_with and held.privacy.get("share_with") != draft.privacy["share_with"]:
            await engine.update(who, agent, held.id, lambda m: replace(m, privacy={**m.privacy, **draft.privacy}))
        return {"memory_id": held.id, "created": False}
    if held.id == attestation["id"]:  # our own: asking for it back is no reason to share it with others
        return {"memory_id": held.id, "created": False, "own": True}
    raise ValidationError(
        f"another memory of {agent} came under the id {attestation['id']!r:.300}; forget that one first", field="id"
    )


def _same_hand(memory: Memory, attestation: Document) -> bool:
    held = attestations.verbatim(memory)
    return held is not None and _hand(held) == _hand(attestation)


def _hand(attestation: Document) -> tuple[Any, Any]:
    return attestation["agent"], (attestation.get("signatures") or {}).get("public_key")


def _refuse_secrets(engine: Engine, document: Document, what: str) -> None:
    if engine.redactor.holds_secret(document):
        raise SecretLeakage(f"the {what} is refused: {_REDACTED}")
