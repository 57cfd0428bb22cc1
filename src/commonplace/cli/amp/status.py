"""`amp status`. Short, as one verb is one file."""

from __future__ import annotations

from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support.command import Answer

commands = AmpCommands()


@commands.add("status")
def status(client: AmpClient) -> Answer:
    """Show health and statistics.

    \b
    Example:
      amp status
      amp status --url http://127.0.0.1:8420 --json
    """
    answer = client.ask("status")
    model = answer["stats"]["embedding_model"] or "none (keywords)"
    counts = {name: f"{count:,}" for name, count in answer["stats"].items() if name != "embedding_model"}
    about = {"healthy": "yes" if answer["healthy"] else "no"} | {name: answer[name] for name in ("version", "protocol")}
    return Answer(answer, {**about, **counts, "embedding_model": model})
