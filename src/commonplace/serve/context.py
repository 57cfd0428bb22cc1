"""What every request is answered with: the engine, who may come in, what is counted and how much is allowed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from commonplace.config import REVIEW_PAGE, Config
from commonplace.engine import Engine, callers_review_url
from commonplace.serve.auth import Authenticator
from commonplace.serve.host_check import HostCheck, is_loopback
from commonplace.serve.oidc import METADATA_PATH, SCOPES
from commonplace.serve.proxy_headers import TrustedProxies, first_part, without_prefix
from commonplace.serve.routes import ProtocolRoutes, Reply, error_reply
from commonplace.serve.telemetry import Metrics, Tracer, no_tracing
from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.record import Principal

RECORD = "commonplace.record"  # where a request's RequestRecord lies in its ASGI scope


@dataclass(slots=True)
class RequestRecord:
    """What is known of one request, for its log line and its metrics."""

    id: str
    operation: str = "unknown"
    status: int = 0
    prefix: str = ""  # what a browser has to put before our paths
    base: str = ""  # where the caller reaches them
    who: Principal | None = None  # once that is known
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
    config: Config
    engine: Engine
    authenticator: Authenticator
    host_check: HostCheck
    proxies: TrustedProxies
    metrics: Metrics
    protocols: Sequence[ProtocolRoutes]
    readiness: Readiness = field(default_factory=Readiness)
    tracer: Tracer = no_tracing
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # ends what would be answered for ever
    signpost: str = "/docs shows what there is"  # for whoever asks for what is not there
    prefix: str = ""  # what the operator says comes before our paths where people reach them
    has_metadata: bool = False  # whether it says whose tokens it takes besides its own

    def serve_protocols(self, protocols: Sequence[ProtocolRoutes]) -> None:
        self.protocols = protocols
        self.proxies.reserved = _first_parts(protocols)
        self.proxies.check_prefix(self.prefix, "root_path")

    def check_address(self, scope: Any) -> None:
        """Raises a fault where this server does not answer to it. What a trusted proxy says of how it was asked is so
        from here on, and the path is one of our own."""
        record, headers = scope[RECORD], Headers(scope=scope)
        record.prefix = self.prefix
        scope["path"] = without_prefix(scope["path"], record.prefix)  # first: what refuses speaks as its protocol
        forwarded = self.proxies.read((scope.get("client") or ("",))[0], headers)
        if forwarded is not None and forwarded.prefix and not self.prefix:
            record.prefix = forwarded.prefix
            scope["path"] = without_prefix(scope["path"], record.prefix)
        self.host_check.check(scope["method"], headers, forwarded.host if forwarded is not None else "")
        host = headers.get("host", "")
        if forwarded is not None:
            scope["scheme"] = forwarded.scheme or scope["scheme"]
            host = forwarded.host or host
        reached = f"{scope.get('scheme', 'http')}://{host}{record.prefix}"
        record.base = self.config.public_url.rstrip("/") or reached
        if host and forwarded is not None and not self.config.public_url:
            callers_review_url.set(f"{record.base}{REVIEW_PAGE}")

    def refusal(self, scope: Any, fault: Fault, status: int = 0, **headers: str) -> Reply:
        scope[RECORD].fault = fault.code
        self.engine.redactor.redact_fault(fault, scope[RECORD].who)
        if challenge := self._challenge(scope, fault):
            headers["WWW-Authenticate"] = challenge
        return error_reply(self.protocols, scope["path"], fault, status, scope[RECORD].prefix, **headers)

    def _challenge(self, scope: Any, fault: Fault) -> str:
        """Where clients find out how to get a token (RFC 9728), and what is wrong with theirs (RFC 6750); "" where no
        issuer is trusted, or it is about something else."""
        if not self.has_metadata or fault.code not in ("unauthenticated", "forbidden"):
            return ""
        given = Headers(scope=scope).get("authorization") is not None
        parts = {"realm": "commonplace"}
        if fault.code == "forbidden":
            if "role" not in fault.details:
                return ""
            parts |= {"error": "insufficient_scope", "scope": SCOPES[fault.details["role"]]}
        else:
            parts |= {"error": "invalid_token"} if given else {"scope": f"{SCOPES['reader']} {SCOPES['writer']}"}
        parts["resource_metadata"] = f"{scope[RECORD].base}{METADATA_PATH}"
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())

    def timed_out(self) -> Unavailable:
        seconds = self.config.request_timeout
        return Unavailable(f"this took longer than {seconds} s and timed out; a write may still have been kept")


async def open_context(
    config: Config,
    engine: Engine,
    protocols: Sequence[ProtocolRoutes],
    host: str,
    field: str,
    *,
    shared_token: str = "",
) -> AppContext:
    """For a server on `host`; refused where other machines could reach one that asks nobody who they are.

    `field` is the setting that names the host, and `shared_token` lets other processes use the server's embedder.
    """
    loopback = is_loopback(host)
    authenticator = Authenticator(engine, config, loopback=loopback, shared_token=shared_token)
    usable = await authenticator.usable()
    if not loopback and not usable:
        role = " --role admin" if shared_token else ""  # the server beside an MCP process has nothing for an admin
        raise ValidationError(
            f"refusing to listen on {host}, which other machines can reach, without tokens: make one with "
            f"`commonplace token create{role}` (with COMMONPLACE_STORE set where you give --store here), or listen on "
            "127.0.0.1",
            field=field,
        )
    names = [name for name in (urlsplit(config.public_url).hostname,) if name]
    host_check = HostCheck(loopback, [*config.allowed_hosts, *names])
    proxies, metrics = TrustedProxies(config.trusted_proxies), Metrics(engine)
    context = AppContext(config, engine, authenticator, host_check, proxies, metrics, protocols)
    context.prefix = config.path_prefix
    context.serve_protocols(protocols)
    return context


def _first_parts(protocols: Sequence[ProtocolRoutes]) -> frozenset[str]:
    paths = [path for protocol in protocols for path in (protocol.prefix, *(route.path for route in protocol.routes))]
    return frozenset(filter(None, map(first_part, paths)))
