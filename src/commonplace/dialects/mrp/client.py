"""Asking another agent what it remembers: MRP's requester, which believes only what it has checked.

>>> async with PeerServer("http://127.0.0.1:8420", agent="assistant") as peer:
...     request = question("alice", "what do you know about pruning?", now=system_clock())
...     answer = await ask(peer, request)
...     believed = [verdict.state == "verified" for verdict in answer.examined.verdicts]
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from commonplace.dialects.mrp import signatures
from commonplace.dialects.mrp.messages import CHECKS, Document, memory_request, message, new_id
from commonplace.dialects.mrp.response_check import KnownKeys, ResponseCheck, check_response
from commonplace.wire.errors import Fault, Forbidden, Unavailable
from commonplace.wire.http_client import JsonClient
from commonplace.wire.keys import fingerprint
from commonplace.wire.origins import origin_of
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check

if TYPE_CHECKING:
    from commonplace.dialects.mrp import Mrp

MAX_BYTES = 32 * 1024 * 1024
TIMEOUT_SECONDS = 60.0


class PeerServer:
    """A server that speaks MRP, and the agent of it that is asked."""

    def __init__(
        self, url: str, token: str | None = None, *, agent: str | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        base = url.rstrip("/").removesuffix("/request").removesuffix("/mrp")
        self.origin = origin_of(base)
        self._client = JsonClient(base, token, timeout, connections=4, max_bytes=MAX_BYTES)
        self.agent = agent

    async def request(self, document: Document) -> Any:
        return await self._client.call("POST", self._path("request"), document)

    async def verify(self, document: Document) -> Any:
        return await self._client.call("POST", self._path("verify"), document)

    async def vouch(self, vouch: Document) -> Any:
        return await self._client.call("POST", "/mrp/vouches", {"vouch": vouch})

    def _path(self, operation: str) -> str:
        return f"/mrp/{operation}?{urlencode({'agent': self.agent})}" if self.agent else f"/mrp/{operation}"

    async def __aenter__(self) -> PeerServer:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._client.close()


def question(
    requester: str,
    natural: str,
    *,
    now: int,
    structured: Document | None = None,
    preferences: Document | None = None,
    audience: str | None = None,
) -> Document:
    """A MEMORY_REQUEST that asks for a signed answer, for `audience` (its key or its address), which `ask` adds."""
    header = {"request_id": new_id(), "timestamp": iso(now)}
    preferences = {"sign_response": True, **(preferences or {})}
    request = memory_request(header, requester, natural, structured or {}, preferences)
    if audience is not None:
        request["audience"] = audience
    check("mrp/request", request)
    return request


def verification(requester: str, result: Document, *, now: int, audience: str | None = None) -> Document:
    """A MEMORY_VERIFY about one result, as it was received."""
    request = message(
        "memory_verify",
        {"verify_id": new_id(), "timestamp": iso(now)},
        requester={"agent_id": requester},
        target={
            "memory_id": result["memory_id"],
            "attestation_hash": signatures.attestation_hash(result["attestation"]),
        },
        checks=list(CHECKS),
    )
    return request if audience is None else {**request, "audience": audience}


def vouch_for(
    voucher: str,
    subject: str,
    *,
    domain: str,
    statement: str,
    level: str,
    now: int,
    private: str,
    subject_key: str | None = None,
    context: str | None = None,
    refs: Sequence[str] = (),
    confidence: tuple[str, str] | None = None,
    valid_until: str | None = None,
) -> Document:
    """A signed vouch-v1."""
    vouch: Document = {
        "id": new_id(),
        "created_at": iso(now),
        "voucher": {"agent_id": voucher},
        "subject": {"agent_id": subject} | ({"public_key": subject_key} if subject_key else {}),
        "claim": {"domain": domain, "statement": statement, "level": level},
    }
    if context or refs:
        vouch["evidence"] = {"context": context or "", "interaction_refs": list(refs)}
    if confidence is not None:
        vouch["confidence"] = {"level": confidence[0], "reason": confidence[1]}
    if valid_until is not None:
        vouch["scope"] = {"valid_until": valid_until}
    check("mrp/vouch-v1", vouch)
    return signatures.sign_vouch(vouch, private)


@dataclass(slots=True)
class CheckedAnswer:
    """One question, its answer, and what was found out about it; the lists have an element for each result."""

    request: Document
    response: Document
    examined: ResponseCheck
    verifications: list[Document] = field(default_factory=list)  # VERIFY_RESULT, or {error} when it was refused
    kept: list[Document | None] = field(default_factory=list)

    @property
    def responder(self) -> str:
        return str(self.response["responder"]["agent_id"])

    def to_wire(self) -> Document:
        shown: Document = {"request": self.request, "response": self.response, "examined": self.examined.to_wire()}
        if self.verifications:
            shown["verifications"] = self.verifications
        if self.kept:
            shown["kept"] = self.kept
        return shown


async def ask(
    peer: PeerServer,
    request: Document,
    *,
    private: str | None = None,
    pin: str | None = None,
    known_keys: KnownKeys | None = None,
) -> CheckedAnswer:
    """The answer to a request, signed with our key first where there is one, and checked.

    It is sent for the responder alone: for the key it is known by, else for the address it is asked at, so that it can
    send it on to nobody. An answer that is not what its responder signed is never given to anyone: it is refused.
    """
    key = pin or ((known_keys or {}).get(peer.agent) if peer.agent else None)
    request = {"audience": key or peer.origin, **request}
    sent = signatures.sign_request(request, private) if private else request
    try:
        response = await peer.request(sent)
    except Forbidden as refusal:
        if key is None:
            raise
        holder = f"{peer.origin} does not answer as the holder of the expected key {fingerprint(key)}"
        raise Unavailable(f"{holder}: nothing was kept ({refusal.message})") from None
    found = check_response(sent, response, now=system_clock(), known=known_keys or {}, pin=pin, responder=peer.agent)
    if found.problem is not None:
        raise Unavailable(f"{found.problem}: nothing was kept and nothing of it is shown")
    return CheckedAnswer(sent, response, found)


async def verify(peer: PeerServer, answer: CheckedAnswer, *, private: str | None = None) -> None:
    """Asks the responder about each result again, and notes what it recommends, or why it would not say."""
    checks = (_verify_result(peer, answer.request, result, private) for result in answer.response["results"])
    answer.verifications = list(await asyncio.gather(*checks))


async def _verify_result(peer: PeerServer, asked: Document, result: Document, private: str | None) -> Document:
    """As whoever asked, and for the same audience."""
    requester, audience = asked["requester"]["agent_id"], asked.get("audience")
    request = verification(requester, result, now=system_clock(), audience=audience)
    if private:
        request = signatures.sign_request(request, private)
    try:
        verdict: Document = await peer.verify(request)
    except Unavailable:
        raise
    except Fault as refusal:
        return refusal.to_wire()
    try:
        check("mrp/verify-result", verdict)
    except Fault as wrong:
        raise Unavailable(f"the answer is not a valid VERIFY_RESULT ({wrong.message})") from None
    if verdict["header"]["verify_id"] != request["header"]["verify_id"]:
        raise Unavailable("the answer is to another verification")
    return verdict


async def keep(
    mrp: Mrp,
    answer: CheckedAnswer,
    *,
    agent: str | None = None,
    share_with: list[str] | None = None,
    approval_required: bool = False,
) -> list[str]:
    """Keeps what is signed as received memories; for each result that is not kept, why."""
    reasons: list[str] = []
    answer.kept = []
    for place, result in enumerate(answer.response["results"]):
        kept, reason = None, _reason_against(answer, place)
        if not reason:
            sender, key = answer.responder, answer.examined.verdicts[place].key
            try:
                kept = await mrp.keep(
                    result["attestation"], from_agent=sender, agent=agent, public_key=key, share_with=share_with,
                    approval_required=approval_required,
                )  # fmt: skip
            except Fault as fault:
                reason = fault.message
        answer.kept.append(kept)
        reasons.append(reason)
    return reasons


def _reason_against(answer: CheckedAnswer, place: int) -> str:
    """Why a result may not be kept; nothing where it may."""
    verdict = answer.examined.verdicts[place]
    advice = answer.verifications[place] if answer.verifications else None
    if not answer.examined.signed:
        return "the answer is not signed"
    if verdict.state not in ("verified", "claim_verified"):
        return verdict.detail
    if advice is not None and "error" in advice:
        return f"its responder would not verify it: {advice['error']['message']}"
    if advice is not None and advice["aggregate"]["recommendation"] == "reject":
        return "its responder recommends to reject it"
    return ""
