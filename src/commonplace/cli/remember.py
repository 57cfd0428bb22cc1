"""`commonplace remember`: one memory, or a file of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from commonplace.cli import OK
from commonplace.cli.support import options, output, values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.errors import exit_code
from commonplace.cli.support.options import TYPES
from commonplace.cli.support.progress import Bar
from commonplace.wire.errors import Fault, ValidationError

_AT_ONCE = 250

commands = Commands()


@commands.add("remember", existing=False)
def remember(
    run: Session,
    text: Annotated[list[str] | None, argument("TEXT", "What to remember; `-` or a pipe reads stdin.")] = None,
    file: Annotated[Path | None, option("--file PATH", "Read the text from a file.")] = None,
    type: Annotated[
        str | None, option("--type TYPE", "semantic (the default), episodic, procedural or emotional.", *TYPES)
    ] = None,
    user: Annotated[str | None, option("--user NAME", "The user it is about.")] = None,
    tag: Annotated[list[str] | None, option("--tag TAG", "A tag; repeat it for several.")] = None,
    title: Annotated[str | None, option("--title TEXT", "A title, searched like the text.")] = None,
    metadata: Annotated[
        list[str] | None, option("--metadata KEY=VALUE", "A metadata field; VALUE is read as JSON where it is JSON.")
    ] = None,
    metadata_json: Annotated[str | None, option("--metadata-json JSON", "All the metadata, as a JSON object.")] = None,
    confidence: options.Confidence = None,
    source: Annotated[str | None, option("--source TEXT", "Where it comes from.")] = None,
    expires: options.Expires = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
    idempotency_key: Annotated[
        str | None, option("--idempotency-key KEY", "Writing again under the same key writes once.")
    ] = None,
    session: Annotated[str | None, option("--session ID", "The conversation it is from.")] = None,
    speaker: Annotated[str | None, option("--speaker NAME", "Who said it.")] = None,
    event_time: Annotated[
        str | None, option("--event-time TIME", "When it happened: an ISO time (UTC), epoch ms, or an age.")
    ] = None,
    importance: Annotated[float | None, option("--importance 0–1", "How much it matters, from 0 to 1.")] = None,
    share_with: Annotated[
        list[str] | None, option("--share-with NAME", "An agent of others that may be told it, or `*`; repeat it.")
    ] = None,
    batch: Annotated[
        Path | None, option("--batch FILE", "Remember a JSONL file (`-`: stdin): a text or a request a line.")
    ] = None,
) -> Answer:
    """Keep a memory, exactly as given.

    \b
    Example:
      commonplace remember "Alice is allergic to peanuts" --user alice --tag food
      git log -1 --format=%B | commonplace remember - --type episodic --source git
      commonplace remember "The door code is 4711" --expires 30d
      commonplace remember --batch notes.jsonl --tag imported
    """
    if importance is not None and not 0 <= importance <= 1:
        raise ValidationError(f"--importance is a number from 0 to 1, not {importance}", field="importance")
    named: dict[str, Any] = {"tags": tag, "title": title, "session_id": session, "speaker": speaker}
    named |= {"importance": importance, "event_time": values.past(event_time, "--event-time")}
    fields: dict[str, Any] = {"type": type, "user_id": user, "confidence": confidence, "source": source}
    fields["expires_at"] = values.future(expires, "--expires")
    fields["approval_required"], fields["reasoning"] = approval or None, reasoning
    fields["privacy_intent"] = {"share_with": share_with} if share_with else None
    fields["metadata"] = values.metadata(metadata, metadata_json, **named)
    fields = {name: value for name, value in fields.items() if value not in (None, {})}
    if batch is not None:
        if text or file or idempotency_key:
            raise ValidationError("--batch takes no text, --file or --idempotency-key: put them on its lines")
        return _remember_batch(run, list(_requests(values.text_file(batch, "--batch"), fields)))
    answer = run(run.memory.remember(_content(text, file), idempotency_key=idempotency_key, **fields))
    said = f"remembered {answer.id}"
    if answer.pending_approval and not run.as_json:
        waiting = [r["id"] for r in run(run.memory.reviews()) if r.get("memory_id") == answer.id]
        said = f"{answer.id} waits for approval: commonplace reviews approve {waiting[0] if waiting else '…'}"
    return Answer(answer, said, [_redaction_note(answer.redacted), *run.warnings])


def _content(words: list[str] | None, file: Path | None) -> str:
    """The text to remember: the arguments, `-` or a pipe for stdin, or --file; one of them."""
    if words and file is not None:
        raise ValidationError("give the text or --file, not both", field="content")
    if file is not None:
        return values.text_file(file, "--file").rstrip("\n")
    if words and words != ["-"]:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise ValidationError(
            'say what to remember: commonplace remember "Alice likes green tea", `-` for stdin, or --file',
            field="content",
        )
    return values.text_file(Path("-"), "-").rstrip("\n")


def _redaction_note(labels: list[str] | None) -> str | None:
    """What to tell of secrets that were not kept."""
    if not labels:
        return None
    return f"{'a secret was' if len(labels) == 1 else 'secrets were'} replaced before it was kept: {', '.join(labels)}"


def _remember_batch(run: Session, requests: list[tuple[int, dict[str, Any] | Fault]]) -> Answer:
    from commonplace.wire.models import dump

    good = [(number, request) for number, request in requests if not isinstance(request, Fault)]
    outcomes: dict[int, Any] = {number: fault for number, fault in requests if isinstance(fault, Fault)}
    with Bar("remembering") as progress:
        for start in range(0, len(good), _AT_ONCE):
            part = good[start : start + _AT_ONCE]
            try:
                answers = run(run.memory.remember_batch([request for _, request in part]))
            except KeyboardInterrupt:
                first, last = part[0][0], part[-1][0]
                output.note(f"stopped: lines before {first} are kept, lines {first} to {last} may be, the rest is not")
                raise
            outcomes |= {number: answer for (number, _), answer in zip(part, answers, strict=True)}
            progress(start + len(part), len(good))
    ordered = [(number, outcomes[number]) for number, _ in requests]
    failed = [(number, outcome) for number, outcome in ordered if isinstance(outcome, Fault)]
    kept = [(number, outcome) for number, outcome in ordered if not isinstance(outcome, Fault)]

    def show() -> None:
        pending = sum(outcome.pending_approval for _, outcome in kept)
        waiting = f", {pending} of them waiting for approval" if pending else ""
        output.line(f"remembered {len(kept):,} of {output.plural(len(ordered), 'line')}{waiting}")
        for number, fault in failed:
            output.note(f"line {number}: {fault.message}")
        for number, outcome in kept:
            if outcome.redacted:
                output.note(f"line {number}: {_redaction_note(outcome.redacted)}")

    results = [outcome.to_wire() if isinstance(outcome, Fault) else dump(outcome) for _, outcome in ordered]
    code = max((exit_code(fault.code) for _, fault in failed), default=OK)
    return Answer({"results": results}, show, run.warnings, code)


def _requests(text: str, defaults: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """Line number and request of each line that is not blank; the options fill in what a line does not say."""
    for number, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            item = json.loads(written)
        except (ValueError, RecursionError) as error:
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
