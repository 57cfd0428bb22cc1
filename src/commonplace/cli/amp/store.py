"""`amp store`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from commonplace.cli.amp import options
from commonplace.cli.amp.client import AmpClient, AmpCommands
from commonplace.cli.support import values
from commonplace.cli.support.command import Answer, option
from commonplace.cli.support.options import Approval, Expires
from commonplace.cli.support.output import Document, waiting
from commonplace.wire.errors import ValidationError

commands = AmpCommands()


@commands.add("store")
def store(
    client: AmpClient,
    type: options.Type = None,
    title: Annotated[str | None, option("--title TEXT", "A short title; a lesson needs one.")] = None,
    content: Annotated[str | None, option("--content TEXT", "What is to be kept; `-` reads stdin.")] = None,
    content_file: Annotated[Path | None, option("--content-file PATH", "Read the content from a file.")] = None,
    tags: options.Tags = None,
    severity: Annotated[str | None, option("--severity HOW", "info, warning or critical.")] = None,
    agent: options.Agent = None,
    project: options.Project = None,
    working_on: Annotated[str | None, option("--working-on TEXT", "A checkpoint's task.")] = None,
    state: Annotated[
        str | None, option("--state JSON", "A checkpoint's {decisions, blockers, artifacts, flags}.")
    ] = None,
    session_id: Annotated[str | None, option("--session-id ID", "A checkpoint's session.")] = None,
    file_path: Annotated[str | None, option("--file-path PATH", "A snippet's source file.")] = None,
    language: Annotated[str | None, option("--language NAME", "A snippet's language.")] = None,
    start_line: Annotated[int | None, option("--start-line N", "A snippet's first line.")] = None,
    end_line: Annotated[int | None, option("--end-line N", "A snippet's last line.")] = None,
    repo: Annotated[str | None, option("--repo NAME", "A snippet's repository.")] = None,
    expires: Expires = None,
    field: Annotated[
        list[str] | None, option("--field KEY=VALUE", "Any other field; VALUE is read as JSON where it is JSON.")
    ] = None,
    record: Annotated[
        str | None, option("--record JSON", "The whole record; `-` reads stdin. Options add to it.")
    ] = None,
    id: Annotated[str | None, option("--id ID", "Store under this id: replaces the record it names.")] = None,
    approval: Approval = False,
) -> Answer:
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
    if record == "-":
        record = values.text_file(Path("-"), "--record", values.MAX_REQUEST_CHARS)
    whole = values.json_object(record, "--record") if record is not None else {}
    whole |= values.pairs(field, "--field")
    given: Document = {"id": id, "type": type or whole.get("type", "lesson"), "title": title, "content": content}
    given |= {"tags": values.split_commas(tags) or None, "severity": severity, "agent": agent, "project": project}
    given["working_on"] = working_on
    given["state"] = values.json_object(state, "--state") if state is not None else None
    given |= {"session_id": session_id, "file_path": file_path, "language": language}
    given |= {"start_line": start_line, "end_line": end_line, "repo": repo}
    given["expires_at"] = values.future(expires, "--expires")
    whole |= {name: value for name, value in given.items() if value is not None}
    answer = client.ask("store", record=whole, approval_required=approval or None)
    if answer.get("pending_approval"):
        return Answer(answer, f"{answer['id']} {waiting(answer.get('review_id'), answer.get('approval_url'))}")
    return Answer(answer, f"{'stored' if answer['created'] else 'replaced'} {answer['id']}")
