"""`commonplace serve`: every protocol on one port."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support.command import Commands, Data, Json, agent_option, option
from commonplace.cli.support.output import emit, line
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.config import Config

_FIRST_CALLS = (
    ("remember", {"type": "semantic", "content": "Alice is allergic to peanuts"}),
    ("recall", {"query": "what should I not cook for Alice?"}),
)
_LEVELS = ("debug", "info", "warning", "error")

commands = Commands()


@commands.typer.command("serve")
def serve(
    host: Annotated[str | None, option("--host ADDR", "Where to listen [127.0.0.1].")] = None,
    port: Annotated[int | None, option("--port PORT", "Which port [8420]; 0 for any.")] = None,
    as_json: Json = False,
    data: Data = None,
    agent: Annotated[
        str | None,
        agent_option("For MCP clients that name no agent: whose memory [COMMONPLACE_AGENT, else `default`]."),
    ] = None,
    store: Annotated[
        list[str] | None,
        option("--store URL", "The store, instead of the one in --data; repeat it for others, which have copies."),
    ] = None,
    token_required: Annotated[bool, option("--token-required", "Ask for a token even on this machine.")] = False,
    max_body: Annotated[int | None, option("--max-body BYTES", "The largest request body [4 MiB].")] = None,
    allow_host: Annotated[
        list[str] | None, option("--allow-host NAME", "Another name to answer to; repeatable.")
    ] = None,
    root_path: Annotated[
        str | None, option("--root-path PATH", "What a proxy puts before every path, as /memory.")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None, option("--trusted-proxy ADDR", "A proxy whose forwarded headers are believed; repeatable.")
    ] = None,
    tls_cert: Annotated[str | None, option("--tls-cert FILE", "Serve HTTPS with this certificate, in PEM.")] = None,
    tls_key: Annotated[str | None, option("--tls-key FILE", "The key of --tls-cert, in PEM.")] = None,
    openwop_host: Annotated[
        bool, option("--openwop-host", "Run OpenWOP's memory workflows at /v1/runs, to prove conformance.")
    ] = False,
    log_level: Annotated[str, option("--log-level LEVEL", "debug, info, warning or error.", *_LEVELS)] = "info",
) -> None:
    """Serve memory to every agent on this machine, or in this network.

    \b
    Example:
      commonplace serve
      commonplace serve --host 0.0.0.0 --port 8420
      commonplace serve --root-path /memory --trusted-proxy 127.0.0.1 --allow-host example.org
    """
    if log_level not in _LEVELS:
        raise ValidationError(f"--log-level is one of {', '.join(_LEVELS)}, not {log_level!r}", field="log_level")
    # Two threads of linear algebra on a small machine fight with the server's own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commonplace import config as configuration

    flags: dict[str, Any] = {"host": host, "port": port, "max_body": max_body, "stores": store or None}
    flags |= {"token_required": token_required or None, "allowed_hosts": allow_host or None}
    flags |= {
        "root_path": root_path,
        "trusted_proxies": trusted_proxy or None,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
    }
    config = configuration.load(data=data, agent=agent, openwop_host=openwop_host or None, **flags)
    from commonplace.serve.server import run

    announce = _announce_json if as_json else _announce
    run(config, lambda url, is_open: announce(config, url, is_open), log_level=log_level)


def _shown_place(config: Config) -> str:
    """Where memories are kept. What is printed here ends in logs: without the password of a database."""
    from commonplace.wire.shown_urls import shown_url

    return shown_url(config.store) if config.store else str(config.data)


def _announce_json(config: Config, url: str, is_open: bool) -> None:
    emit({"page": f"{config.public_address(url)}/ui/", "url": url, "data": _shown_place(config), "open": is_open})
    sys.stdout.flush()


def _announce(config: Config, url: str, is_open: bool) -> None:
    """The page first, then where the data is, and a first command that works as it is printed."""
    line(f"Open {config.public_address(url)}/ui/ in a browser.")
    line(f"Commonplace is listening on {url}  (data: {_shown_place(config)})")
    if is_open:
        line("Open to this machine only, without tokens; `commonplace token create` asks for one from then on.")
        auth = ""
    else:
        line("Every request needs a token; `commonplace token create` makes one.")
        auth = " -H 'Authorization: Bearer '\"$COMMONPLACE_TOKEN\""
    line()
    line("Try it:")
    for operation, body in _FIRST_CALLS:
        line(f"  curl -s {url}/v0/{operation}{auth} -d '{json.dumps({'agent_id': config.agent, **body})}'")
    line()
    line("Connect an MCP client (Claude Code, Cursor, VS Code, …), one of these ways:")
    for command, what in _ways_to_connect(config, url, is_open=is_open):
        line(f"  {command}      {what}")
    headers = {} if is_open else {"headers": {"Authorization": "Bearer ${COMMONPLACE_TOKEN}"}}
    entry = {"mcpServers": {"commonplace": {"type": "http", "url": f"{url}/mcp", **headers}}}
    line(f"  {json.dumps(entry)}")
    line()
    line(f"Read the API at {url}/docs. Stop with Ctrl-C.")
    sys.stdout.flush()


def _ways_to_connect(config: Config, url: str, *, is_open: bool) -> list[tuple[str, str]]:
    """Commands that lead to this very memory, whatever the shell they are typed into says."""
    from commonplace.config import DEFAULT_AGENT, standard_folder

    install = ["commonplace", "install", "--client", "claude-code"]
    token = [] if is_open else ["--token-env", "COMMONPLACE_TOKEN"]
    ways = [(shlex.join([*install, "--url", f"{url}/mcp", *token]), "which calls this server")]
    if config.store is None:  # a process of its own would look for the store in the data directory
        data = config.data.absolute()
        where = [] if data == standard_folder() else ["--data", str(data)]
        whose = [] if config.agent == DEFAULT_AGENT else ["--agent", config.agent]
        ways.insert(0, (shlex.join([*install, *where, *whose]), "which starts its own process on the same data"))
    return ways
