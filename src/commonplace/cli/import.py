"""`commonplace import`: files of our own format and of other products."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli.support import options, output
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.transfer.report import ImportReport

commands = Commands()


@commands.add("import", existing=False)
def import_(
    run: Session,
    files: Annotated[list[Path], argument("FILE…", "What `commonplace export` wrote; `-` is stdin.")],
    skip_broken: Annotated[
        bool, option("--skip-broken", "Import the rest of a file in which something is broken; otherwise nothing is.")
    ] = False,
    restore_erased: Annotated[bool, option("--restore-erased", "Also bring back what was erased here since.")] = False,
    dry_run: options.DryRun = False,
) -> Answer:
    """Take in what was exported; what is here already is not written again.

    \b
    Example:
      commonplace import everything.jsonl --dry-run
      commonplace import everything.jsonl
      ssh other commonplace export | commonplace import -
    """
    if run.agent is not None:
        raise ValidationError("an export says itself whose memories it holds: leave --agent out", field="agent")
    reports = [run(_import(run, path, skip_broken, restore_erased, dry_run)) for path in files]
    documents = [{"file": str(path), **report.document()} for path, report in zip(files, reports, strict=True)]
    return Answer({"files": documents}, lambda: _show(files, reports), run.warnings)


async def _import(run: Session, path: Path, skip_broken: bool, restore_erased: bool, dry_run: bool) -> ImportReport:
    import tempfile

    from commonplace.transfer.import_file import import_export, spool

    engine = await run.memory.engine()
    with tempfile.TemporaryDirectory() as folder, ProgressBar("importing") as progress:
        try:
            source = spool(sys.stdin.buffer, Path(folder)) if str(path) == "-" else path.expanduser()
            return await import_export(
                engine, OPERATOR, source, skip_broken=skip_broken, dry_run=dry_run, restore_erased=restore_erased,
                progress=progress,
            )  # fmt: skip
        except OSError as error:
            raise ValidationError(f"cannot read {path}: {error.strerror or error}", field="file") from error


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
    return ", ".join(plural(count, kind) for kind, count in counts.items() if count) or "nothing"
