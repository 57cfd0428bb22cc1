"""A memory as an attestation, and an attestation as a memory. Pure.

An attestation that came from someone else is kept whole and goes out again as it came, so that its signatures still
verify; what is signed here is what this installation's own agents remember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.dialects.mrp import signatures
from commonplace.engine import Draft, Peer, TrustContext, VouchedTrust, author_level
from commonplace.wire import keys
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import Memory
from commonplace.wire.times import iso, milliseconds

Document = dict[str, Any]

NAME = "mrp"
CLAIMS = ("event", "fact", "observation", "insight", "relationship")
CATEGORIES = ("foundational", "operational", "ephemeral", "experimental")
SOURCES = ("direct-experience", "inference", "received", "aggregated")
_CLAIM_OF = {"semantic": "fact", "episodic": "event", "procedural": "insight", "emotional": "observation"}
_FOUNDATIONAL = 0.8  # importance from which a memory is one of an agent's foundations


# a memory of ours


def to_attestation(memory: Memory) -> Document:
    """What a memory says, unsigned; what was received goes out as it came. The same for every reader."""
    if (received := verbatim(memory)) is not None:
        return received
    said = memory.metadata
    context = said.get("context")
    if not isinstance(context, str):
        context = memory.title
    kind = memory.kind if memory.kind in CLAIMS else _CLAIM_OF[memory.type]
    claim: Document = {"type": kind, "content": memory.content, "references": _references(memory)}
    if context:
        claim["context"] = context
    why = said.get("why_kept")
    return {
        "id": memory.id,
        "agent": memory.agent_id,
        "created_at": iso(memory.created_at),
        "claim": claim,
        "salience": {
            "why_kept": why if isinstance(why, str) and why else f"kept as {memory.kind or memory.type}",
            "category": _category(memory),
            "confidence": memory.confidence,
            "expected_decay": _decay(memory),
            "supersedes": [id for id in memory.supersedes if id],
        },
        "provenance": {"source": _source(memory), **_witnessed(memory)},
    }


def signed(memory: Memory, private: str) -> Document:
    """The attestation to send: a received one with the signatures it came with, one of ours with ours."""
    attestation = to_attestation(memory)
    return attestation if verbatim(memory) is not None else signatures.sign_attestation(attestation, private)


def has_evidence(attestation: Document, peers: Mapping[str, Peer], *, own: bool) -> bool:
    """References, which are part of the claim; and witnesses and a chain as far as someone has signed for them: whoever
    sends an attestation on can write what they like beside what its author signed."""
    if attestation["claim"].get("references"):
        return True
    provenance = attestation.get("provenance") or {}
    witnesses = provenance.get("witnesses") or ()
    if own or covered(attestation, peers) == "whole":
        return bool(witnesses or provenance.get("chain"))
    return any(has_signed(witness, attestation, peers) for witness in witnesses)


def has_signed(witness: Document, attestation: Document, peers: Mapping[str, Peer]) -> bool:
    """Whether a witness put its own name, by the key bound to it here, under what is claimed."""
    peer = peers.get(witness["agent"])
    said = {**attestation, "signatures": {"agent_signature": witness.get("signature")}}
    return peer is not None and _signed_with(said, peer.key)


def verbatim(memory: Memory) -> Document | None:
    """The attestation a memory came as, unless the memory has been changed since and says something else now."""
    received = memory.provenance.get("attestation")
    if memory.provenance.get("dialect") != NAME or not isinstance(received, dict):
        return None
    came = to_draft(received, memory.agent_id)
    # Of what it says it supersedes, only its own author's memories are taken over.
    same = set(memory.supersedes) <= set(came.supersedes)
    same = same and all(getattr(came, name) == getattr(memory, name) for name in ("content", "confidence"))
    return received if same else None


def _category(memory: Memory) -> str:
    said = memory.metadata.get("category")
    if said in CATEGORIES:
        return str(said)
    if memory.expires_at is not None:
        return "ephemeral"
    return "foundational" if (memory.importance or 0.0) >= _FOUNDATIONAL else "operational"


def _decay(memory: Memory) -> Document:
    if memory.expires_at is not None:
        return {"type": "time-bound", "until": iso(memory.expires_at)}
    said = memory.metadata.get("expected_decay")
    if isinstance(said, dict) and said.get("type") == "conditional":
        until = said.get("until")
        return {"type": "conditional", "until": until if isinstance(until, str) else None}
    return {"type": "permanent", "until": None}


def _source(memory: Memory) -> str:
    if memory.provenance.get("source") == "received":  # changed since: it came from someone else all the same
        return "received"
    return str(memory.source) if memory.source in SOURCES else "direct-experience"


def _references(memory: Memory) -> list[str]:
    said = memory.metadata.get("references")
    found = [each for each in said if isinstance(each, str) and each] if isinstance(said, list) else []
    if memory.source and memory.source not in SOURCES and memory.source not in found:
        found.append(memory.source)
    return found


def _witnessed(memory: Memory) -> Document:
    held = memory.provenance
    if held.get("dialect") == NAME and "attestation" in held:
        # It was changed here: its witnesses saw something else, and of its chain we know where it came from.
        return {"witnesses": [], "chain": list(held.get("chain") or ())[-1:] if "from" in held else []}
    witnesses, chain = held.get("witnesses"), held.get("chain")
    known = [w for w in witnesses if isinstance(w, dict) and w.get("agent")] if isinstance(witnesses, list) else []
    links = [link for link in chain if isinstance(link, (str, dict))] if isinstance(chain, list) else []
    return {"witnesses": known, "chain": links}


# an attestation of someone else's


def to_draft(attestation: Document, agent_id: str, from_agent: str | None = None) -> Draft:
    """An attestation that follows its schema, as a memory of `agent_id`; the whole of it is kept as it came."""
    claim, salience = attestation["claim"], attestation["salience"]
    provenance = attestation["provenance"]
    metadata = {
        "author": attestation["agent"],
        "category": salience["category"],
        "why_kept": salience.get("why_kept"),
        "context": claim.get("context"),
        "references": claim.get("references"),
        "expected_decay": salience.get("expected_decay"),
    }
    received: Document = {
        "dialect": NAME,
        "source": "received",
        "witnesses": list(provenance.get("witnesses") or ()),
        "chain": list(provenance.get("chain") or ()),
        "attestation": attestation,
    }
    if from_agent is not None:
        link = {"attestation": attestation["id"], "agent": attestation["agent"], "from": from_agent}
        received["chain"].append(link)
        received["from"] = from_agent
    return Draft(
        agent_id,
        "episodic" if claim["type"] == "event" else "semantic",
        claim["content"],
        kind=claim["type"],
        metadata={name: value for name, value in metadata.items() if value},
        confidence=float(salience["confidence"]),
        source=provenance["source"],
        provenance=received,
        expires_at=_ends(salience.get("expected_decay")),
        supersedes=list(salience.get("supersedes") or ()),
        aliases=[attestation["id"]],
    )


def _ends(decay: Any) -> int | None:
    if not isinstance(decay, dict) or decay.get("type") != "time-bound" or not decay.get("until"):
        return None
    return milliseconds(decay["until"], "salience.expected_decay.until", end_of_day=True)


# who signed it, and how far its author is trusted


def check_signed(attestation: Document, key: str | None) -> None:
    """Refuses an attestation whose hash or signature is not its own; `key` is the one it must be signed with."""
    held = attestation.get("signatures") or {}
    stated, value = held.get("hash"), held.get("agent_signature")
    if stated and not signatures.same_hash(attestation, stated):
        raise ValidationError("the hash is not this attestation's: it was changed on the way", field="signatures.hash")
    using = key or held.get("public_key")
    if key is not None and not value:
        raise ValidationError(f"it is not signed, but {attestation['agent']} signs", field="signatures.agent_signature")
    if value and using:
        keys.check_public(using)
        if not signatures.verify_attestation(attestation, using):
            raise ValidationError(
                "the signature is not this attestation's: it was changed, or another key signed it",
                field="signatures.agent_signature",
            )


def covered(attestation: Document, peers: Mapping[str, Peer]) -> signatures.Covered | None:
    """What of it is signed with the key bound to its author here, else with the key it names."""
    peer = peers.get(attestation["agent"])
    key = peer.key if peer is not None and peer.key is not None else _named_key(attestation)
    try:
        return signatures.covered(attestation, key) if key else None
    except Fault:  # a key or signature that cannot be one
        return None


def _named_key(attestation: Document) -> str | None:
    named = (attestation.get("signatures") or {}).get("public_key")
    return named if isinstance(named, str) and named else None


def signed_by(attestation: Document, bound: str | None) -> tuple[bool, bool]:
    """Whether it is signed with the key it names, and whether with the one bound to its author here."""
    return _signed_with(attestation, _named_key(attestation)), _signed_with(attestation, bound)


def _signed_with(attestation: Document, key: Any) -> bool:
    try:
        return isinstance(key, str) and bool(key) and signatures.verify_attestation(attestation, key)
    except Fault:  # a key or signature that cannot be one
        return False


def author_trust(trust_context: TrustContext, attestation: Document, own_key: str | None) -> int:
    """0 to 3; `own_key` is ours where the attestation is, and need not be signed yet."""
    peer = trust_context.peers.get(attestation["agent"])
    by_named, by_bound = signed_by(attestation, peer.key if peer else None)
    vouched = vouched_for(trust_context, attestation, own_key) is not None
    own = own_key is not None
    return author_level(own=own, peer=peer, signed=by_named, by_bound_key=by_bound, vouched=vouched)


def vouched_for(trust_context: TrustContext, attestation: Document, own_key: str | None = None) -> VouchedTrust | None:
    """What vouches make of its author: of whoever signed with the key they speak of."""
    name = attestation["agent"]
    if name not in trust_context.vouched:
        return None
    if own_key is not None:
        return trust_context.trusted(name, own_key, own=True)
    peer = trust_context.peers.get(name)
    by_named, by_bound = signed_by(attestation, peer.key if peer else None)
    return trust_context.trusted(name, peer.key if peer and by_bound else _named_key(attestation) if by_named else None)
