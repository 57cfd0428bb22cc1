"""`amp store`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commonplace.cli.amp import options as given
from commonplace.cli.amp.client import Document, ask
from commonplace.cli.support import options, values
from commonplace.cli.support.output import emit, line
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import system_clock


def store(
    type: given.Type = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="A short title; a lesson needs one.")
    ] = None,
    content: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="What is to be kept; `-` reads stdin.")
    ] = None,
    content_file: Annotated[
        Path | None, typer.Option("--content-file", metavar="PATH", help="Read the content from a file.")
    ] = None,
    tags: given.Tags = None,
    severity: Annotated[
        str | None, typer.Option("--severity", metavar="HOW", help="info, warning or critical.")
    ] = None,
    agent: given.Agent = None,
    project: given.Project = None,
    working_on: Annotated[str | None, typer.Option("--working-on", metavar="TEXT", help="A checkpoint's task.")] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="JSON", help="A checkpoint's {decisions, blockers, artifacts, flags}."),
    ] = None,
    session_id: Annotated[
        str | None, typer.Option("--session-id", metavar="ID", help="A checkpoint's session.")
    ] = None,
    file_path: Annotated[
        str | None, typer.Option("--file-path", metavar="PATH", help="A snippet's source file.")
    ] = None,
    language: Annotated[str | None, typer.Option("--language", metavar="NAME", help="A snippet's language.")] = None,
    start_line: Annotated[int | None, typer.Option("--start-line", metavar="N", help="A snippet's first line.")] = None,
    end_line: Annotated[int | None, typer.Option("--end-line", metavar="N", help="A snippet's last line.")] = None,
    repo: Annotated[str | None, typer.Option("--repo", metavar="NAME", help="A snippet's repository.")] = None,
    expires: options.Expires = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="KEY=VALUE", help="Any other field; VALUE is read as JSON where it is JSON."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="JSON", help="The whole record; `-` reads stdin. Options add to it."),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Store under this id: replaces the record it names.")
    ] = None,
    approval: options.Approval = False,
    url: given.Url = None,
    token: given.Token = None,
    as_json: options.Json = False,
    data: options.Data = None,
) -> None:
    """Store a record, or replace one. Without --agent it is shared; a checkpoint needs an agent.

    \b
    Example:
      amp store --type lesson --title "Check array bounds" --content "Verify indices before access." --tags js,arrays
      amp store --type checkpoint --agent radarr --working-on "Auth flow" --state '{"flags": ["BLOCKED"]}'
      amp store --type snippet --content-file src/app.py --file-path src/app.py --language python
    """
    if content is not None and content_file is not None:
        raise ValidationError("give --content or --content-file, not both", field="content")
    if content_file is not None or content == "-":
        content = values.text_file(content_file or Path("-"), "--content-file").rstrip("\n")
    extra = values.json_object(_stdin_or(record, "--record"), "--record") if record is not None else {}
    for pair in field or ():
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise ValidationError(f"--field takes KEY=VALUE, not {pair!r}", field="field")
        extra[key.strip()] = values.json_or_text(value)
    flags: Document = {
        "id": id, "type": type or extra.get("type", "lesson"), "title": title, "content": content,
        "tags": given.tags(tags), "severity": severity, "agent": agent, "project": project, "working_on": working_on,
        "state": values.json_object(state, "--state") if state is not None else None, "session_id": session_id,
        "file_path": file_path, "language": language, "start_line": start_line, "end_line": end_line, "repo": repo,
        "expires_at": None if expires is None else values.instant(expires, "--expires", system_clock(), direction=1),
    }  # fmt: skip
    whole = {**extra, **{name: value for name, value in flags.items() if value is not None}}
    request = {"record": whole, "approval_required": approval or None}
    answer = ask("store", request, url=url, token=token, data=data)
    if as_json:
        emit(answer)
    elif answer.get("pending_approval"):
        line(f"{answer['id']} waits for approval; `commonplace reviews list` shows what waits")
    else:
        line(f"{'stored' if answer['created'] else 'replaced'} {answer['id']}")


def _stdin_or(text: str, option: str) -> str:
    return values.text_file(Path("-"), option) if text == "-" else text
