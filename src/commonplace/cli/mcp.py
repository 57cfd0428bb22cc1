"""`commonplace mcp`: memory for one MCP client, on stdin and stdout.

As clients write its arguments it is started without this module; see support/mcp_arguments.
"""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.support.command import Agent, Commands, Data, option
from commonplace.cli.support.mcp_arguments import (
    TOOL_SETS,
    McpArguments,
    client_variables,
    start,
    unwritten_variable_notes,
)
from commonplace.cli.support.output import emit, note

commands = Commands()


@commands.typer.command("mcp")
def mcp(
    tools: Annotated[
        str, option("--tools SET", "Which tools: commonplace, full, amp, trusty or all.", *TOOL_SETS)
    ] = "commonplace",
    palace: Annotated[
        str | None, option("--palace NAME", "With trusty tools: the palace meant when a call names none.")
    ] = None,
    http: Annotated[
        str | None, option("--http ADDR", "With trusty tools: also serve their HTTP routes here, as 127.0.0.1:3031.")
    ] = None,
    as_json: Annotated[
        bool, option("--json", "Print a client's configuration for this server instead of starting it.")
    ] = False,
    data: Data = None,
    agent: Agent = None,
) -> None:
    """Serve memory to an MCP client that starts this command.

    \b
    Example:
      commonplace mcp
      commonplace mcp --tools trusty --palace my-project
      commonplace mcp --agent reviewer --json
    """
    arguments = McpArguments(tools, palace, http, agent, str(data) if data is not None else None)
    if not as_json:
        start(arguments)
        return
    arguments.check()
    for text in unwritten_variable_notes(arguments.data):
        note(text)
    env = dict(client_variables(data=arguments.data))
    server = {"command": "commonplace", "args": arguments.for_client().words()} | ({"env": env} if env else {})
    emit({"mcpServers": {"commonplace": server}})
