"""`amp status`. Short, as one verb is one file."""

from __future__ import annotations

from commonplace.cli.amp.client import AmpCommands, Client, Document
from commonplace.cli.support.command import Answer
from commonplace.cli.support.output import print_fields

commands = AmpCommands()


@commands.add("status")
def status(client: Client) -> Answer:
    """Show health and statistics.

    \b
    Example:
      amp status
      amp status --url http://127.0.0.1:8420 --json
    """
    answer = client.ask("status")
    return Answer(answer, lambda: _show(answer))


def _show(answer: Document) -> None:
    counts = {name: value for name, value in answer["stats"].items() if name != "embedding_model"}
    fields = {
        "healthy": "yes" if answer["healthy"] else "no",
        "version": answer["version"],
        "protocol": answer["protocol"],
        **{name: f"{count:,}" for name, count in counts.items()},
        "embedding_model": answer["stats"]["embedding_model"] or "none (keywords)",
    }
    print_fields(fields.items())
