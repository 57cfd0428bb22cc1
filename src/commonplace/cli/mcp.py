"""`commonplace mcp`: memory for one MCP client, on stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli.support import options
from commonplace.cli.support.mcp_arguments import McpArguments, start

_SETS = ("commonplace", "amp", "trusty", "all")


def register(app: typer.Typer) -> None:
    app.command("mcp", rich_help_panel="Start here")(mcp)


def mcp(
    tools: Annotated[
        str,
        typer.Option(
            "--tools",
            metavar="SET",
            help="Which tools: commonplace, amp, trusty or all.",
            autocompletion=options.offering(*_SETS),
        ),
    ] = "commonplace",
    palace: Annotated[
        str | None,
        typer.Option("--palace", metavar="NAME", help="With trusty tools: the palace meant when a call names none."),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="ADDR", help="With trusty tools: also serve their HTTP routes here, as 127.0.0.1:3031."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a client's configuration for this server instead of starting it.")
    ] = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Serve memory to an MCP client that starts this command.

    \b
    Example:
      commonplace mcp
      commonplace mcp --tools trusty --palace my-project
      commonplace mcp --agent reviewer --json
    """
    spawned = McpArguments(tools, palace, http, agent, str(Path(data)) if data is not None else None)
    if as_json:
        from commonplace.cli import carrying
        from commonplace.cli.support.output import emit

        spawned.check()
        spawned.agent, spawned.data = carrying.agent(agent), carrying.data_directory(data)
        emit(spawned.client_configuration(dict(carrying.variables())))
        return
    start(spawned)
