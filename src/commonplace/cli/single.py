"""Single memories: get, list, history, update."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, fancy, line, moment, note, row
from commonplace.cli.support.session import Session
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import system_clock

PANEL = "Single memories"


def register(app: typer.Typer) -> None:
    for name, function in (("get", get), ("list", listing), ("history", history), ("update", update)):
        app.command(name, rich_help_panel=PANEL)(function)


def get(
    id: options.MemoryId,
    as_of: options.AsOf = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Show one memory in full.

    \b
    Example:
      commonplace get 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
      commonplace get 1d2e3f --as-of 2h
    """
    with Session(data, agent, existing=True) as run:
        found = run(run.memory.get(run.id(id), as_of=_instant(as_of)))
    if as_json:
        emit(found)
    else:
        show.memory(found)


def listing(
    type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Only this type.", autocompletion=options.offering(*options.TYPES)),
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only what carries this tag.")] = None,
    user: options.User = None,
    filter: options.Filter = None,
    where: options.Where = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many at most, 1 to 1000.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however much it is.")] = False,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where the last page ended.")
    ] = None,
    as_of: options.AsOf = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """List memories, newest first.

    \b
    Example:
      commonplace list --tag food
      commonplace list --type episodic --limit 10 --json
      commonplace list --all | cut -f1
    """
    if type is not None and type not in options.TYPES:
        raise ValidationError(f"--type is one of {', '.join(options.TYPES)}, not {type!r}", field="type")
    which: dict[str, Any] = {
        "type": type, "tag": tag, "user_id": user, "filter": values.conditions(filter, where),
        "limit": 1000 if everything else limit, "as_of": _instant(as_of),
    }  # fmt: skip
    with Session(data, agent, existing=True) as run:
        page = run(run.memory.list(cursor=cursor, **which))
        found = list(page["memories"])
        while everything and page["next_cursor"] is not None:
            page = run(run.memory.list(cursor=page["next_cursor"], **which))
            found += page["memories"]
        whose = run.memory.agent_id
    if as_json:
        emit({"memories": found, "next_cursor": page["next_cursor"]})
        return
    if found:
        show.memories(found)
    else:
        note(f"nothing here for agent {whose}; `commonplace status` shows which agents have memories")
    if page["next_cursor"] is not None:
        note(f"there is more: add --all, or --cursor {page['next_cursor']}")


def history(
    id: options.MemoryId, as_json: options.Json = False, data: options.Data = None, agent: options.Agent = None
) -> None:
    """Show every version of a memory and what changed in each.

    \b
    Example:
      commonplace history 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    with Session(data, agent, existing=True) as run:
        versions = run(run.memory.history(run.id(id)))
    if as_json:
        emit({"versions": versions})
        return
    before: dict[str, Any] | None = None
    for version in versions:
        when, changed = moment(version["updated_at"]), show.changes(before, version)
        if fancy():
            line(f"version {version['version']}  {when}")
            for name, what in changed:
                line(f"  {name}: {what}")
        else:
            for name, what in changed:
                row([version["version"], when, name, what])
        before = version


def update(
    id: options.MemoryId,
    content: Annotated[str | None, typer.Option("--content", metavar="TEXT", help="The new text.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="The new tags, all of them; repeat it.")
    ] = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Set one metadata field; KEY=null removes it."),
    ] = None,
    metadata_json: Annotated[
        str | None, typer.Option("--metadata-json", metavar="JSON", help="Replace all the metadata.")
    ] = None,
    confidence: options.Confidence = None,
    expires: options.Expires = None,
    share_with: Annotated[
        list[str] | None,
        typer.Option("--share-with", metavar="NAME", help="Who of others may be told it, all of them; `*` is anyone."),
    ] = None,
    no_share: Annotated[bool, typer.Option("--no-share", help="Share it with nobody any more.")] = False,
    expected_version: Annotated[
        int | None, typer.Option("--expected-version", metavar="N", help="Refuse if it is no longer this version.")
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Change a memory; the version before is kept in its history.

    \b
    Example:
      commonplace update 1d2e3f --content "Alice is allergic to peanuts and kiwi"
      commonplace update 1d2e3f --metadata stars=5 --expected-version 2
      commonplace update 1d2e3f --share-with Babel
    """
    if tag and no_tags:
        raise ValidationError("give --tag or --no-tags, not both", field="tags")
    if share_with and no_share:
        raise ValidationError("give --share-with or --no-share, not both", field="privacy_intent.share_with")
    changed: dict[str, Any] = {
        "content": content, "tags": [] if no_tags else tag or None, "confidence": confidence,
        "expires_at": None if expires is None else values.instant(expires, "--expires", system_clock(), direction=1),
        "privacy_intent": {"share_with": share_with or []} if share_with or no_share else None,
    }  # fmt: skip
    with Session(data, agent, existing=True) as run:
        ref = run.id(id)
        if metadata_json is not None:
            changed["metadata"] = values.metadata(metadata, metadata_json)
        elif metadata:
            current = run(run.memory.get(ref))
            merged = {**current["metadata"], **values.metadata(metadata)}
            changed["metadata"] = {name: value for name, value in merged.items() if value is not None}
            expected_version = expected_version or current["version"]
        changed = {name: value for name, value in changed.items() if value is not None}
        updated = run(run.memory.update(ref, expected_version=expected_version, **changed))
        notes = run.heard.notes
    if as_json:
        emit(updated)
        return
    line(f"updated {updated['id']} to version {updated['version']}")
    show.remarks(notes)


def _instant(as_of: str | None) -> int | None:
    return None if as_of is None else values.instant(as_of, "--as-of", system_clock(), direction=-1)
