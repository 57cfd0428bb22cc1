"""`commonplace remember`: one memory, or a file of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

from commonplace.cli import OK
from commonplace.cli.support import options, output, values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.errors import exit_code
from commonplace.cli.support.options import TYPES
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.errors import Fault, ValidationError

_AT_ONCE = 250
_GIVE_UP_AFTER = 1_000  # lines of which none is a request: the file is another one than was meant
_MAX_REASONS = 100

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
        return _remember_batch(run, batch, fields)
    answer = run(run.memory.remember(_content(text, file), idempotency_key=idempotency_key, **fields))
    said = f"remembered {answer.id}"
    if answer.pending_approval:
        said = f"{answer.id} {output.waiting(answer.review_id, answer.approval_url)}"
    told = [_redaction_note(answer.redacted), *run.warnings, *output.store_problems(answer.model_dump())]
    return Answer(answer, said, told)


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


def _remember_batch(run: Session, path: Path, defaults: dict[str, Any]) -> Answer:
    outcomes = _Outcomes(as_json=run.as_json)
    with values.open_text(path, "--batch") as lines, ProgressBar("remembering") as progress:
        requests = _requests(lines, defaults)
        while part := list(islice(requests, _AT_ONCE)):
            good = [request for _, request in part if not isinstance(request, Fault)]
            try:
                answers = iter(run(run.memory.remember_batch(good)) if good else ())
            except KeyboardInterrupt:
                first, last = part[0][0], part[-1][0]
                output.note(f"stopped: lines before {first} are kept, lines {first} to {last} may be, the rest is not")
                raise
            for number, request in part:
                outcomes.add(number, request if isinstance(request, Fault) else next(answers))
            progress(*values.position(lines))
    told = [*run.warnings, *outcomes.store_problems]
    return Answer({"results": outcomes.results}, outcomes.show, told, outcomes.exit_code)


class _Outcomes:
    """What became of the lines of a batch. Of what was refused the first few are kept: a file may be all wrong."""

    def __init__(self, *, as_json: bool) -> None:
        self.results: list[dict[str, Any]] = []
        self.exit_code = OK
        self.store_problems: dict[str, None] = {}  # each once, however many lines it was the same of
        self._as_json = as_json
        self._kept = self._pending = self._refused = 0
        self._reasons: list[str] = []
        self._redactions: list[str] = []
        self._without_reason: dict[str, dict[str, Any]] = {}  # by code: one object each, however many lines

    def add(self, number: int, outcome: Any) -> None:
        if isinstance(outcome, Fault):
            self._refused += 1
            self.exit_code = max(self.exit_code, exit_code(outcome.code))
            if self._refused <= _MAX_REASONS:
                self._reasons.append(f"line {number}: {outcome.message}")
        else:
            self._kept += 1
            self._pending += outcome.pending_approval
            self.store_problems |= dict.fromkeys(output.store_problems(outcome.model_dump()))
            if outcome.redacted:
                self._redactions.append(f"line {number}: {_redaction_note(outcome.redacted)}")
        if self._as_json:
            self.results.append(self._wire(outcome))

    def show(self) -> None:
        waiting = f", {self._pending} of them waiting for approval" if self._pending else ""
        lines = output.plural(self._kept + self._refused, "line")
        output.line(f"remembered {self._kept:,} of {lines}{waiting}")
        for said in self._reasons:
            output.note(said)
        if more := self._refused - len(self._reasons):
            output.note(f"{output.plural(more, 'more line')} {'was' if more == 1 else 'were'} refused")
        for said in self._redactions:
            output.note(said)

    def _wire(self, outcome: Any) -> dict[str, Any]:
        from commonplace.wire.models import dump

        if not isinstance(outcome, Fault):
            return dump(outcome)
        if self._refused <= _MAX_REASONS:
            return outcome.to_wire()
        said = f"refused; only the first {_MAX_REASONS} refusals say why"
        return self._without_reason.setdefault(outcome.code, {"error": {"code": outcome.code, "message": said}})


def _requests(lines: TextIO, defaults: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """Line number and request of each line that is not blank; the options fill in what a line does not say."""
    first: str | None = None  # why the first line was refused, until a line is right
    refused = 0
    for number, written in enumerate(_lines(lines), start=1):
        if written is not None and not written.strip():
            continue
        try:
            request: dict[str, Any] | Fault = _request(written, number, defaults)
            first, refused = None, -1
        except ValidationError as fault:
            request = fault
            if refused >= 0:
                first, refused = first or f"line {number}: {fault.message}", refused + 1
        if refused == _GIVE_UP_AFTER:
            raise ValidationError(
                f"--batch: none of the first {refused:,} lines is a memory, a JSON string or object each ({first}); "
                "nothing was kept"
            )
        yield number, request


def _lines(lines: TextIO) -> Iterator[str | None]:
    """None for a line that is too long to be a request; it is not held in memory."""
    while written := lines.readline(values.MAX_REQUEST_CHARS):
        whole: str | None = written
        while len(written) == values.MAX_REQUEST_CHARS and not written.endswith("\n"):
            whole, written = None, lines.readline(values.MAX_REQUEST_CHARS)
        yield whole


def _request(written: str | None, number: int, defaults: dict[str, Any]) -> dict[str, Any]:
    if written is None:
        raise ValidationError(f"longer than the {values.MAX_REQUEST_CHARS:,} characters of a request", line=number)
    if values.is_not_text(written):
        raise ValidationError("is not UTF-8 text", line=number)
    try:
        item = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ValidationError(f"not valid JSON: {error}", line=number) from None
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        raise ValidationError("a line is a JSON string or a JSON object", line=number)
    merged = {"content": None, **defaults, **item}
    if isinstance(item.get("metadata"), dict):
        merged["metadata"] = {**defaults.get("metadata", {}), **item["metadata"]}
    if merged["content"] is None:
        raise ValidationError("content is missing", field="content", line=number)
    return merged
