"""The server's life: open the store, listen, make ready, answer until told to stop, finish, close."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.config import Config
from commonplace.engine import Engine, Settings
from commonplace.sdk import open_engine
from commonplace.serve import about, lending, logs, tracing
from commonplace.serve.app import application
from commonplace.serve.auth import Authenticator
from commonplace.serve.context import AppContext
from commonplace.serve.host_check import HostCheck, is_loopback
from commonplace.serve.mcp import places
from commonplace.serve.metrics import Metrics
from commonplace.serve.protocols import spoken
from commonplace.wire import strict_json
from commonplace.wire.errors import Fault, Unavailable, ValidationError

if TYPE_CHECKING:
    import uvicorn

#: How long requests in flight may take to finish once the server was told to stop.
STOP_SECONDS = 30
_BACKLOG = 2048
_KEEP_SECONDS = 30  # a connection without a request
_REFUSED = (
    "refusing to listen on {host}, which other machines can reach, without tokens: make one with "
    "`commonplace token create --role admin`, or listen on 127.0.0.1"
)

#: Told the server's address, and whether it is open to everyone, once it listens.
Announce = Callable[[str, bool], None]


def listen(host: str, port: int, flag: str = "--port") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), port))
        sock.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        sock.close()
        why = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"cannot listen on {host} port {port}: {why}; choose another with {flag}") from None
    return sock


def address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def app_context(config: Config, engine: Engine, *, loopback: bool, lent: str = "") -> AppContext:
    """Everything a request needs; refused when anyone could reach a server that asks nobody who they are."""
    authenticator = Authenticator(
        engine, loopback=loopback, token_required=config.token_required, rate_limit=config.rate_limit, lent=lent
    )
    usable = await authenticator.usable()
    if not loopback and not usable:
        raise ValidationError(_REFUSED.format(host=config.host), field="host")
    host_check = HostCheck(loopback, config.allowed_hosts)
    protocols = spoken(config)
    context = AppContext(
        engine,
        authenticator,
        host_check,
        Metrics(engine),
        protocols,
        max_body=config.max_body,
        timeout=config.request_timeout,
        agent=config.agent,
    )
    context.protocols = (*protocols, places.PROTOCOL, about.protocol(context))
    return context


async def make_ready(context: AppContext) -> None:
    """Bring the indexes up to date and load the model, while requests are already answered."""
    engine = context.engine
    try:
        await engine.warm_indexes()
        context.readiness.indexes = True
        await engine.warm_embedder()
        context.readiness.embedder = True
    except Fault as fault:
        context.readiness.problem = fault.message
        logs.log.error("not ready: %s", fault.message)
    except Exception as error:
        context.readiness.problem = f"unexpected {type(error).__name__}"
        logs.log.error("bug", extra={"fields": {"event": "bug", "operation": "make_ready", **logs.whereabouts(error)}})


async def serve(config: Config, announce: Announce) -> None:
    """Until SIGTERM or SIGINT; what is in flight is finished and what was written behind is written."""
    sock = listen(config.host, config.port)
    try:
        url = address(sock)
        settings = Settings(review_url=f"{url}/v0/reviews", recalls_per_minute=config.recall_budget)
        engine = await open_engine(config, settings=settings)
        try:
            offer = lending.offer(config.data)
            context = await app_context(config, engine, loopback=is_loopback(config.host), lent=offer.token)
            context.tracer, end_traces = tracing.tracer(config.traces, engine.store_name)
            server = _server(context, offer)
            ready = asyncio.create_task(make_ready(context))
            announce(url, context.authenticator.is_open)
            offer.stand(_near(url))
            await server.serve(sockets=[sock])
            ready.cancel()
            with suppress(asyncio.CancelledError):
                await ready
            end_traces()
        finally:
            await engine.close()
    finally:
        sock.close()


def _near(url: str) -> str:
    """The address by which this machine reaches a server that listens on all of its addresses."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _reader() -> type[asyncio.Protocol]:
    """uvicorn's own; what it cannot read, such as an address of more than 65,535 bytes, is refused as we refuse."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    fault = ValidationError("this is not a request that HTTP allows, or its address is longer than 65,535 bytes")
    body = strict_json.encode(fault.to_wire())
    head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()

    class Reader(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
        def send_400_response(self, msg: str) -> None:
            own = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers)
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + own + head + body)
            self.transport.close()

    return Reader


def _server(context: AppContext, offer: lending.Offer) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            offer.withdraw()  # before the address is given up: the next to have it may be anyone
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            application(context), log_config=None, access_log=False, lifespan="off", server_header=False, ws="none",
            http=_reader(), backlog=_BACKLOG, timeout_graceful_shutdown=STOP_SECONDS, timeout_keep_alive=_KEEP_SECONDS,
        )
    )  # fmt: skip


def run(config: Config, announce: Announce, *, log_level: str = "info") -> None:
    logs.configure(log_level)
    # uvicorn raises the signal again once it has stopped; by then there is nothing left for it to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    gc.enable()  # commands run without; a server lives longer
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(config, announce))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
