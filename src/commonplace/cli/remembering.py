"""`commonplace remember`: one memory, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.cli import show
from commonplace.cli.support import options, values
from commonplace.cli.support.errors import exit_code
from commonplace.cli.support.output import emit, line, note, plural
from commonplace.cli.support.progress import Bar
from commonplace.cli.support.session import Session
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import system_clock

_AT_ONCE = 250


def register(app: typer.Typer) -> None:
    app.command("remember", rich_help_panel="Remember and recall")(remember)


def remember(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="What to remember; `-` or a pipe reads stdin.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="PATH", help="Read the text from a file.")] = None,
    type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="semantic (the default), episodic, procedural or emotional.",
            autocompletion=options.offering(*options.TYPES),
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="The user it is about.")] = None,
    tag: options.Tags = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="A title, searched like the text.")
    ] = None,
    metadata: options.Metadata = None,
    metadata_json: options.MetadataJson = None,
    confidence: options.Confidence = None,
    source: Annotated[str | None, typer.Option("--source", metavar="TEXT", help="Where it comes from.")] = None,
    expires: options.Expires = None,
    approval: options.Approval = False,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", metavar="KEY", help="Writing again under the same key writes once."),
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The conversation it is from.")] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", metavar="NAME", help="Who said it.")] = None,
    event_time: Annotated[
        str | None,
        typer.Option("--event-time", metavar="TIME", help="When it happened: an ISO time (UTC), epoch ms, or an age."),
    ] = None,
    importance: Annotated[
        float | None, typer.Option("--importance", metavar="0–1", help="How much it matters, from 0 to 1.")
    ] = None,
    share_with: Annotated[
        list[str] | None,
        typer.Option("--share-with", metavar="NAME", help="An agent of others that may be told it, or `*`; repeat it."),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option("--batch", metavar="FILE", help="Remember a JSONL file (`-`: stdin): a text or a request a line."),
    ] = None,
    as_json: options.Json = False,
    data: options.Data = None,
    agent: options.Agent = None,
) -> None:
    """Keep a memory, exactly as given.

    \b
    Example:
      commonplace remember "Alice is allergic to peanuts" --user alice --tag food
      git log -1 --format=%B | commonplace remember - --type episodic --source git
      commonplace remember "The door code is 4711" --expires 30d
      commonplace remember --batch notes.jsonl --tag imported
    """
    now = system_clock()
    when = None if event_time is None else values.instant(event_time, "--event-time", now, direction=-1)
    if importance is not None and not 0 <= importance <= 1:
        raise ValidationError(f"--importance is a number from 0 to 1, not {importance}", field="importance")
    fields: dict[str, Any] = {
        "type": type, "user_id": user, "confidence": confidence, "source": source,
        "expires_at": None if expires is None else values.instant(expires, "--expires", now, direction=1),
        "approval_required": approval or None,
        "privacy_intent": {"share_with": list(share_with)} if share_with else None,
        "metadata": values.metadata(
            metadata, metadata_json, tags=tag, title=title, session_id=session, speaker=speaker,
            importance=importance, event_time=when,
        ),
    }  # fmt: skip
    fields = {name: value for name, value in fields.items() if value not in (None, {})}
    if batch is not None:
        if text or file or idempotency_key:
            raise ValidationError("--batch takes no text, --file or --idempotency-key: put them on its lines")
        _many(batch, fields, as_json, data, agent)
        return
    content = values.content(text, file)
    with Session(data, agent) as run:
        answer = run(run.memory.remember(content, idempotency_key=idempotency_key, **fields))
        if as_json:
            from commonplace.wire.models import dump

            emit(dump(answer))
            return
        if not answer.pending_approval:
            line(f"remembered {answer.id}")
        else:
            waiting = [r["id"] for r in run(run.memory.reviews()) if r.get("memory_id") == answer.id]
            line(f"{answer.id} waits for approval: commonplace reviews approve {waiting[0] if waiting else '…'}")
        show.remarks([_replaced(answer.redacted), *run.heard.notes])


def _replaced(labels: list[str] | None) -> str | None:
    """What to tell of secrets that were not kept."""
    if not labels:
        return None
    return f"{'a secret was' if len(labels) == 1 else 'secrets were'} replaced before it was kept: {', '.join(labels)}"


def _many(path: Path, defaults: dict[str, Any], as_json: bool, data: Path | None, agent: str | None) -> None:
    from commonplace.wire.models import dump

    items = list(_items(values.text_file(path, "--batch"), defaults))
    good = [(number, item) for number, item in items if not isinstance(item, Fault)]
    outcomes: dict[int, Any] = {number: item for number, item in items if isinstance(item, Fault)}
    with Session(data, agent) as run, Bar("remembering") as progress:
        for start in range(0, len(good), _AT_ONCE):
            part = good[start : start + _AT_ONCE]
            try:
                answers = run(run.memory.remember_batch([item for _, item in part]))
            except KeyboardInterrupt:
                first, last = part[0][0], part[-1][0]
                note(f"stopped: lines before {first} are kept, lines {first} to {last} may be, the rest is not")
                raise
            outcomes |= {number: answer for (number, _), answer in zip(part, answers, strict=True)}
            progress(start + len(part), len(good))
        notes = run.heard.notes
    ordered = [(number, outcomes[number]) for number, _ in items]
    failed = [(number, fault) for number, fault in ordered if isinstance(fault, Fault)]
    if as_json:
        emit({"results": [o.to_wire() if isinstance(o, Fault) else dump(o) for _, o in ordered]})
    else:
        pending = sum(o.pending_approval for _, o in ordered if not isinstance(o, Fault))
        waiting = f", {pending} of them waiting for approval" if pending else ""
        line(f"remembered {len(ordered) - len(failed):,} of {plural(len(ordered), 'line')}{waiting}")
        for number, fault in failed:
            note(f"line {number}: {fault.message}")
        for number, outcome in ordered:
            if not isinstance(outcome, Fault) and outcome.redacted:
                note(f"line {number}: {_replaced(outcome.redacted)}")
        show.remarks(notes)
    if failed:
        raise typer.Exit(max(exit_code(fault.code) for _, fault in failed))


def _items(text: str, defaults: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """Line number and request of each line that is not blank; the options fill in what a line does not say."""
    for number, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            item = json.loads(written)
        except ValueError as error:
            yield number, ValidationError(f"not valid JSON: {error}", line=number)
            continue
        if isinstance(item, str):
            item = {"content": item}
        if not isinstance(item, dict):
            yield number, ValidationError("a line is a JSON string or a JSON object", line=number)
            continue
        merged = {"content": None, **defaults, **item}
        if isinstance(item.get("metadata"), dict):
            merged["metadata"] = {**defaults.get("metadata", {}), **item["metadata"]}
        if merged["content"] is None:
            yield number, ValidationError("content is missing", field="content", line=number)
            continue
        yield number, merged
