"""`commonplace export`: memories with their history, as one file that `import` takes."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated, Any

from commonplace.cli.support import output
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, option
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import plural, size
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.durable import sync_file, sync_folder
from commonplace.wire.errors import Conflict, Unavailable, ValidationError

commands = Commands()


@commands.add("export", agent="Only this agent; every agent where none is named.")
def export(
    run: Session,
    file: Annotated[Path | None, option("--output -o FILE", "Where it goes; stdout where nothing is said.")] = None,
    user: Annotated[str | None, option("--user NAME", "Only what concerns this user.")] = None,
    everything: Annotated[bool, option("--all", "Every agent, as where none is named.")] = False,
    force: Annotated[bool, option("--force", "Replace a file that is there.")] = False,
) -> Answer | None:
    """Write memories, their history, statements and palaces to one file that `import` takes.

    \b
    Example:
      commonplace export -o everything.jsonl
      commonplace export --agent assistant -o assistant.jsonl
      commonplace export --user alice -o alice.jsonl
    """
    from commonplace.interface.base import check_ids

    check_ids(user_id=user)
    if everything and (run.agent or user):
        raise ValidationError("--all is everything: leave --agent and --user out, or leave --all out", field="all")
    if file is None and run.as_json:
        raise ValidationError("the export itself would be on stdout: name a file with -o for --json", field="output")
    target = None if file is None or str(file) == "-" else file.expanduser()
    if target is not None:
        _check_target(target, force)
    # Not `run.memory.agent_id`: COMMONPLACE_AGENT says who writes, and must not narrow an export unnoticed.
    with report_interrupt(lambda: _stopped(target)):
        counts, left_out = run(_write(run, target, run.agent, user))
    what = ", ".join(plural(counts[kind], word) for kind, word in _WORDS.items() if counts[kind])
    shown = f"exported {what or 'nothing'}"
    remarks = [_left_out(left_out)] if left_out else []
    if target is None:
        print(shown, file=sys.stderr)
        output.remarks(remarks)
        return None
    return Answer(
        {"path": str(target), "counts": counts, "left_out_agents": left_out},
        f"{shown} to {target} ({size(target.stat().st_size)})",
        remarks,
        nothing=not what,
    )


_WORDS = {"memory": "memory", "version": "version", "statement": "statement", "palace": "palace"}


def _check_target(target: Path, force: bool) -> None:
    """Only a file is replaced, and only where that is asked for: root could put one in the place of a device."""
    if target == Path():
        raise ValidationError("--output names no file; give one, or leave -o out for stdout", field="output")
    if target.is_dir():
        raise ValidationError(f"{target} is a folder; name a file in it", field="output")
    if target.exists() and not target.is_file():
        raise ValidationError(f"{target} is no file; leave -o out and redirect stdout to it", field="output")
    if target.exists() and not force:
        raise Conflict(f"{target} is there already; name another file, or replace it with --force")


def _resolved(target: Path) -> Path:
    """A link stays one, as where a shell redirects to it."""
    try:
        return target.resolve()
    except (OSError, RuntimeError):
        raise ValidationError(f"cannot write {target}: its links lead in a circle", field="output") from None


def _stopped(target: Path | None) -> str:
    if target is None:
        return f": what was written is not whole, and `import` refuses it; nothing is lost: {RUN_AGAIN}"
    as_before = "is as it was" if target.exists() else "was not written"
    return f": {target} {as_before}, and nothing is lost; {RUN_AGAIN}"


def _left_out(agents: int) -> str:
    whose = "name holds a secret" if agents == 1 else "names hold a secret"
    return f"left out {plural(agents, 'agent')} whose {whose}"


async def _write(run: Session, target: Path | None, agent: str | None, user: str | None) -> tuple[dict[str, Any], int]:
    """The counts, and how many agents were left out."""
    import tempfile

    from commonplace.transfer.export_file import ExportFile

    engine = await run.memory.engine()
    with ProgressBar("exporting") as progress:
        lines = ExportFile(engine, OPERATOR, agent=agent, user=user, progress=progress)
        if target is None:
            async for line in lines.lines():
                sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            return dict(lines.counts), lines.left_out_agents
        place = _resolved(target)
        beside: Path | None = None
        try:
            # Beside it first: whoever finds the file finds all of it. No other process has that name, as one in another
            # container might that has the same number.
            handle, partial = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
            beside = Path(partial)
            with open(handle, "wb") as file:
                async for line in lines.lines():
                    file.write(line)
                file.flush()
                sync_file(file.fileno())
            beside.replace(place)
            sync_folder(place.parent)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Unavailable(f"cannot write {target}: {error.strerror}", hint="free some space first") from error
            raise ValidationError(f"cannot write {target}: {error.strerror or error}", field="output") from error
        finally:
            if beside is not None:
                beside.unlink(missing_ok=True)
        return dict(lines.counts), lines.left_out_agents
