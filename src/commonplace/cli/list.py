"""`commonplace list`."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.options import TYPES
from commonplace.cli.support.tables import memories_table
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MAX_PAGE

commands = Commands()


@commands.add("list")
def list_memories(
    run: Session,
    type: Annotated[str | None, option("--type TYPE", "Only this type.", *TYPES)] = None,
    tag: Annotated[str | None, option("--tag TAG", "Only what carries this tag.")] = None,
    user: options.User = None,
    filter: options.Filter = None,
    where: options.Where = None,
    limit: Annotated[int, option("--limit N", "How many at most, 1 to 1000.")] = 50,
    everything: Annotated[bool, option("--all", "Everything, however much it is.")] = False,
    cursor: options.Cursor = None,
    as_of: options.AsOf = None,
) -> Answer:
    """List memories, newest first.

    \b
    Example:
      commonplace list --tag food
      commonplace list --type episodic --limit 10 --json
      commonplace list --all | cut -f1
    """
    if type is not None and type not in TYPES:
        raise ValidationError(f"--type is one of {', '.join(TYPES)}, not {type!r}", field="type")
    wanted: dict[str, Any] = {"type": type, "tag": tag, "user_id": user, "filter": values.conditions(filter, where)}
    wanted |= {"limit": MAX_PAGE if everything else limit, "as_of": values.past(as_of, "--as-of")}
    page = run(run.memory.list(cursor=cursor, **wanted))
    found = list(page["memories"])
    while everything and page["next_cursor"] is not None:
        page = run(run.memory.list(cursor=page["next_cursor"], **wanted))
        found += page["memories"]

    whose, cursor = run.memory.agent_id, page["next_cursor"]
    nothing = f"nothing here for agent {whose}"
    more = None if cursor is None else f"there is more: add --all, or --cursor {cursor}"
    document = {"memories": found, "next_cursor": cursor}
    return Answer(document, memories_table(found, nothing, more), nothing=not found)
