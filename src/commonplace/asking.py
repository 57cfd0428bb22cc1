"""Asking another agent what it remembers: MRP's requester, which believes only what it has checked.

>>> async with Peer("http://127.0.0.1:8420", agent="assistant") as peer:
...     request = question("alice", "what do you know about pruning?", now=system_clock())
...     response = await peer.request(request)
...     examined = examine(request, response, now=system_clock(), known_key=lambda agent: None)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from commonplace.dialects.mrp import Mrp, signatures
from commonplace.dialects.mrp.examining import Examined, examine
from commonplace.dialects.mrp.messages import SCHEMAS, VERSION, Document, new_id
from commonplace.wire.errors import Fault, Unavailable
from commonplace.wire.http_client import JsonClient
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check

CHECKS = ("signature", "evidence", "vouches", "freshness", "consistency")
MAX_BYTES = 32 * 1024 * 1024
TIMEOUT_SECONDS = 60.0


class Peer:
    """A server that speaks MRP, and the agent of it that is asked."""

    def __init__(
        self, url: str, token: str | None = None, *, agent: str | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        base = url.rstrip("/").removesuffix("/request").removesuffix("/mrp")
        self._client = JsonClient(base, token, timeout, connections=4, max_bytes=MAX_BYTES)
        self.agent = agent

    async def request(self, document: Document) -> Any:
        return await self._client.call("POST", self._path("request"), document)

    async def verify(self, document: Document) -> Any:
        return await self._client.call("POST", self._path("verify"), document)

    async def vouch(self, vouch: Document) -> Any:
        return await self._client.call("POST", "/mrp/vouches", {"vouch": vouch})

    async def vouches(self, subject: str) -> Any:
        return await self._client.call("GET", f"/mrp/vouches?{urlencode({'subject': subject})}")

    def _path(self, operation: str) -> str:
        return f"/mrp/{operation}?{urlencode({'agent': self.agent})}" if self.agent else f"/mrp/{operation}"

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()


def question(
    requester: str, natural: str, *, now: int, structured: Mapping[str, Any] | None = None,
    preferences: Mapping[str, Any] | None = None, ttl_seconds: int | None = None,
) -> Document:  # fmt: skip
    """A MEMORY_REQUEST that asks for a signed answer."""
    header: Document = {"request_id": new_id(), "timestamp": iso(now)}
    if ttl_seconds is not None:
        header["ttl_seconds"] = ttl_seconds
    query: Document = {"natural": natural} if natural else {}
    if structured:
        query["structured"] = dict(structured)
    request: Document = {
        "$schema": f"{SCHEMAS}request-v01.json", "type": "memory_request", "version": VERSION, "header": header,
        "requester": {"agent_id": requester}, "query": query,
        "response_preferences": {"sign_response": True, **(preferences or {})},
    }  # fmt: skip
    check("mrp/request", request)
    return request


def verification(requester: str, result: Mapping[str, Any], *, now: int) -> Document:
    """A MEMORY_VERIFY about one result, as it was received."""
    return {
        "$schema": f"{SCHEMAS}verify-v01.json", "type": "memory_verify", "version": VERSION,
        "header": {"verify_id": new_id(), "timestamp": iso(now)}, "requester": {"agent_id": requester},
        "target": {
            "memory_id": result["memory_id"],
            "attestation_hash": signatures.attestation_hash(result["attestation"]),
        },
        "checks": list(CHECKS),
    }  # fmt: skip


def vouch_for(
    voucher: str, subject: str, *, domain: str, statement: str, level: str, now: int, private: str,
    subject_key: str | None = None, context: str | None = None, refs: Sequence[str] = (),
    confidence: tuple[str, str] | None = None, valid_until: str | None = None,
) -> Document:  # fmt: skip
    """A signed vouch-v1."""
    about: Document = {"agent_id": subject} | ({"public_key": subject_key} if subject_key else {})
    vouch: Document = {
        "id": new_id(), "created_at": iso(now), "voucher": {"agent_id": voucher}, "subject": about,
        "claim": {"domain": domain, "statement": statement, "level": level},
    }  # fmt: skip
    if context or refs:
        vouch["evidence"] = {"context": context or "", "interaction_refs": list(refs)}
    if confidence is not None:
        vouch["confidence"] = {"level": confidence[0], "reason": confidence[1]}
    if valid_until is not None:
        vouch["scope"] = {"valid_until": valid_until}
    check("mrp/vouch-v1", vouch)
    return signatures.sign_vouch(vouch, private)


@dataclass(slots=True)
class Heard:
    """One question, its answer, and what was found out about it; the lists have an element for each result."""

    request: Document
    response: Document
    examined: Examined
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
    peer: Peer, request: Document, *, private: str | None = None, pin: str | None = None,
    known_keys: Mapping[str, str] | None = None,
) -> Heard:  # fmt: skip
    """The answer to a request, signed with our key first where there is one, and examined.

    An answer that is not what its responder signed is never given to anyone: it is refused.
    """
    sent = signatures.sign_request(request, private) if private else request
    response = await peer.request(sent)
    examined = examine(
        sent, response, now=system_clock(), known_key=(known_keys or {}).get, pin=pin, responder=peer.agent
    )
    if examined.problem is not None:
        raise Unavailable(f"{examined.problem}: nothing was kept and nothing of it is shown")
    return Heard(sent, response, examined)


async def verify(peer: Peer, heard: Heard, *, private: str | None = None) -> None:
    """Asks the responder about each result again, and notes what it recommends, or why it would not say."""
    requester = heard.request["requester"]["agent_id"]

    async def one(result: Document) -> Document:
        document = verification(requester, result, now=system_clock())
        if private:
            document = signatures.sign_request(document, private)
        try:
            answer = await peer.verify(document)
        except Unavailable:
            raise
        except Fault as refusal:
            return refusal.to_wire()
        try:
            check("mrp/verify-result", answer)
        except Fault as wrong:
            raise Unavailable(f"the answer is not a valid VERIFY_RESULT ({wrong.message})") from None
        if answer["header"]["verify_id"] != document["header"]["verify_id"]:
            raise Unavailable("the answer is to another verification")
        found: Document = answer
        return found

    heard.verifications = list(await asyncio.gather(*(one(result) for result in heard.response["results"])))


async def keep(mrp: Mrp, heard: Heard, *, agent: str | None = None, share_with: list[str] | None = None) -> list[str]:
    """Keeps what is verified as received memories; for each result that is not kept, why."""
    reasons: list[str] = []
    heard.kept = []
    for place, (result, verdict) in enumerate(zip(heard.response["results"], heard.examined.verdicts, strict=True)):
        kept, reason = None, ""
        advice = heard.verifications[place] if heard.verifications else None
        if not heard.examined.signed:
            reason = "the answer is not signed"
        elif verdict.state != "verified":
            reason = verdict.detail
        elif advice is not None and "error" in advice:
            reason = f"its responder would not verify it: {advice['error']['message']}"
        elif advice is not None and advice["aggregate"]["recommendation"] == "reject":
            reason = "its responder recommends to reject it"
        else:
            try:
                kept = await mrp.keep(
                    result["attestation"], from_agent=heard.responder, agent=agent, public_key=verdict.key,
                    share_with=share_with,
                )  # fmt: skip
            except Fault as fault:
                reason = fault.message
        heard.kept.append(kept)
        reasons.append(reason)
    return reasons
