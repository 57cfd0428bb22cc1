"""`commonplace import`: files of our own format and of other products."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import options, output
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.errors import Fault, ValidationError

if TYPE_CHECKING:
    from commonplace.transfer.report import ImportReport

commands = Commands()


def _file(text: str) -> Path:
    # An unset variable in a script must not mean the folder that the shell happens to be in.
    if not text:
        raise ValidationError("FILE is empty: name a file, a zip or a folder, such as . for this one", field="file")
    return Path(text)


_FORMATS = ("auto", "commonplace", "amp", "chatgpt", "claude", "markdown", "mem0", "server-memory", "trusty")


@commands.add("import", existing=False, agent="Whose memory it becomes; else whose the file says, else `default`.")
def import_(
    run: Session,
    files: Annotated[
        list[Path], argument("FILE…", "A file, a zip or a folder; `-` is an export of ours on stdin.", parser=_file)
    ],
    format: Annotated[str, option("--format NAME", f"What it is: {', '.join(_FORMATS)}.", *_FORMATS)] = "auto",
    user: Annotated[str | None, option("--user NAME", "The user it is about, where the file names none.")] = None,
    approval: options.Approval = False,
    skip_broken: Annotated[
        bool, option("--skip-broken", "Import the rest of a file in which something is broken; otherwise nothing is.")
    ] = False,
    restore_erased: Annotated[
        bool, option("--restore-erased", "Of an export of ours: also what was erased here since.")
    ] = False,
    dry_run: options.DryRun = False,
) -> Answer:
    """Take in an export of ours or of another product; what is here already is left alone.

    \b
    Example:
      commonplace import everything.jsonl --dry-run
      commonplace import chatgpt-export.zip --agent assistant --user alice
      commonplace import ~/notes --format markdown
      ssh other commonplace export | commonplace import -
    """
    if format not in _FORMATS:
        raise ValidationError(f"--format takes {', '.join(_FORMATS)}, not {format!r}", field="format")
    from commonplace.interface.base import check_ids

    check_ids(user_id=user)
    run.dry_run = dry_run
    _ = run.memory  # so that what is begun below is ended with it
    given = _Options(format, user, approval, skip_broken, restore_erased, dry_run)
    reports: list[ImportReport] = []
    for path in files:
        # Of one that is refused nothing is here, and all of those before it.
        before = ", ".join(str(each) for each in files[: len(reports)]) if not dry_run else ""
        earlier = f"; {before} had been imported before it" if before else ""
        try:
            reports.append(_import(run, path, given, earlier))
        except Fault as fault:
            fault.message += earlier
            raise
    documents = [{"file": str(path), **report.document()} for path, report in zip(files, reports, strict=True)]
    return Answer({"files": documents}, lambda: _show(files, reports), run.warnings)


@dataclass(slots=True, frozen=True)
class _Options:
    format: str
    user: str | None
    approval: bool
    skip_broken: bool
    restore_erased: bool
    dry_run: bool


def _import(run: Session, path: Path, given: _Options, earlier: str) -> ImportReport:
    import tempfile

    bar = ProgressBar("importing")
    with (
        report_interrupt(lambda: _stopped(path, bar.percent, given.dry_run) + earlier),
        tempfile.TemporaryDirectory() as folder,
        bar as progress,
    ):
        try:
            return run(_import_path(run, path, _source(path, Path(folder)), given, progress))
        except OSError as error:
            raise ValidationError(f"cannot read {path}: {error.strerror or error}", field="file") from error


def _stopped(path: Path, percent: int, dry_run: bool) -> str:
    if dry_run:
        return ": nothing was changed"
    again = f"{RUN_AGAIN} for the rest, which leaves alone what is here already"
    return f" at about {percent} % of {path}: what was imported is kept, and nothing is lost; {again}"


def _source(path: Path, folder: Path) -> Path:
    """What is to be read. A pipe is waited for here, outside of the loop, where the first Ctrl-C is heard."""
    from commonplace.transfer.import_file import spool

    try:
        return spool(sys.stdin.buffer, folder) if str(path) == "-" else path.expanduser()
    except RuntimeError:
        raise ValidationError(f"cannot read {path}: there is no home folder of that user", field="file") from None


async def _import_path(run: Session, path: Path, source: Path, given: _Options, progress: ProgressBar) -> ImportReport:
    from commonplace.transfer.import_file import import_export, is_export
    from commonplace.transfer.import_source import Target, detect, import_source, refuse_other_format

    if source.exists() and not source.is_file() and not source.is_dir():  # which may never begin, or never end
        said = f"{path} is neither a file nor a folder; `commonplace import -` reads an export of ours from a pipe"
        raise ValidationError(said, field="file")
    if source.is_dir() and given.format == "commonplace":
        raise ValidationError(f"{path} is a folder, and an export of ours is a file: name that", field="file")
    if not source.is_dir():
        with source.open("rb") as file:
            start = file.read(400)
        if not start:
            named = "stdin" if str(path) == "-" else path
            raise ValidationError(
                f"{named} is empty: name the file that holds the memories, or export it again", field="file"
            )
        if given.format == "commonplace":
            refuse_other_format(source, given.format)
        if given.format == "commonplace" or (given.format == "auto" and is_export(start)):
            if run.agent is not None or given.user is not None or given.approval:
                raise ValidationError(
                    "an export of ours says itself whose memories it holds: leave --agent, --user and --approval out",
                    field="agent",
                )
            return await import_export(
                await run.memory.engine(), OPERATOR, source, skip_broken=given.skip_broken, dry_run=given.dry_run,
                restore_erased=given.restore_erased, progress=progress,
            )  # fmt: skip
    format = detect(source) if given.format == "auto" else given.format.replace("-", "_")
    target = Target(run.memory.agent_id, run.agent is not None, given.user, given.approval)
    return await import_source(
        await run.memory.engine(), OPERATOR, source, format, target, skip_broken=given.skip_broken,
        dry_run=given.dry_run, progress=progress,
    )  # fmt: skip


def _show(files: list[Path], reports: list[ImportReport]) -> None:
    for path, report in zip(files, reports, strict=True):
        for line in _lines(report.document()):
            output.line(f"{path}: {line}" if len(files) > 1 else line)
        for said in _reasons(report):
            output.note(said)


def _lines(report: dict[str, Any]) -> list[str]:
    would = "would import" if report["dry_run"] else "imported"
    lines = [f"{would} {_amounts(report['written'])}"]
    if report["updated"]:
        lines.append(f"{'would bring' if report['dry_run'] else 'brought'} up to date {_amounts(report['updated'])}")
    if report["known"]:
        lines.append(f"here already: {_amounts(report['known'])}")
    if report["staged"]:
        lines.append(f"waiting for approval: {plural(report['staged'], 'memory')} (commonplace review list)")
    return lines


def _reasons(report: ImportReport) -> list[str]:
    said = []
    for each in report.left_out.as_documents():
        such = f" ({'; '.join(each['examples'])}{', …' if each['count'] > len(each['examples']) else ''})"
        said.append(f"left out {each['count']:,}: {each['reason']}{such if each['examples'] else ''}")
    said += [f"broken, left out: {broken}" for broken in report.broken]
    if more := report.broken_count - len(report.broken):
        said.append(f"broken, left out: {more:,} more")
    if report.redacted:
        labels = ", ".join(f"{label} ×{count}" for label, count in report.redacted.items())
        said.append(f"secrets were replaced before they were kept: {labels}")
    return said


def _amounts(counts: dict[str, int]) -> str:
    named = [plural(counts[kind], kind) for kind in ("memory", "statement", "palace") if counts.get(kind)]
    return ", ".join(named) or "nothing"
