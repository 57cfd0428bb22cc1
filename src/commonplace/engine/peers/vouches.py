"""Vouches: one agent's word for another, kept as given, and how far such words carry. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from commonplace.engine.peers.trust import Peer
from commonplace.wire import keys
from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.times import milliseconds

DECAY = 0.8  # of trust, for each hop away from a voucher of ours
DEEPEST = 3  # hops


@dataclass(slots=True, frozen=True)
class StoredVouch:
    """A vouch as it came. `sent_in` when the voucher itself, by a token of its own, handed it in."""

    document: dict[str, Any]
    sent_in: bool = False

    @property
    def voucher(self) -> str:
        return str(self.document["voucher"]["agent_id"])

    @property
    def subject(self) -> str:
        return str(self.document["subject"]["agent_id"])

    def over(self, now: int) -> bool:
        until = (self.document.get("scope") or {}).get("valid_until")
        return bool(until) and milliseconds(until, "scope.valid_until", end_of_day=True) <= now

    def signed_with(self, key: str | None) -> bool:
        signatures = self.document.get("signatures") or {}
        value = signatures.get("voucher_signature")
        if not key or not value:
            return False
        how = signatures.get("algorithm") or keys.algorithm_of(key)
        return _verified(key, keys.bytes_of(self.document, "signatures"), value, how)


@lru_cache(4096)
def _verified(key: str, message: bytes, value: str, how: str) -> bool:
    try:
        return keys.verify(key, message, value, how)
    except Fault:
        return False


@dataclass(slots=True)
class VouchedTrust:
    """What vouches make of one agent: `strength` of the best chain, and whose words carry."""

    strength: float = 0.0
    vouchers: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)  # the vouchers know it by these; empty when none said


def chains(kept: Sequence[StoredVouch], peers: Mapping[str, Peer], now: int) -> dict[str, VouchedTrust]:
    """Every agent that valid vouches lead to, from the vouchers bound here, at most DEEPEST hops away. Pure.

    A vouch counts when its voucher is trusted already and it is shown to be the voucher's own: signed with the key
    bound to it here or named by who vouched for it; or, if no key of it is known, handed in by it.
    """
    found: dict[str, VouchedTrust] = {}
    known_keys: dict[str, set[str]] = {name: {peer.key} for name, peer in peers.items() if peer.key}
    reached = {name for name, peer in peers.items() if peer.voucher}
    strength = 1.0
    for _ in range(DEEPEST):
        strength *= DECAY
        fresh: set[str] = set()
        for vouch in kept:
            if vouch.voucher not in reached or vouch.voucher == vouch.subject or vouch.over(now):
                continue
            usable = known_keys.get(vouch.voucher)
            if not (any(vouch.signed_with(key) for key in usable) if usable else vouch.sent_in):
                continue
            trusted = found.setdefault(vouch.subject, VouchedTrust())
            if key := vouch.document["subject"].get("public_key"):
                trusted.keys.add(key)
            if vouch.voucher not in trusted.vouchers:
                trusted.strength = max(trusted.strength, strength)
                trusted.vouchers.append(vouch.voucher)
                fresh.add(vouch.subject)
        for subject in fresh:
            if subject not in peers or peers[subject].key is None:
                known_keys.setdefault(subject, set()).update(found[subject].keys)
        reached = fresh
    return found


def counts(kept: StoredVouch, others: Sequence[StoredVouch], peers: Mapping[str, Peer], now: int) -> bool:
    """Whether this very vouch does, and not just an earlier one of the same voucher's."""
    alone = [other for other in others if (other.voucher, other.subject) != (kept.voucher, kept.subject)]
    trusted = chains([*alone, kept], peers, now).get(kept.subject)
    return trusted is not None and kept.voucher in trusted.vouchers


def check(kept: StoredVouch) -> None:
    """What can be wrong with a vouch that follows its schema."""
    document = kept.document
    milliseconds(document["created_at"], "vouch.created_at")
    if until := (document.get("scope") or {}).get("valid_until"):
        milliseconds(until, "vouch.scope.valid_until", end_of_day=True)
    for side in ("voucher", "subject"):
        if key := document[side].get("public_key"):
            keys.check_public(key)
    signatures = document.get("signatures") or {}
    stated = signatures.get("hash")
    if stated and stated.removeprefix("sha256:").lower() != sha256_hex(keys.bytes_of(document, "signatures")):
        raise ValidationError("the hash is not this vouch's", field="vouch.signatures.hash")
    own_key = document["voucher"].get("public_key")
    if signatures.get("voucher_signature"):
        keys.decode(signatures["voucher_signature"], "vouch.signatures.voucher_signature")
        if own_key and not kept.signed_with(own_key):
            raise ValidationError(
                "the signature is not made with voucher.public_key", field="vouch.signatures.voucher_signature"
            )
