"""How far whoever wrote an attestation is trusted: by the key it is signed with, and by who vouches for it. Pure."""

from __future__ import annotations

from commonplace.dialects.mrp import attestations
from commonplace.dialects.mrp.messages import Document
from commonplace.engine import TrustContext, VouchedTrust, author_level


def level(trust_context: TrustContext, attestation: Document, own_key: str | None) -> int:
    """0 to 3; `own_key` is ours where the attestation is, and need not be signed yet."""
    peer = trust_context.peers.get(attestation["agent"])
    by_named, by_bound = attestations.signed_by(attestation, peer.key if peer else None)
    vouched = vouched_for(trust_context, attestation, own_key) is not None
    own = own_key is not None
    return author_level(own=own, peer=peer, signed=by_named, by_bound_key=by_bound, vouched=vouched)


def vouched_for(trust_context: TrustContext, attestation: Document, own_key: str | None = None) -> VouchedTrust | None:
    """What vouches make of its author; one that names a key says nothing of who signs with another."""
    name = attestation["agent"]
    if name not in trust_context.vouched:
        return None
    if own_key is not None:
        return trust_context.trusted(name, own_key)
    peer = trust_context.peers.get(name)
    by_named, by_bound = attestations.signed_by(attestation, peer.key if peer else None)
    named = attestation["signatures"]["public_key"] if by_named else None
    return trust_context.trusted(name, peer.key if peer and by_bound else named)
