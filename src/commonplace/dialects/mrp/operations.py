"""MRP for one caller: documents in, documents out."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, TypeVar

from commonplace.dialects.mrp import attestations, requests, verification
from commonplace.dialects.mrp.messages import Document, Responder
from commonplace.engine import MAX_LISTED, Engine, Update, draft_document
from commonplace.wire.errors import Fault, NotFound, SecretLeakage, Unavailable, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import milliseconds
from commonplace.wire.validate import check

T = TypeVar("T")

_TYPES = ("memory_request", "memory_verify")
_AGENT = "default"
_REDACTED = "it holds something that redaction would take out, and a changed attestation would no longer verify"


class Mrp:
    """MRP for one caller. Documents come in as JSON decodes them and go out ready to be encoded.

    `who` is whom a token (or open local mode) stands for; with `authenticated=False` the caller holds no token, and
    `who` says only whose memories may be asked for: what it may see then follows from what its request proves.
    `agent` is the one who answers: `?agent=`, else `[mrp] agent`, else the whole server. `address` is the host and port
    of the socket that the caller has reached, where there is one.
    """

    def __init__(
        self,
        engine: Engine,
        who: Principal,
        *,
        agent: str | None = None,
        authenticated: bool = True,
        address: tuple[str, int] | None = None,
    ) -> None:
        self._engine = engine
        self._who = who = replace(who, dialect=attestations.NAME)
        self._responder = Responder(engine, who, agent or engine.settings.mrp.agent or None, authenticated, address)

    async def handle(self, document: Any) -> Document:
        """Whatever the document's `type` says it is: memory_request or memory_verify."""
        try:
            return await self._handle(document)
        except Fault as fault:
            self._engine.redactor.redact_fault(fault, self._who)  # it may be written to a file
            raise

    async def _handle(self, document: Any) -> Document:
        kind = document.get("type") if isinstance(document, dict) else None
        if kind == "memory_verify":
            return await self.verify(document)
        if kind == "memory_request":
            return await self.request(document)
        wrong = "and is missing" if kind is None else f"not {str(kind)!r:.80}"
        raise ValidationError(f"type must be one of {', '.join(_TYPES)}, {wrong}", field="type")

    async def request(self, document: Any) -> Document:
        """MEMORY_REQUEST → MEMORY_RESPONSE. Raises ValidationError (bad schema, TTL over), Unauthenticated
        (no identity where one is required, wrong signature), RateLimited; all else is a status of the response."""
        return await requests.answer(self._responder, document)

    async def verify(self, document: Any) -> Document:
        """MEMORY_VERIFY → VERIFY_RESULT."""
        return await self._without_details(verification.answer(self._responder, document))

    async def vouch(self, document: Any) -> Document:
        """{vouch: …} → {vouch_id, counted}."""
        return await self._without_details(self._keep_vouch(document))

    async def vouches(
        self, subject: str | None = None, *, limit: int = MAX_LISTED, cursor: str | None = None
    ) -> Document:
        """{vouches: […], next_cursor?} about an agent, else all, as they were given."""
        listing = self._engine.peers.vouches_for(self._who, subject, limit=limit, cursor=cursor)
        vouches, following = await self._without_details(listing)
        return {"vouches": vouches} if following is None else {"vouches": vouches, "next_cursor": following}

    async def keep(
        self,
        attestation: Any,
        *,
        from_agent: str,
        agent: str | None = None,
        public_key: str | None = None,
        share_with: list[str] | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
    ) -> Document:
        """Keep an attestation received from `from_agent`, verbatim, as a memory of `agent` (else of the responder,
        else of `default`): {memory_id, created, own?, pending_approval?, review_id?, approval_url?}. It must be signed
        with `public_key`, else with the key bound to its author here, else, if it is signed at all, with the key it
        names; what is not is refused, as is what redaction would change. What was kept before is from now on shared
        with `share_with`, where that is given; a memory that is the agent's own stays as it is."""
        engine, who = self._engine, self._who
        agent = agent or self._responder.agent or _AGENT
        check("mrp/attestation-v1", attestation)
        milliseconds(attestation["created_at"], "created_at")
        bound = (await engine.peers.bindings(who.tenant)).get(attestation["agent"])
        attestations.check_signed(attestation, public_key or (bound.key if bound else None))
        self._refuse_secrets(attestation, "attestation")
        draft = attestations.to_draft(attestation, agent, from_agent)
        draft.supersedes = await engine.peers.replaceable(who, draft.supersedes, lambda m: _same_author(m, attestation))
        if share_with:
            draft.privacy = {"share_with": list(share_with)}
        try:
            held = await engine.find(who, attestation["id"], agent)
        except NotFound:
            approval = draft_document(draft) if approval_required else None
            receipt = await engine.remember(who, draft, approval=approval, reasoning=reasoning)
            return {"memory_id": receipt.id, "created": True, **self._engine.pending_fields(receipt.review_id)}
        if attestations.verbatim(held) == attestation:
            if share_with and held.privacy.get("share_with") != draft.privacy["share_with"]:
                wider = Update(agent, held.id, privacy_intent=draft.privacy, approval_required=approval_required)
                changed = await engine.update(who, wider)
                return {"memory_id": held.id, "created": False, **self._engine.pending_fields(changed.review_id)}
            return {"memory_id": held.id, "created": False}
        if held.id == attestation["id"]:  # our own: asking for it back is no reason to share it with others
            return {"memory_id": held.id, "created": False, "own": True}
        raise ValidationError(
            f"another memory of {agent} came under the id {attestation['id']!r:.300}; forget that one first", field="id"
        )

    async def _keep_vouch(self, document: Any) -> Document:
        check("mrp/vouch", document)
        given = document["vouch"]
        self._refuse_secrets(given, "vouch")
        counted = await self._engine.peers.keep_vouch(self._who, given, authenticated=self._responder.authenticated)
        return {"vouch_id": given["id"], "counted": counted}

    async def _without_details(self, answer: Awaitable[T]) -> T:
        """What is wrong with this installation is the business of whom it belongs to."""
        try:
            return await answer
        except Unavailable:
            if self._responder.authenticated:
                raise
            raise Unavailable(requests.FAILED) from None

    def _refuse_secrets(self, document: Document, what: str) -> None:
        if self._engine.redactor.holds_secret(document):
            raise SecretLeakage(f"the {what} is refused: {_REDACTED}")


def _same_author(memory: Memory, attestation: Document) -> bool:
    """By name and by key: a name alone is anybody's."""
    held = attestations.verbatim(memory)
    return held is not None and (author := _author(held)) is not None and author == _author(attestation)


def _author(attestation: Document) -> tuple[str, str] | None:
    """None of what is not signed with the key it names: anyone can name one."""
    if not attestations.signed_by(attestation, None)[0]:
        return None
    return attestation["agent"], attestation["signatures"]["public_key"]
