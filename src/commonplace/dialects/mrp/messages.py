"""What MRP's messages have in common: their headers, how long they hold, and who sent them."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.dialects.mrp import signatures
from commonplace.wire.errors import Unauthenticated, ValidationError
from commonplace.wire.times import iso, milliseconds

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.engine.peers.peers import TrustContext
    from commonplace.engine.peers.trust import RequesterTrust
    from commonplace.wire.record import Principal

Document = dict[str, Any]

VERSION = "0.1"
SCHEMAS = "https://anamnesis.dev/schemas/mrp/"
TTL_SECONDS = 300
SKEW_MS = 5_000  # how much later than its TTL a request is still answered: clocks differ
AHEAD_MS = 60_000  # how far in the future a request may be dated
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Caller:
    """Whom a message is from: what its transport knows (`who`), what it claims, and what follows from both."""

    who: Principal
    standing: RequesterTrust
    trust_context: TrustContext
    agents: tuple[str, ...]  # whose memories it may ask for


async def caller(engine: Engine, who: Principal, authenticated: bool, agent: str | None, message: Document) -> Caller:
    """Refuses a wrong signature, and nobody in particular where an identity is required."""
    claimed = (message.get("requester") or {}).get("agent_id", "")
    proved = signatures.verify_request(message)
    trust_context = await engine.peers.trust_context(who.tenant)
    mine = authenticated and (agent is None or who.may_use(agent))
    standing = trust_context.standing(
        claimed, authenticated=mine, identified=authenticated and bool(claimed) and who.may_use(claimed), proved=proved
    )
    if engine.core.settings.mrp.require_identity and standing.level == 0:
        raise Unauthenticated("this server answers only who proves an identity: sign the request, or send a token")
    if agent is not None:
        agents: tuple[str, ...] = (agent,)
    elif mine:
        agents = tuple(await engine.agent_names(who))
    else:
        agents = tuple(await engine.core.primary.agent_names(who.tenant))
    engine.peers.spend(who.tenant, who.name if authenticated else "", standing)
    return Caller(who, standing, trust_context, agents)


def check_id(value: str, field: str) -> None:
    if not _UUID.match(value):
        raise ValidationError(f"{field} must be a UUID, not {value!r:.80}", field=field)


def check_time(header: Document, now: int) -> int:
    """When a request is over; refused when that is past, or when it is not yet the time it was made at."""
    made = milliseconds(header["timestamp"], "header.timestamp")
    if made > now + AHEAD_MS:
        raise ValidationError(
            f"header.timestamp is in the future: here it is {iso(now)}; set the clock, or send the time in UTC",
            field="header.timestamp",
        )
    until = made + int(header.get("ttl_seconds", TTL_SECONDS) * 1000) + SKEW_MS
    if until <= now:
        raise ValidationError(
            f"the request is over: its timestamp and ttl_seconds ended before {iso(now)}; send a new one",
            field="header.ttl_seconds",
        )
    return until


def new_id() -> str:
    return str(uuid.uuid4())
