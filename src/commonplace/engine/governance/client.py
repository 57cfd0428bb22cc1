"""Another review system in the place of ours: what it is asked, and what is done with its answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from commonplace.engine.governance.decisions import Decision, ReviewOutcome
from commonplace.engine.governance.reviews import Reviews
from commonplace.wire.errors import Conflict, Fault
from commonplace.wire.record import Principal

log = logging.getLogger("commonplace.engine")


@dataclass(slots=True, frozen=True)
class ReviewerIdentity:
    """Who decided, as OpenID Connect tells people apart: by issuer and subject; the rest is for people to read."""

    iss: str
    sub: str
    email: str | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        return self.email or self.name or self.sub


@dataclass(slots=True, frozen=True)
class GovernanceDecision:
    """The paper's governance response: when it was made is noted by the engine."""

    approved: bool
    reviewer: str | ReviewerIdentity
    reason: str | None = None


@runtime_checkable
class GovernanceClient(Protocol):
    """A review system. `Memory(governance=…)` asks it about everything that is staged."""

    async def review(self, request: Mapping[str, Any]) -> GovernanceDecision | None:
        """Decide about a review as `GET /v0/reviews/{id}` shows it (operation, agent_id, request, diff, reasoning …),
        or None to leave it pending, for `engine.reviews.decide` or a person to decide later."""


async def consult(reviews: Reviews, who: Principal, review_id: str, client: GovernanceClient) -> ReviewOutcome | None:
    """What a review system made of a review; None while it waits. Whatever goes wrong there, nothing is approved."""
    system = replace(who, name="governance", role="reviewer")
    request = await reviews.get(system, review_id)
    try:
        said = await client.review(request)
    except Exception:
        log.warning("the governance client failed; review %s stays pending", review_id, exc_info=True)
        return None
    if said is None:
        return None
    identity = said.reviewer if isinstance(said.reviewer, ReviewerIdentity) else None
    name = identity.label if identity is not None else str(said.reviewer)
    decision = Decision(said.approved, name, said.reason, identity=identity, revision=request["revision"])
    try:
        return await reviews.decide(replace(system, name=name), review_id, decision)
    except Conflict:
        return None  # someone else was first, or what it looked at has changed: it is asked no more
    except Fault as fault:
        log.warning("what the governance client decided of review %s was refused: %s", review_id, fault.summary)
        return None
