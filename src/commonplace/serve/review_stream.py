"""`GET /v0/reviews/stream`: new and decided reviews as server-sent events, for as long as the client listens.

Apart from the tables of routes, whose answers all end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, QueryParams

from commonplace.engine import require_role
from commonplace.serve.context import RECORD, AppContext
from commonplace.serve.http_io import disconnected, send_reply
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.strict_json import encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from commonplace.wire.record import Principal

PATH = "/v0/reviews/stream"
_HEADERS = {
    b"content-type": b"text/event-stream", b"cache-control": b"no-store", b"x-accel-buffering": b"no",
    b"x-content-type-options": b"nosniff",
}  # fmt: skip
_LOOK_SECONDS = 1.0
_QUIET_LOOKS = 15  # after so many without news a comment is sent, so that nobody in between hangs up


class ReviewStream:
    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[RECORD].operation = "review_stream"
        headers = Headers(scope=scope)
        try:
            who = await self._admit(headers)
            after = self._position(scope, headers)
        except Fault as fault:
            await send_reply(scope, send, self._context.refusal(scope, fault))
            return
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS.items())})
        sending = asyncio.create_task(self._send_all(send, who, headers, after))
        leaving = asyncio.create_task(disconnected(receive))
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _admit(self, headers: Headers) -> Principal:
        who, _ = await self._context.authenticator.admit(headers.get("authorization"))
        require_role(who, "reader")
        return who

    def _position(self, scope: Scope, headers: Headers) -> int | None:
        """Where the client left off, as EventSource says it or as a parameter; None is now."""
        query = QueryParams(scope.get("query_string", b""))
        if unknown := sorted(set(query) - {"after"}):
            raise ValidationError(f"unknown parameter {unknown[0][:80]!r}; there is after", field=unknown[0][:80])
        given = headers.get("last-event-id") or query.get("after")
        if given is None:
            return None
        if not given.isascii() or not given.isdigit() or len(given) > 15:
            raise ValidationError("after must be the id of an event, a whole number", field="after")
        return int(given)

    async def _send_all(self, send: Send, who: Principal, headers: Headers, after: int | None) -> None:
        # A stream outlives the look at its token: once that is revoked, nothing more is sent.
        with suppress(Fault):
            async for frame in self._frames(who, after):
                await self._admit(headers)
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _frames(self, who: Principal, after: int | None) -> AsyncIterator[bytes]:
        events, stopping = self._context.engine.review_events, self._context.stopping
        at = await events.head(who) if after is None else after
        yield b": connected\n\n"
        quiet = 0
        while not stopping.is_set():
            found, at = await events.since(who, at)
            for event in found:
                head = f"id: {event['n']}\nevent: review.{event['event']}\n".encode()
                yield head + b"data: " + encode(event["review"]) + b"\n\n"
            quiet = 0 if found else quiet + 1
            if quiet >= _QUIET_LOOKS:
                quiet = 0
                yield b": still here\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _LOOK_SECONDS)
