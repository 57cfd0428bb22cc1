"""What every request is answered with: the engine, who may come in, what is counted and how much is allowed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.config import DEFAULT_AGENT, MIB, Config
from commonplace.engine import Engine
from commonplace.serve import tracing
from commonplace.serve.auth import Authenticator
from commonplace.serve.errors import error_reply
from commonplace.serve.host_check import HostCheck, is_loopback
from commonplace.serve.metrics import Metrics
from commonplace.serve.routes import Protocol, Reply
from commonplace.wire.errors import Fault, Unavailable, ValidationError

RECORD = "commonplace.record"  # where a request's RequestRecord lies in its ASGI scope


@dataclass(slots=True)
class RequestRecord:
    """What is known of one request, for its log line and its metrics."""

    id: str
    operation: str = "unknown"
    status: int = 0
    principal: str | None = None
    fault: str | None = None
    started: float = field(default_factory=time.perf_counter)


@dataclass(slots=True)
class Readiness:
    """`indexes` and `embedder` are made ready in the background after the server has started."""

    indexes: bool = False
    embedder: bool = False
    problem: str | None = None

    @property
    def ready(self) -> bool:
        return self.indexes and self.embedder and self.problem is None


@dataclass(slots=True)
class AppContext:
    engine: Engine
    authenticator: Authenticator
    host_check: HostCheck
    metrics: Metrics
    protocols: Sequence[Protocol]
    readiness: Readiness = field(default_factory=Readiness)
    max_body: int = 4 * MIB
    timeout: float = 60.0
    tracer: tracing.Tracer = tracing.silent
    agent: str = DEFAULT_AGENT  # meant by MCP calls that name none
    signpost: str = "/docs shows what there is"  # for whoever asks for what is not there

    def refusal(self, scope: Any, fault: Fault, status: int | None = None, **headers: str) -> Reply:
        scope[RECORD].fault = fault.code
        self.engine.redactor.redact_fault(fault)
        return error_reply(self.protocols, scope["path"], fault, status, **headers)

    def timed_out(self) -> Unavailable:
        return Unavailable(
            f"this took longer than {self.timeout:g} s and was given up; a write may still have been kept"
        )


async def open_context(
    config: Config,
    engine: Engine,
    protocols: Sequence[Protocol],
    *,
    host: str,
    flag: str,
    make_token: str = "commonplace token create",
    shared_token: str = "",
) -> AppContext:
    """Refused where other machines could reach a server that asks nobody who they are."""
    loopback = is_loopback(host)
    authenticator = Authenticator(
        engine,
        loopback=loopback,
        token_required=config.token_required,
        rate_limit=config.rate_limit,
        shared_token=shared_token,
    )
    usable = await authenticator.usable()
    if not loopback and not usable:
        raise ValidationError(
            f"refusing to listen on {host}, which other machines can reach, without tokens: make one with "
            f"`{make_token}`, or listen on 127.0.0.1",
            field=flag,
        )
    return AppContext(
        engine,
        authenticator,
        HostCheck(loopback, config.allowed_hosts),
        Metrics(engine),
        protocols,
        max_body=config.max_body,
        timeout=config.request_timeout,
        agent=config.agent,
    )
