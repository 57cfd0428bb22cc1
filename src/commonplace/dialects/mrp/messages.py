"""What MRP's messages have in common: their envelope, how long they hold, who sent them and who answers."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.dialects.mrp import signatures
from commonplace.wire.errors import ValidationError
from commonplace.wire.times import iso, milliseconds

if TYPE_CHECKING:
    from commonplace.engine import Engine, Requester
    from commonplace.wire.record import Principal

Document = dict[str, Any]

VERSION = "0.1"
SCHEMAS = "https://anamnesis.dev/schemas/mrp/"
CHECKS = ("signature", "evidence", "vouches", "freshness", "consistency")  # of MEMORY_VERIFY
TTL_SECONDS = 300
SKEW_MS = 5_000  # how much later than its TTL a request is still answered: clocks differ
AHEAD_MS = 60_000  # how far in the future a request may be dated
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Responder:
    """Who answers: `agent`, or the whole server, to a caller that its transport knows as `who`."""

    engine: Engine
    who: Principal
    agent: str | None
    authenticated: bool
    address: tuple[str, int] | None = None  # of the socket that was reached

    @property
    def name(self) -> str:
        return self.agent or self.engine.settings.mrp.name

    async def requester(self, message: Document) -> Requester:
        """Whom a message is from; a wrong signature is refused, and so is what is meant for someone else."""
        return await self.engine.peers.requester(
            self.who,
            authenticated=self.authenticated,
            agent=self.agent,
            claimed=(message.get("requester") or {}).get("agent_id", ""),
            proved=signatures.verify_request(message),
            audience=message.get("audience"),
            address=self.address,
        )


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
            f"the request has expired: its timestamp and ttl_seconds ended before {iso(now)}; send a new one",
            field="header.ttl_seconds",
        )
    return until


def new_id() -> str:
    return str(uuid.uuid4())


def message(type: str, header: Document, **parts: Any) -> Document:
    """A message of MRP with its envelope; `type` names its schema, too."""
    schema = type.removeprefix("memory_").replace("_", "-")
    return {"$schema": f"{SCHEMAS}{schema}-v01.json", "type": type, "version": VERSION, "header": header, **parts}


def memory_request(
    header: Document, requester: str, natural: str, structured: Document, preferences: Document
) -> Document:
    """A MEMORY_REQUEST; what is empty is left out."""
    query: Document = {"natural": natural} if natural else {}
    if structured:
        query["structured"] = structured
    request = message("memory_request", header, requester={"agent_id": requester}, query=query)
    if preferences:
        request["response_preferences"] = preferences
    return request
