"""`amp delete`. Short, as one verb is one file."""

from __future__ import annotations

from commonplace.cli import MISTAKE
from commonplace.cli.amp import options
from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support.command import Answer

commands = AmpCommands()


@commands.add("delete")
def delete(client: AmpClient, id: options.Id, agent: options.Agent = None) -> Answer:
    """Remove a record. Exits 1 when there is none.

    \b
    Example:
      amp delete lesson_0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    answer = client.ask("delete", id=id, agent=agent)
    if answer["deleted"]:
        return Answer(answer, f"deleted {id}")
    return Answer(answer, notes=[f"amp: no record {id}"], exit_code=MISTAKE)
