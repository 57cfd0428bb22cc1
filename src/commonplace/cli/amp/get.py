"""`amp get`. Short, as one verb is one file."""

from __future__ import annotations

from commonplace.cli.amp import options
from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support.command import Answer
from commonplace.cli.support.output import Document, line, moment, print_fields, text_of

_TIMES = ("created_at", "updated_at", "expires_at")

commands = AmpCommands()


@commands.add("get")
def get(client: AmpClient, id: options.Id, agent: options.Agent = None) -> Answer:
    """Show one record in full. --agent says whose, where several agents use the same id.

    \b
    Example:
      amp get lesson_0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    answer = client.ask("get", id=id, agent=agent)
    return Answer(answer, lambda: _show(answer["record"]))


def _show(record: Document) -> None:
    line(record["content"])
    line()
    fields = {name: text_of(value) for name, value in record.items() if name != "content"}
    times = {name: moment(record[name]) for name in _TIMES if isinstance(record.get(name), int)}
    print_fields(fields | times)
