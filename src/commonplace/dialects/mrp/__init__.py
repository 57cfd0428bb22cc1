"""MRP, the Memory Request Protocol: how agents ask each other for memories, and check what they get.

`signatures` needs no server: whoever asks can check what it got with it alone.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from commonplace.wire.errors import Unavailable, ValidationError

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.record import Principal

Document = dict[str, Any]

__all__ = ["Mrp"]

_TYPES = ("memory_request", "memory_verify")
_AGENT = "default"


class Mrp:
    """MRP for one caller. Documents come in as JSON decodes them and go out ready to be encoded.

    `who` is whom a token (or open local mode) stands for; with `authenticated=False` the caller holds no token, and
    `who` says only whose memories may be asked for: what it may see then follows from what its request proves.
    `agent` is the one who answers: `?agent=`, else `[mrp] agent`, else the whole server.
    """

    def __init__(self, engine: Engine, who: Principal, *, agent: str | None = None, authenticated: bool = True) -> None:
        self._engine = engine
        self._who = who
        self._agent = agent or engine.settings.mrp.agent or None
        self._authenticated = authenticated

    async def handle(self, document: Any) -> Document:
        """Whatever the document's `type` says it is: memory_request or memory_verify."""
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
        from commonplace.dialects.mrp import requests

        return await requests.answer(self._engine, self._who, self._authenticated, self._agent, document)

    async def verify(self, document: Any) -> Document:
        """MEMORY_VERIFY → VERIFY_RESULT."""
        from commonplace.dialects.mrp import verifying

        answer = verifying.answer(self._engine, self._who, self._authenticated, self._agent, document)
        return await self._reticent(answer)

    async def vouch(self, document: Any) -> Document:
        """{vouch: …} → {vouch_id, counted}."""
        from commonplace.dialects.mrp import keeping

        return await self._reticent(keeping.vouch(self._engine, self._who, self._authenticated, document))

    async def vouches(self, subject: str) -> Document:
        """{vouches: […]} about an agent, as they were given."""
        from commonplace.dialects.mrp import keeping

        return await self._reticent(keeping.vouches_for(self._engine, self._who, subject))

    async def _reticent(self, answer: Awaitable[Document]) -> Document:
        """What is wrong with this installation is the business of whom it belongs to."""
        try:
            return await answer
        except Unavailable:
            if self._authenticated:
                raise
            raise Unavailable("this could not be processed; try again later") from None

    async def keep(
        self,
        attestation: Any,
        *,
        from_agent: str,
        agent: str | None = None,
        public_key: str | None = None,
        share_with: list[str] | None = None,
    ) -> Document:
        """Keep an attestation received from `from_agent`, verbatim, as a memory of `agent` (else of the responder,
        else of `default`): {memory_id, created, own?}. It must be signed with `public_key`, else with the key bound to
        its author here, else, if it is signed at all, with the key it names; what is not is refused, as is what
        redaction would change. What was kept before is from now on shared with `share_with`, where that is given; a
        memory that is the agent's own stays as it is."""
        from commonplace.dialects.mrp import keeping

        return await keeping.keep(
            self._engine, self._who, attestation, from_agent=from_agent, agent=agent or self._agent or _AGENT,
            public_key=public_key, share_with=share_with,
        )  # fmt: skip
