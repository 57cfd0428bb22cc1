"""What a requester finds out about an answer without asking anyone: pure checks over the documents and known keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from commonplace.dialects.mrp import signatures
from commonplace.dialects.mrp.messages import Document
from commonplace.wire.errors import ValidationError
from commonplace.wire.keys import fingerprint
from commonplace.wire.times import milliseconds
from commonplace.wire.validate import check

#: Agent → the key it is known by here.
KnownKeys = Mapping[str, str]

#: How far the clocks of two machines may be apart.
SKEW_MS = 120_000
_WITHOUT_RESULTS = ("no_match", "declined", "error")


@dataclass(slots=True, frozen=True)
class Verdict:
    """What is known of one result: `key` signed all of it or (`claim_verified`) its claim and salience alone;
    `known_as` is whose key it is, as far as we know: its author's, or the responder's, who signs for its agents."""

    state: Literal["verified", "claim_verified", "unsigned", "wrong"]
    detail: str
    key: str | None = None
    known_as: str | None = None

    def to_wire(self) -> Document:
        wire: Document = {"state": self.state, "detail": self.detail, "public_key": self.key}
        wire["key_known"] = self.known_as is not None
        return wire if self.known_as is None else {**wire, "known_as": self.known_as}


@dataclass(slots=True)
class ResponseCheck:
    """What is known of an answer. With a problem none of it may be believed."""

    problem: str | None = None
    signed: bool = False
    known: bool = False  # signed with a key that we knew beforehand
    verdicts: list[Verdict] = field(default_factory=list)

    def to_wire(self) -> Document:
        verdicts = [verdict.to_wire() for verdict in self.verdicts]
        return {"problem": self.problem, "signed": self.signed, "key_known": self.known, "results": verdicts}


def check_response(
    request: Document,
    response: Any,
    *,
    now: int,
    known: KnownKeys,
    pin: str | None = None,
    responder: str | None = None,
) -> ResponseCheck:
    """An answer against its request: its form, its id, its time, and every signature and hash in it.

    `responder` is the agent that was asked, `pin` the key that must have signed; else it is the one known for whoever
    answers, else whatever key the answer names.
    """
    found = ResponseCheck()
    try:
        check("mrp/response", response)
        expected = pin or known.get(response["responder"]["agent_id"])
        found.problem = _mismatch(request, response, now, responder)
        if found.problem is None:
            _check_signature(response, found, expected)
        if found.problem is None:
            key = expected if found.signed else None
            found.verdicts = [_verdict(result, response, known, key) for result in response["results"]]
    except ValidationError as wrong:
        found.problem = f"the answer is not a valid MEMORY_RESPONSE ({wrong.message})"
    return found


def _mismatch(request: Document, response: Document, now: int, responder: str | None) -> str | None:
    if response["header"]["request_id"] != request["header"]["request_id"]:
        return "the answer is to another request"
    if responder is not None and response["responder"]["agent_id"] != responder:
        return "the answer is by another agent than the one asked"
    asked = milliseconds(request["header"]["timestamp"], "header.timestamp")
    answered = milliseconds(response["header"]["timestamp"], "header.timestamp")
    if answered < asked - SKEW_MS:
        return "the answer is older than the question: it may be a recording of another one"
    if answered > now + SKEW_MS:
        return "the answer's time is in the future; compare the clocks of both machines"
    results, code = response["results"], response["status"]["code"]
    if results and code in _WITHOUT_RESULTS:
        return f"the answer's status is {code}, yet it carries results"
    if not results and code == "success":
        return "the answer's status is success, yet it carries no results"
    if "meta" in response and response["meta"]["returned"] != len(results):
        return "the answer does not carry as many results as it says"
    return None


def _check_signature(response: Document, found: ResponseCheck, expected: str | None) -> None:
    if "signature" not in response:
        if expected is not None and response["results"]:
            found.problem = "the answer is not signed, though its responder's key is known"
        return
    given = response["responder"].get("public_key")
    if expected is not None and given not in (None, expected):
        found.problem = f"the answer is signed with another key ({fingerprint(given)}) than the expected one"
    elif not signatures.verify_response(response, expected or given):
        found.problem = "the answer's signature does not match"
    else:
        found.signed, found.known = True, expected is not None


def _verdict(result: Document, response: Document, known: KnownKeys, responder_key: str | None) -> Verdict:
    """`responder_key` is the responder's, where it is known beforehand and signed the answer."""
    attestation = result["attestation"]
    signed = attestation.get("signatures") or {}
    stated = signed.get("hash")
    if stated and not signatures.same_hash(attestation, stated):
        return Verdict("wrong", "its hash is not the hash of what it says")
    if not signed.get("agent_signature"):
        return Verdict("unsigned", "its author has not signed it")
    author = attestation["agent"]
    expected = known.get(author)
    given = signed.get("public_key")
    if given is None and author == response["responder"]["agent_id"]:
        given = response["responder"].get("public_key")
    key = expected or given
    if key is None:
        return Verdict("unsigned", f"it is signed, but the key of {author} is not known")
    try:
        part = signatures.covered(attestation, key)
        if part is None:
            return Verdict("wrong", "its signature does not match", key)
    except ValidationError as wrong:
        return Verdict("wrong", f"its signature cannot be checked: {wrong.message}", key)
    known_as = author if expected else str(response["responder"]["agent_id"]) if key == responder_key else None
    if part == "claim" and not stated:
        return Verdict("unsigned", "it carries no hash, so only its claim is covered", key, known_as)
    if part == "claim":
        detail = f"claim and salience are signed with the key {fingerprint(key)}; who made it, when and how is not"
        return Verdict("claim_verified", detail, key, known_as)
    return Verdict("verified", f"signed with the key {fingerprint(key)}", key, known_as)
