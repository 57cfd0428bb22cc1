"""Around every request: its id, its Host and Origin, its log line and its metrics."""

from __future__ import annotations

import itertools
import re
import secrets
import time
from logging import INFO
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.serve.context import RECORD, AppContext, RequestRecord
from commonplace.serve.http_io import send_reply
from commonplace.serve.logs import access
from commonplace.wire.errors import Fault

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_POLICY_VIOLATION = 1008


class RequestMiddleware:
    def __init__(self, context: AppContext, app: ASGIApp) -> None:
        self.context = context
        self._app = app
        # Random once and then counted: asking the system for randomness gives up the interpreter at every request.
        self._prefix = secrets.token_hex(6)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        record = scope[RECORD] = RequestRecord(
            given if self._is_usable(given) else f"{self._prefix}-{next(self._numbers):x}"
        )
        named = (b"x-request-id", record.id.encode())

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"].append(named)
            await send(message)

        self.context.metrics.in_flight.inc()
        try:
            try:
                self.context.host_check.check(scope["method"], headers)
            except Fault as fault:
                await send_reply(scope, sending, self.context.refusal(scope, fault))
            else:
                await self._app(scope, receive, sending)
        finally:
            self.context.metrics.in_flight.dec()
            self._log(scope["method"], record)

    def _is_usable(self, given: str) -> bool:
        """Whether the log and the answer may repeat an id that the caller chose."""
        return _GIVEN_ID.match(given) is not None and self.context.engine.redactor.is_name(given)

    def _log(self, method: str, record: RequestRecord) -> None:
        seconds = time.perf_counter() - record.started
        self.context.metrics.answered(record.operation, record.status, seconds)
        if access.isEnabledFor(INFO):
            fields: dict[str, Any] = {"event": "request", "id": record.id, "method": method[:20]}
            fields |= {"operation": record.operation, "status": record.status, "ms": round(seconds * 1000, 2)}
            if record.principal is not None:
                fields["principal"] = record.principal
            if record.fault is not None:
                fields["fault"] = record.fault
            access.info("request", extra={"fields": fields})
