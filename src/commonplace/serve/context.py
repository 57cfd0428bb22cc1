"""What every request is answered with: the engine, who may come in, what is counted and how much is allowed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from commonplace.config import DEFAULT_AGENT, MIB
from commonplace.engine import Engine
from commonplace.serve import tracing
from commonplace.serve.auth import Authenticator
from commonplace.serve.errors import error_reply, with_headers
from commonplace.serve.host_check import HostCheck
from commonplace.serve.metrics import Metrics
from commonplace.serve.routes import Protocol, Reply
from commonplace.wire.errors import Fault

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
    protocols: tuple[Protocol, ...]
    readiness: Readiness = field(default_factory=Readiness)
    max_body: int = 4 * MIB
    timeout: float = 60.0
    tracer: tracing.Tracer = tracing.silent
    agent: str = DEFAULT_AGENT  # meant by MCP calls that name none
    signpost: str = "/docs shows what there is"  # for whoever asks for what is not there

    def error_reply(self, path: str) -> Callable[[Fault], Reply]:
        """How the protocol that owns a path says what went wrong, known to it or not."""
        owners = [p for p in self.protocols if path == p.prefix or path.startswith(f"{p.prefix}/")]
        return max(owners, key=lambda p: len(p.prefix)).error_reply if owners else error_reply

    def refusal(self, scope: Any, fault: Fault) -> Reply:
        scope[RECORD].fault = fault.code
        return with_headers(self.error_reply(scope["path"])(fault), fault)
