"""See and run what happens to memories without anyone's asking.

\b
Example:
  commonplace lifecycle status
  commonplace lifecycle run expire --dry-run
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from commonplace.cli import FAILURE, OK
from commonplace.cli.support import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument
from commonplace.cli.support.output import Document, Table, minute, plural
from commonplace.wire.errors import NotFound

JobName = Annotated[str, argument("JOB", "The job, as `lifecycle status` lists it.")]

commands = Commands(__doc__)


@commands.add("status")
def status(run: Session) -> Answer:
    """List the jobs, when each ran last and what it did.

    \b
    Example:
      commonplace lifecycle status
    """
    jobs = run(run.engine.lifecycle.status(OPERATOR))
    rows = [
        [
            job["job"],
            "paused" if job["paused"] else f"every {job['every_seconds']} s",
            minute(job["last_run"]["at"]) if job["last_run"] else "never",
            _said(job["last_run"]) if job["last_run"] else "",
        ]
        for job in jobs
    ]
    return Answer({"jobs": jobs}, Table(["job", "due", "last run", "what it did"], rows))


@commands.add("run")
def run_job(run: Session, job: JobName, dry_run: options.DryRun = False) -> Answer:
    """Run a job now, or say what it would do.

    \b
    Example:
      commonplace lifecycle run retain
      commonplace lifecycle run expire --dry-run
    """
    report = asdict(run(run.engine.lifecycle.run(OPERATOR, job, dry_run=dry_run)))
    said = f"{job}{' would do' if dry_run else ''}: {_said(report)}"
    return Answer(report, said, exit_code=FAILURE if report["error"] else OK)


@commands.add("pause")
def pause(run: Session, job: JobName) -> Answer:
    """Let a job run only when someone says so, in every process on this store.

    \b
    Example:
      commonplace lifecycle pause expire
    """
    run(run.engine.lifecycle.pause(OPERATOR, job, True))
    return Answer({"job": job, "paused": True}, f"{job} is paused; `commonplace lifecycle resume {job}` ends that")


@commands.add("resume")
def resume(run: Session, job: JobName) -> Answer:
    """Let a paused job run again when it is due.

    \b
    Example:
      commonplace lifecycle resume expire
    """
    run(run.engine.lifecycle.pause(OPERATOR, job, False))
    return Answer({"job": job, "paused": False}, f"{job} runs when it is due")


@commands.add("undo")
def undo(
    run: Session,
    ids: Annotated[list[str], argument("ID", "A memory's whole id, as the audit or its history names it.")],
) -> Answer:
    """Bring back what was merged into another memory, archived or forgotten.

    \b
    Example:
      commonplace lifecycle undo 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f --agent my-project
    """
    agent, back = run.memory.agent_id, []
    for id in ids:
        try:
            back.append(run(run.engine.unmerge(OPERATOR, agent, id)))
        except NotFound:
            back.append(run(run.engine.undelete(OPERATOR, agent, id)))
    return Answer({"ids": [memory.id for memory in back]}, f"brought back {plural(len(back), 'memory')}")


def _said(report: Document) -> str:
    return report["error"] or ", ".join(f"{name} {count:,}" for name, count in report["counts"].items()) or "nothing"
