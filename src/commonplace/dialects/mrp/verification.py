"""MEMORY_VERIFY → VERIFY_RESULT: five checks of one memory, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.dialects.mrp import attestations, messages, signatures
from commonplace.dialects.mrp.messages import CHECKS, Document, Responder
from commonplace.engine import Engine, Requester, RequestIdReused
from commonplace.wire import keys
from commonplace.wire.errors import Fault
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS, iso, milliseconds
from commonplace.wire.validate import check

#: How much each check weighs in the score.
WEIGHTS = {"signature": 0.3, "evidence": 0.2, "vouches": 0.2, "freshness": 0.15, "consistency": 0.15}
ACCEPT, REJECT = 0.75, 0.4
#: For how many days a memory of each category is fresh; foundations do not age.
FRESH_DAYS = {"foundational": None, "operational": 365, "experimental": 90, "ephemeral": 30}
_BLANK: dict[str, Document] = {
    "signature": {"detail": "not asked for"},
    "evidence": {"accessible_count": 0, "total_count": 0},
    "vouches": {"vouch_count": 0, "trusted_vouchers": []},
    "freshness": {"age_days": 0},
    "consistency": {"conflicts": []},
}
_LOOKED_UP = 100  # references of one memory; each is a search of its own
_DECLINED = "this verification is declined"
_CLAIM_ONLY = "of it only claim and salience are signed,"
_UNKNOWN = "there is no such memory here for you"
_CHANGED = "the hash is not that of the attestation as it is held here: it was changed, there or here"


async def answer(responder: Responder, document: Any) -> Document:
    check("mrp/verify", document)
    engine, header = responder.engine, document["header"]
    messages.check_id(header["verify_id"], "header.verify_id")
    until = messages.check_time(header, engine.clock())
    requester = await responder.requester(document)
    if requester.declined:
        return _rejected(responder, document, _DECLINED)
    body = keys.bytes_of({"request": document, "agent": responder.agent})

    async def verified() -> tuple[Document, list[Memory]]:
        return await _verified(responder, requester, document)

    try:
        return await engine.peers.answer_once(requester, ("verify", header["verify_id"], body), until, verified)
    except RequestIdReused:
        return _rejected(responder, document, _DECLINED)


async def _verified(responder: Responder, requester: Requester, document: Document) -> tuple[Document, list[Memory]]:
    """The result, and the memory it is about, where the requester may see it."""
    engine, target = responder.engine, document["target"]
    memory = await engine.peers.find(requester, target["memory_id"], responder.agent)
    if memory is None:
        return _rejected(responder, document, _UNKNOWN), []
    results = _skipped()
    pair = engine.peers.identity.keypair()
    attestation, own = attestations.signed(memory, pair.private), attestations.verbatim(memory) is None
    whole = own or attestations.covered(attestation, requester.context.peers) == "whole"
    if not signatures.same_hash(attestation, target["attestation_hash"]):
        # What the caller holds is not this memory as it is, whatever else may be true of it.
        results["signature"] = {"status": "fail", "detail": _CHANGED}
        return _result(responder, document, results, 0.0, "reject"), [memory]
    strength = 1.0
    for name in _wanted(document):
        if name == "signature":
            results[name] = _signature(engine, attestation, requester, own=own)
        elif name == "evidence":
            results[name] = await _evidence(responder, attestation, requester, whole=whole)
        elif name == "vouches":
            results[name], strength = _vouches(attestation, requester, pair.public if own else None)
        elif name == "freshness":
            results[name] = _freshness(attestation, engine.clock(), whole=whole)
        else:
            results[name] = await _consistency(engine, memory, attestation, requester)
    return _result(responder, document, results, *aggregate(results, strength)), [memory]


def aggregate(results: Mapping[str, Document], strength: float = 1.0) -> tuple[float, str]:
    """The score and what to do: see docs/mrp.md. A check that was skipped counts neither way. Pure."""
    made = {name: results[name]["status"] for name in CHECKS if results[name]["status"] != "skip"}
    weight = sum(WEIGHTS[name] for name in made)
    if not weight:
        return 0.0, "accept_with_caution"
    worth = {name: (strength if name == "vouches" else 1.0) if made[name] == "pass" else 0.0 for name in made}
    score = round(sum(WEIGHTS[name] * worth[name] for name in made) / weight, 4)
    if made.get("signature") == "fail" or score < REJECT:
        return score, "reject"
    sure = score >= ACCEPT and "fail" not in made.values() and made.get("signature") == "pass"
    return score, "accept" if sure else "accept_with_caution"


def _signature(engine: Engine, attestation: Document, requester: Requester, *, own: bool) -> Document:
    held = attestation.get("signatures") or {}
    if not held.get("agent_signature"):
        return {"status": "skip", "detail": "the hash agrees; its author did not sign it"}
    if own:
        return {"status": "pass", "detail": "the hash agrees; signed by this server for its own agent"}
    name = attestation["agent"]
    peer = requester.context.peers.get(name)
    ours = [engine.peers.identity.keypair().public, *engine.peers.identity.retired()]
    by_named, by_bound = attestations.signed_by(attestation, peer.key if peer else None)
    part = "signed" if attestations.covered(attestation, requester.context.peers) == "whole" else _CLAIM_ONLY
    if by_bound:
        return {"status": "pass", "detail": f"the hash agrees; {part} with the key bound to {name} here"}
    if peer is not None and peer.key is not None:
        return {"status": "fail", "detail": f"it is not signed with the key bound to {name} here"}
    if by_named and held.get("public_key") in ours:
        return {"status": "pass", "detail": f"the hash agrees; {part} by this server"}
    if by_named:
        return {"status": "skip", "detail": f"the hash agrees; {part} with a key that is not known as {name}'s here"}
    if held.get("public_key"):
        return {"status": "fail", "detail": "its signature does not match"}
    return {"status": "skip", "detail": f"the hash agrees; it is signed, but no key of {name} is known here"}


async def _evidence(responder: Responder, attestation: Document, requester: Requester, *, whole: bool) -> Document:
    """References to memories here are looked up, the first hundred; addresses elsewhere are never fetched. A chain that
    its author has not signed leads nowhere."""
    provenance = attestation["provenance"]
    references, chain = list(attestation["claim"].get("references") or ()), list(provenance.get("chain") or ())
    witnesses = provenance.get("witnesses") or ()
    total, found, elsewhere = len(references) + len(chain) + len(witnesses), 0, 0
    if whole:
        references += chain
    else:
        elsewhere += len(chain)
    for place, reference in enumerate(references):
        name = reference.get("attestation") if isinstance(reference, dict) else reference
        if place >= _LOOKED_UP or not isinstance(name, str) or "/" in name or ":" in name:
            elsewhere += 1
        elif await responder.engine.peers.find(requester, name, responder.agent) is not None:
            found += 1
    peers = requester.context.peers
    for witness in witnesses:
        peer = peers.get(witness["agent"])
        if peer is None or peer.key is None or not witness.get("signature"):
            elsewhere += 1
        elif attestations.has_signed(witness, attestation, peers):
            found += 1
    status = "pass" if found else "skip" if total and elsewhere == total else "fail"
    detail = "there is none" if not total else f"{found} of {total} can be looked at here; {elsewhere} lie elsewhere"
    return {"status": status, "accessible_count": found, "total_count": total, "detail": detail}


def _vouches(attestation: Document, requester: Requester, own_key: str | None) -> tuple[Document, float]:
    name = attestation["agent"]
    trusted = attestations.vouched_for(requester.context, attestation, own_key)
    vouchers = sorted(trusted.vouchers) if trusted else []
    detail = f"{len(vouchers)} trusted here vouch for {name}" if vouchers else f"nobody trusted here vouches for {name}"
    status = "pass" if vouchers else "fail"
    document = {"status": status, "vouch_count": len(vouchers), "trusted_vouchers": vouchers, "detail": detail}
    return document, trusted.strength if trusted else 1.0


def _freshness(attestation: Document, now: int, *, whole: bool) -> Document:
    if not whole:
        return {"status": "skip", "age_days": 0, "detail": "when it was made is not signed"}
    try:
        made = milliseconds(attestation["created_at"], "created_at")
    except Fault:
        return {"status": "skip", "age_days": 0, "detail": "when it was made cannot be read"}
    if made > now + messages.AHEAD_MS:
        return {"status": "fail", "age_days": 0, "detail": "it is dated in the future"}
    age = max(now - made, 0) / DAY_MS
    category = attestation["salience"]["category"]
    most = FRESH_DAYS[category]
    fresh = most is None or age <= most
    detail = f"{category} memories are fresh for {most} days" if most is not None else "foundations do not age"
    return {"status": "pass" if fresh else "fail", "age_days": round(age, 4), "detail": detail}


async def _consistency(engine: Engine, memory: Memory, attestation: Document, requester: Requester) -> Document:
    """What replaces it, and what the knowledge graph says now where it says something else: as far as one may see."""
    conflicts = await engine.peers.replacements(requester, memory)
    detail = "a newer memory replaces it" if conflicts else "nothing here contradicts it"
    status = "fail" if conflicts else "pass"
    stated = _stated(memory, attestation)
    if stated is not None and requester.trust.sees == "all":
        for triple in await engine.graph.query(requester.reader, memory.agent_id, stated[0], predicate=stated[1]):
            if triple.object.strip().casefold() != stated[2].strip().casefold():
                status = "fail"
                detail = f"of {stated[0]}, {stated[1]} something else is stated now"
                if triple.memory_id and triple.memory_id != memory.id:
                    conflicts.append(triple.memory_id)
    return {"status": status, "conflicts": list(dict.fromkeys(conflicts)), "detail": detail}


def _stated(memory: Memory, attestation: Document) -> tuple[str, str, str] | None:
    """The (subject, predicate, object) a memory states, in its metadata or its claim, or under `triple` in either."""
    for said in (memory.metadata, attestation["claim"]):
        for place in (said.get("triple"), said):
            if isinstance(place, dict):
                found = [place.get(name) for name in ("subject", "predicate", "object")]
                if all(isinstance(each, str) and each.strip() for each in found):
                    return str(found[0]), str(found[1]), str(found[2])
    return None


def _wanted(document: Document) -> list[str]:
    return [name for name in CHECKS if name in document.get("checks", CHECKS)]


def _skipped() -> dict[str, Document]:
    return {name: {"status": "skip", **blank} for name, blank in _BLANK.items()}


def _rejected(responder: Responder, document: Document, why: str) -> Document:
    """Everything asked for fails; nothing is said of any memory."""
    results = _skipped()
    for name in _wanted(document):
        results[name]["status"] = "fail"
    results["signature"] = {"status": "fail", "detail": why}
    return _result(responder, document, results, 0.0, "reject")


def _result(responder: Responder, document: Document, results: Document, score: float, recommendation: str) -> Document:
    header = {"verify_id": document["header"]["verify_id"], "timestamp": iso(responder.engine.clock())}
    aggregate = {"trust_score": score, "recommendation": recommendation}
    return messages.message("verify_result", header, results=results, aggregate=aggregate)
