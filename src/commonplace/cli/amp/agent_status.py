"""`amp agent-status`. Short, as one verb is one file."""

from __future__ import annotations

from typing import Annotated

from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support.command import Answer, argument, option
from commonplace.cli.support.output import moment
from commonplace.wire.errors import ValidationError

commands = AmpCommands()


@commands.add("agent-status")
def agent_status(
    client: AmpClient,
    name: Annotated[str | None, argument("AGENT", "The agent.")] = None,
    agent: Annotated[str | None, option("--agent NAME", "The same, as an option.")] = None,
) -> Answer:
    """Show what an agent is doing, by its newest checkpoint.

    \b
    Example:
      amp agent-status radarr
    """
    chosen = name or agent
    if chosen is None:
        raise ValidationError("say which agent: amp agent-status radarr", field="agent")
    answer = client.ask("agent_status", agent=chosen)
    fields = {name: answer[name] for name in ("agent", "status", "current_task")}
    fields["checkpoint_count"] = str(answer["checkpoint_count"])
    fields["last_updated"] = moment(answer["last_updated"])
    return Answer(answer, fields)
