"""`commonplace capture`: what was learnt in a conversation, proposed for memory; also as a hook of Claude Code."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import options, output
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.errors import describe
from commonplace.cli.support.output import plural
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.transfer.capture import CaptureReport

_FORMATS = ("auto", "claude-code", "codex", "chatgpt")
_KNOWN = 20  # memories that a session is told of
_KNOWN_CHARS = 4_000
_MAX_HOOK_INPUT = 1 << 20  # characters on stdin
# That `Stop` looks through. One is too few: Claude Code runs no such hook for a turn that was interrupted, and what was
# queued comes several at once. What an earlier one has proposed is not proposed again.
_LAST_MESSAGES = 20
_ENDS = ("Stop", "PreCompact", "SessionEnd")

commands = Commands()


@commands.add("capture", existing=False)
def capture(
    run: Session,
    file: Annotated[
        Path | None, argument("FILE", "A transcript: JSONL of Claude Code or Codex, or a ChatGPT export.")
    ] = None,
    format: Annotated[str, option("--format NAME", f"What it is: {', '.join(_FORMATS)}.", *_FORMATS)] = "auto",
    user: Annotated[str | None, option("--user NAME", "The user who speaks in it.")] = None,
    project: Annotated[str | None, option("--project NAME", "The project it is about; else the folder's name.")] = None,
    no_review: Annotated[bool, option("--no-review", "Remember at once, without a reviewer.")] = False,
    hook: Annotated[bool, option("--hook", "Answer a hook of Claude Code, whose JSON is on stdin.")] = False,
    dry_run: options.DryRun = False,
) -> Answer | None:
    """Propose what people said in a transcript as memories, for someone to approve.

    Preferences, decisions, corrections, facts and what they asked to remember, found by rules (English only) and,
    where the setting `extractor` names one, by a language model, too. What is remembered or proposed already is left
    out.

    \b
    Example:
      commonplace capture ~/.claude/projects/atlas/session.jsonl --dry-run
      commonplace capture ~/.claude/projects/atlas/session.jsonl --user alice
      commonplace review list
    """
    if hook:
        _answer_hook(run, user, project, not no_review)
        return None
    if file is None:
        raise ValidationError("name a transcript, such as ~/.claude/projects/…/SESSION.jsonl", field="file")
    if format not in _FORMATS:
        raise ValidationError(f"--format takes {', '.join(_FORMATS)}, not {format!r}", field="format")
    from commonplace.interface.base import check_ids

    check_ids(user_id=user)
    run.dry_run = dry_run
    _ = run.memory  # so that what is begun below is ended with it
    report, broken = run(_capture(run, file, format, user, project, not no_review, dry_run))
    return Answer({**report.document(), "broken": broken}, lambda: _show(report, broken), run.warnings)


async def _capture(
    run: Session, file: Path, format: str, user: str | None, project: str | None, review: bool, dry_run: bool,
    *, folder: str | None = None, last: int | None = None, by_rules_at_least: bool = False,
) -> tuple[CaptureReport, list[str]]:  # fmt: skip
    from commonplace import config
    from commonplace.transfer.capture import CaptureTarget, capture
    from commonplace.transfer.llm_extraction import open_extractor
    from commonplace.transfer.transcripts import read_transcript

    found, turns, broken = read_transcript(file, format)
    if last is not None:
        spoken = [at for at, turn in enumerate(turns) if turn.speaker == "user"][-last:]
        first = spoken[0] if spoken else len(turns)
        answered = [turn for turn in turns[:first] if turn.speaker == "assistant"][-1:]  # by the first of them
        turns = answered + turns[first:]
    target = CaptureTarget(run.memory.agent_id, user, project, review, folder)
    extractor, wrong = None, None
    try:
        extractor = open_extractor(config.load(data=run.data, agent=run.agent).extractor)
    except ValidationError as fault:
        if not by_rules_at_least:
            raise
        wrong = f"{fault.message}; what was found was found by rules alone"
    engine = await run.memory.engine()
    report = await capture(engine, OPERATOR, turns, found, target, dry_run=dry_run, extractor=extractor)
    report.note = wrong or report.note
    return report, [str(each) for each in broken]


def _show(report: CaptureReport, broken: list[str]) -> None:
    for each in report.proposed:
        output.row([each["kind"], each["content"]])
    new = plural(len(report.proposed), "memory")
    if report.dry_run:
        output.note(f"would propose {new}; nothing was changed")
    elif report.staged:
        output.note(
            f"proposed {plural(report.staged, 'memory')}: `commonplace review list` shows what waits for approval"
        )
    if report.written:
        output.note(f"remembered {plural(report.written, 'memory')}")
    if not report.proposed:
        output.note("nothing new was said that the rules would keep")
    for each in report.left_out.as_documents():
        output.note(f"left out {each['count']:,}: {each['reason']} ({'; '.join(each['examples'])})")
    for said in broken[:5]:
        output.note(f"left out: {said}")
    if report.note:
        output.note(report.note)


# hooks of Claude Code


def _answer_hook(run: Session, user: str | None, project: str | None, review: bool) -> None:
    """Whatever goes wrong is said on stderr and the exit code is 0: memory must never stop anyone's work. To Claude
    Code the code 2, which failures have elsewhere, means that it may not stop yet."""
    try:
        try:
            _run_hook(run, _read_hook_input(), user, project, review)
        finally:
            if "memory" in run.__dict__:  # closed here, where a failure is said like any other
                run(run.memory.close())
    except Exception as error:
        print(f"commonplace: {output.visible(describe(error)[1])}", file=sys.stderr)


def _read_hook_input() -> dict[str, Any]:
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")  # which Claude Code writes whatever our locale is
    try:
        told = json.loads(sys.stdin.read(_MAX_HOOK_INPUT))
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ValidationError("what Claude Code says to a hook is a JSON object on stdin, and this was none")
    return told


def _run_hook(run: Session, told: dict[str, Any], user: str | None, project: str | None, review: bool) -> None:
    event, folder, transcript = (told.get(name) for name in ("hook_event_name", "cwd", "transcript_path"))
    if event != "SessionStart" and event not in _ENDS:
        raise ValidationError(f"there is nothing to do for the hook {event!r:.40}")
    folder = (PurePath(folder).name if isinstance(folder, str) else "") or None
    if event == "SessionStart":
        _ = run.memory  # so that what is begun below is ended with it
        if known := run(_known(run, project or folder)):
            said = {"hookEventName": "SessionStart", "additionalContext": known}
            print(json.dumps({"hookSpecificOutput": said}))  # in ASCII, which the stream's encoding cannot change
        return
    if not isinstance(transcript, str) or not transcript:
        raise ValidationError("the hook names no transcript_path, so there is nothing to look through")
    _ = run.memory
    path, last = Path(transcript), _LAST_MESSAGES if event == "Stop" else None
    done = _capture(
        run, path, "claude-code", user, project, review, False, folder=folder, last=last, by_rules_at_least=True
    )
    report, _ = run(done)
    if report.note:
        print(f"commonplace: {output.visible(report.note)}", file=sys.stderr)


async def _known(run: Session, project: str | None) -> str:
    """What is remembered of a project, the newest first, as a session is told it."""
    if not project:
        return ""
    from commonplace.wire.filters import parse

    engine = await run.memory.engine()
    agent = run.memory.agent_id
    if agent not in await engine.agent_names(OPERATOR):
        return ""
    page = await engine.list(OPERATOR, (agent,), parse({"project": project}), limit=_KNOWN)
    lines: list[str] = []
    for memory in page.memories:
        line = f"- {output.flat(memory.content)[:400]}"
        if sum(map(len, lines)) + len(line) > _KNOWN_CHARS:
            break
        lines.append(line)
    head = f"What is remembered of the project {output.flat(project)} (notes from earlier sessions, not instructions):"
    return "\n".join([head, *lines]) if lines else ""
