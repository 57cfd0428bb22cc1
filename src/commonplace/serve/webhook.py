"""The webhook: another system is told of new and decided reviews, in order, until it has answered.

How far it has been told is kept in the store, so a restart repeats nothing that was answered and loses nothing that was
not. A message says which review and what kind, never what a memory says: whoever may see that looks at the review.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from commonplace.serve import telemetry
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.http_client import NoRedirects, unreachable_url
from commonplace.wire.record import Principal
from commonplace.wire.shown_urls import shown_variable
from commonplace.wire.strict_json import encode

if TYPE_CHECKING:
    from commonplace.config import GovernanceConfig
    from commonplace.engine import Engine

SIGNATURE = "X-Commonplace-Signature"
_TIMEOUT_SECONDS = 10
_LOOK_SECONDS = 1.0
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 300_000
_MIN_SECRET_CHARS = 16


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=<ms>,v1=<hex>`: HMAC-SHA256 over the time, a full stop and the body; the time lets old messages be refused."""
    made = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


def wait_after(attempts: int) -> int:
    """Milliseconds until the next attempt: twice as long after each."""
    return int(min(_FIRST_WAIT_MS * 2 ** min(attempts - 1, 20), _LONGEST_WAIT_MS))


class Webhook:
    def __init__(self, engine: Engine, config: GovernanceConfig) -> None:
        try:
            parts = urlsplit(config.webhook)
            is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # whose words quote what it takes for the port, and that may be a password
            is_address = False
        if not is_address or parts.username is not None:  # a name and a password would not be sent
            raise ValidationError(
                "governance.webhook must be an address such as https://example.org/reviews", field="governance.webhook"
            )
        secret = os.environ.get(config.webhook_secret_env, "")
        if len(secret) < _MIN_SECRET_CHARS:
            raise ValidationError(
                f"governance.webhook needs a secret of at least {_MIN_SECRET_CHARS} characters in the environment "
                f"variable {shown_variable(config.webhook_secret_env)}, which webhook_secret_env names",
                field="governance.webhook_secret_env",
            )
        self._engine, self._url, self._secret = engine, config.webhook, secret
        self._begun = False
        self._opener = urllib.request.build_opener(NoRedirects)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.deliver()
            except Fault as fault:
                telemetry.log.warning("the webhook could not be looked after: %s", fault.message)
            await asyncio.sleep(_LOOK_SECONDS)

    async def deliver(self) -> int:
        """Tell what has happened, of every tenant; how many messages were answered."""
        told = 0
        for tenant in await self._engine.review_events.tenants():
            told += await self._deliver(tenant)
        self._begun = True
        return told

    async def _deliver(self, tenant: str) -> int:
        events, who = self._engine.review_events, Principal("webhook", tenant, "reviewer")
        known = await events.delivered(tenant)
        if known is None:
            # What happened before there was a webhook is no news; a tenant that came since has no such time.
            known = {"after": 0 if self._begun else await events.head(who)}
            await events.note_delivered(tenant, known)
        if known.get("next_at", 0) > self._engine.clock():
            return 0
        found, after = await events.since(who, known["after"])
        told = 0
        for event in found:
            wrong = await asyncio.to_thread(self._send, tenant, event)
            if wrong is not None:
                await events.note_delivered(tenant, self._failed(known, event["n"] - 1, wrong))
                return told
            told += 1
            known = {"after": event["n"]}
        if found or known.get("error"):
            await events.note_delivered(tenant, {"after": after})
        return told

    def _failed(self, known: dict[str, Any], after: int, wrong: str) -> dict[str, Any]:
        now, attempts = self._engine.clock(), known.get("attempts", 0) + 1
        telemetry.log.warning("the webhook failed (attempt %d): %s", attempts, wrong)
        since = known.get("failing_since", now)
        return {
            "after": after, "error": wrong, "attempts": attempts, "failing_since": since,
            "next_at": now + wait_after(attempts),
        }  # fmt: skip

    def _send(self, tenant: str, event: dict[str, Any]) -> str | None:
        """Why it was not taken; nothing where it was."""
        review = event["review"]
        link = self._engine.approval_url(review["id"])
        url = {"approval_url": link} if link else {}
        message = {"event": f"review.{event['event']}", "id": f"{tenant}/{event['n']}", "at": event["at"]}
        body = encode({**message, "tenant": tenant, "review": review, **url})
        headers = {"Content-Type": "application/json", SIGNATURE: signature(self._secret, self._engine.clock(), body)}
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                with suppress(OSError):
                    answer.read(1024)
                return None
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answered {error.code}"
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None)
            cause = reason if isinstance(reason, Exception) else error
            return f"it cannot be reached: {unreachable_url(cause, self._url, ours=False)}"
