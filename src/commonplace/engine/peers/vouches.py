"""Vouches: one agent's word for another, kept as given, and how far such words carry. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from commonplace.engine.peers.trust import Peer, folded_name
from commonplace.wire import keys
from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.times import iso, milliseconds

DECAY = 0.8  # of trust, for each hop away from a voucher of ours
DEEPEST = 3  # hops
AHEAD_MS = 60_000  # how far in the future a vouch may be dated: clocks differ


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

    @property
    def subject_key(self) -> str | None:
        key: str | None = self.document["subject"].get("public_key")
        return key

    @property
    def made_at(self) -> int:
        return milliseconds(self.document["created_at"], "vouch.created_at")

    def is_valid(self, now: int) -> bool:
        """Not over, not from the future, and about somebody else: another spelling of a name is no other name."""
        own = folded_name(self.voucher) == folded_name(self.subject)
        return not own and not self.is_expired(now) and self.made_at <= now + AHEAD_MS

    def is_expired(self, now: int) -> bool:
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


#: Agent → the key that vouches speak of, None where they give its name alone → what they make of it.
Vouched = dict[str, dict[str | None, VouchedTrust]]


def chains(kept: Sequence[StoredVouch], peers: Mapping[str, Peer], now: int) -> Vouched:
    """Every agent that valid vouches lead to, from the vouchers bound here, at most DEEPEST hops away. Pure.

    A vouch counts when its voucher is trusted already and it is shown to be the voucher's own: signed with the key
    bound to it here or named by who vouched for it; or, if no key of it is bound, handed in by it. It leads further
    only by a key: the one it names or, where it gives a name alone, the one bound to that name.
    """
    found: Vouched = {}
    reached = {name: {peer.key} - {None} for name, peer in peers.items() if peer.voucher}
    strength = 1.0
    for _ in range(DEEPEST):
        strength *= DECAY
        fresh: dict[str, set[str | None]] = {}
        for vouch in kept:
            usable = reached.get(vouch.voucher)
            if usable is None or not vouch.is_valid(now) or vouch.subject_key in usable:
                continue
            if not (any(vouch.signed_with(key) for key in usable) if usable else vouch.sent_in):
                continue
            trusted = found.setdefault(vouch.subject, {}).setdefault(vouch.subject_key, VouchedTrust())
            if vouch.voucher in trusted.vouchers:
                continue
            trusted.strength = max(trusted.strength, strength)
            trusted.vouchers.append(vouch.voucher)
            if key := vouched_key(vouch, peers):
                fresh.setdefault(vouch.subject, set()).add(key)
        reached = fresh
    return found


def vouched_key(vouch: StoredVouch, peers: Mapping[str, Peer]) -> str | None:
    """The key a vouch is for, as far as it counts here: where one is bound to the name, it is that one or none."""
    peer = peers.get(vouch.subject)
    bound = peer.key if peer is not None else None
    if bound is None or vouch.subject_key is None:
        return vouch.subject_key or bound
    return bound if vouch.subject_key == bound else None


def counts(
    kept: StoredVouch, others: Sequence[StoredVouch], peers: Mapping[str, Peer], now: int, own: Collection[str] = ()
) -> bool:
    """Whether this very vouch does, and not just an earlier one of the same voucher's. `own` are the agents here, whose
    key is ours."""
    if vouched_key(kept, peers) is None and kept.subject not in own:
        return False
    alone = [other for other in others if (other.voucher, other.subject) != (kept.voucher, kept.subject)]
    trusted = chains([*alone, kept], peers, now).get(kept.subject, {}).get(kept.subject_key)
    return trusted is not None and kept.voucher in trusted.vouchers


def check(kept: StoredVouch, now: int) -> None:
    """What can be wrong with a vouch that follows its schema."""
    document = kept.document
    if kept.made_at > now + AHEAD_MS:
        sentence = f"the vouch is from the future: here it is {iso(now)}; set the clock, or send the time in UTC"
        raise ValidationError(sentence, field="vouch.created_at")
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
