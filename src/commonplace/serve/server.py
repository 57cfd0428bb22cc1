"""The server's life: open the store, listen, make ready, answer until told to stop, finish, close."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from commonplace.config import Config
from commonplace.engine import Engine, Settings
from commonplace.engine_factory import open_engine
from commonplace.serve import telemetry
from commonplace.serve.app import application
from commonplace.serve.connection_guard import ConnectionGuard, guarded_protocol
from commonplace.serve.context import AppContext, open_context
from commonplace.serve.mcp import http as mcp_http
from commonplace.serve.page import PAGE
from commonplace.serve.protocols import http_protocols
from commonplace.serve.running_server import Advertisement, advertisement_of
from commonplace.serve.system_routes import system_protocol
from commonplace.serve.tls import certificate_hash, check_certificate
from commonplace.serve.webhook import Webhook
from commonplace.wire.errors import Fault, Unavailable

if TYPE_CHECKING:
    import uvicorn

#: How long requests in flight may take to finish once the server was told to stop.
STOP_SECONDS = 30
_BACKLOG = 2048

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
        if isinstance(error, socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL:
            raise Unavailable(
                f"cannot listen on {host}: {why}; give an address of this machine, such as 127.0.0.1 or 0.0.0.0"
            ) from None
        raise Unavailable(f"cannot listen on {host} port {port}: {why}; choose another with {flag}") from None
    return sock


def address(sock: socket.socket, *, tls: bool = False) -> str:
    host, port = sock.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _reachable(url: str) -> str:
    """The address by which this machine reaches a server that listens on all of its addresses."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


async def server_context(config: Config, engine: Engine, shared_token: str = "") -> AppContext:
    """Everything a request needs, with every protocol."""
    protocols = (*http_protocols(config), mcp_http.PROTOCOL, PAGE)
    context = await open_context(config, engine, protocols, config.host, "host", shared_token=shared_token)
    context.serve_protocols((*protocols, system_protocol(context)))
    return context


async def make_ready(context: AppContext) -> None:
    """Bring the indexes up to date and load the model, while requests are already answered."""
    engine = context.engine
    try:
        await engine.warm_indexes()
        context.readiness.indexes = True
        await engine.warm_embedder()
        context.readiness.embedder = True
        engine.resume_embedding()
    except Fault as fault:
        context.readiness.problem = fault.summary_for(is_operator=False)  # nobody knows who asks
        telemetry.log.error("not ready: %s", fault.message)
    except Exception as error:
        context.readiness.problem = f"unexpected {type(error).__name__}"
        telemetry.log_bug("make_ready", error)


async def serve(config: Config, announce: Announce) -> None:
    """Until SIGTERM or SIGINT; what is in flight is finished and what was written behind is written."""
    check_certificate(config)
    with closing(listen(config.host, config.port)) as sock:
        url = address(sock, tls=bool(config.tls_cert))
        settings = Settings(review_url=config.review_url(_reachable(url)), embeds_behind=True)
        engine = await open_engine(config, settings=settings)
        try:
            advertisement = advertisement_of(config, certificate_hash(config))
            context = await server_context(config, engine, advertisement.token)
            context.tracer, end_traces = telemetry.open_tracer(config.traces, engine.store_name)
            server = _server(context, advertisement)
            webhook = Webhook(engine, config.governance) if config.governance.webhook else None
            ready = asyncio.create_task(make_ready(context))
            engine.start_lifecycle()
            engine.stores.watch()
            telling = asyncio.create_task(webhook.run()) if webhook is not None else None
            try:
                announce(url, context.authenticator.is_open)
                advertisement.publish(_reachable(url))
                _leave_signals_to(server)
                await server.serve(sockets=[sock])
            finally:
                advertisement.withdraw()
                for task in filter(None, (ready, telling)):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                end_traces()
        finally:
            await engine.close()


def _leave_signals_to(server: uvicorn.Server) -> None:
    """uvicorn raises the signal again once it has stopped; by then there is nothing left for it to end. Not before it
    is about to listen to them itself: whoever interrupts a start would not be heard."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)


def uvicorn_config(app: Any, config: Config, **options: Any) -> uvicorn.Config:
    """Without what we do ourselves (logs, signals, start and stop, proxies) or not at all (web sockets)."""
    import uvicorn

    limits = config.limits
    if config.tls_cert:
        options |= {"ssl_certfile": config.tls_cert, "ssl_keyfile": config.tls_key or None}
    return uvicorn.Config(
        app,
        http=guarded_protocol(ConnectionGuard(limits)),
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_keep_alive=limits.idle_seconds,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,  # which believes whoever is on this machine
        ws="none",
        **options,
    )


def _server(context: AppContext, advertisement: Advertisement) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            advertisement.withdraw()  # before the address is given up: the next to have it may be anyone
            context.stopping.set()
            await super().shutdown(sockets)

    app = application(context)
    return Server(uvicorn_config(app, context.config, backlog=_BACKLOG, timeout_graceful_shutdown=STOP_SECONDS))


def run(config: Config, announce: Announce, *, log_level: str = "info") -> None:
    telemetry.configure_logs(log_level)
    # While it starts; the first process of a container is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    gc.enable()  # commands run without; a server lives longer
    # A thread back from SQLite or numpy waits this long before it may ask for the interpreter, many times in a recall.
    sys.setswitchinterval(0.001)
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(config, announce))
