"""See and run what happens to memories without anyone's asking.

\b
Example:
  commonplace lifecycle status
  commonplace lifecycle run expire --dry-run
  commonplace lifecycle history
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

from commonplace.cli import FAILURE, OK
from commonplace.cli.support import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import Document, minute
from commonplace.cli.support.tables import Table
from commonplace.cli.undo import ONLY_OF, undo
from commonplace.wire.errors import ValidationError

JobName = Annotated[str, argument("JOB", "The job, as `lifecycle status` lists it.")]

_UNUSED = "a job runs for every agent"

commands = Commands(__doc__)


@commands.add("status", unused=_UNUSED)
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


@commands.add("run", unused=_UNUSED)
def run_job(run: Session, job: JobName, dry_run: options.DryRun = False) -> Answer:
    """Run a job now, or say what it would do.

    \b
    Example:
      commonplace lifecycle run retain
      commonplace lifecycle run expire --dry-run
    """
    _require_no_agent(run)
    report = asdict(run(run.engine.lifecycle.run(OPERATOR, job, dry_run=dry_run)))
    said = f"{job}{' would do' if dry_run else ''}: {_said(report)}"
    notes = [f"`commonplace lifecycle show {report['run_id']}` says why"] if report["run_id"] else []
    notes += [f"{each['action']} {each['id']}: {_why(each['why'])}" for each in report["actions"]]
    return Answer(report, said, notes, exit_code=FAILURE if report["error"] else OK)


@commands.add("pause", unused=_UNUSED)
def pause(run: Session, job: JobName) -> Answer:
    """Let a job run only when someone says so, in every process on this store.

    \b
    Example:
      commonplace lifecycle pause expire
    """
    _require_no_agent(run)
    run(run.engine.lifecycle.pause(OPERATOR, job, True))
    return Answer({"job": job, "paused": True}, f"{job} is paused; `commonplace lifecycle resume {job}` ends that")


@commands.add("resume", unused=_UNUSED)
def resume(run: Session, job: JobName) -> Answer:
    """Let a paused job run again when it is due.

    \b
    Example:
      commonplace lifecycle resume expire
    """
    _require_no_agent(run)
    run(run.engine.lifecycle.pause(OPERATOR, job, False))
    return Answer({"job": job, "paused": False}, f"{job} runs when it is due")


@commands.add("history", unused=_UNUSED)
def history(
    run: Session,
    job: Annotated[str | None, option("--job JOB", "Only runs of this job.")] = None,
    limit: Annotated[int, option("--limit N", "How many at most.")] = 20,
    before: Annotated[str | None, option("--before ID", "Only runs older than this one, to read on.")] = None,
) -> Answer:
    """List runs that did something to memories, the newest first.

    \b
    Example:
      commonplace lifecycle history
      commonplace lifecycle history --job dream --limit 5
    """
    runs = run(run.memory.lifecycle_runs(job=job, limit=limit, before=before))
    rows = [
        [
            each["id"],
            each["job"],
            minute(each["at"]),
            _done(each),
            minute(each["undone_at"]) if each["undone_at"] else "",
        ]
        for each in runs
    ]
    return Answer({"runs": runs}, Table(["run", "job", "at", "what it did", "undone"], rows))


@commands.add("show", unused=_UNUSED)
def show(run: Session, run_id: Annotated[str, argument("RUN", "The run, as `lifecycle history` lists it.")]) -> Answer:
    """Show what a run did to which memory, and why.

    \b
    Example:
      commonplace lifecycle show 0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f
    """
    found = run(run.engine.lifecycle.show(OPERATOR, run_id))
    more = found["action_count"] - len(found["actions"])
    notes = [f"{more:,} more; undoing the run takes them back, too"] if more else []
    notes.append(f"`commonplace undo --run {run_id}` takes all of it back, `commonplace undo ID` one")
    return Answer(found, _actions_table(found["actions"]), notes)


commands.add("undo", agent=ONLY_OF)(undo)


def _require_no_agent(run: Session) -> None:
    # Whoever names one believes that the others are left alone, and an expiry forgets theirs.
    if run.agent is not None:
        raise ValidationError(f"{_UNUSED}; leave --agent out", field="agent")


def _actions_table(actions: list[Document]) -> Table:
    piped = [
        [each["action"], each["agent_id"], each["id"], each.get("into", ""), _why(each["why"]), each.get("content", "")]
        for each in actions
    ]
    rows = []
    for done, agent, id, into, why, content in piped:
        # Two ids beside each other and a reason do not fit on a terminal.
        rows.append([done, agent, (content, f"{id} into {into}" if into else id), why])
    return Table(["done", "agent", "memory", "why"], rows, piped)


def _why(parts: Document) -> str:
    return ", ".join(f"{name} {value}" for name, value in parts.items())


def _done(run: Document) -> str:
    """Of what can be undone, how many of each."""
    counts = Counter(each["action"] for each in run["actions"])
    more = run["action_count"] - len(run["actions"])
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) + (f" and {more:,} more" if more else "")


def _said(report: Document) -> str:
    return report["error"] or ", ".join(f"{name} {count:,}" for name, count in report["counts"].items()) or "nothing"
