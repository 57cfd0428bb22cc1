"""*Lifecycle*: what jobs did to memories without anyone's asking, why, and the way back."""

from __future__ import annotations

from typing import Any

from commonplace.engine import UndoResult
from commonplace.ui.page import Answer, PageRequest, PageRoute, TemplatePage
from commonplace.wire.errors import Fault
from commonplace.wire.words import plural

PAGE = 20
_STATUS = {"conflict": 409, "forbidden": 403, "not_found": 404}


async def show_runs(call: PageRequest) -> Answer:
    job = call.query.get("job") or None
    lifecycle = call.engine.lifecycle
    # One more than is shown tells whether there is a next page.
    found = await lifecycle.summaries(call.who, job=job, limit=PAGE + 1, before=call.query.get("before") or None)
    shown = found[:PAGE]
    following = call.link("lifecycle", job=job, before=shown[-1]["id"]) if len(found) > PAGE else None
    jobs = [] if call.fragment else await lifecycle.status(call.who)
    values = {"runs": shown, "following": following, "job": job or "", "jobs": jobs}
    return TemplatePage("lifecycle_rows.html" if call.fragment else "lifecycle.html", values)


async def show_run(call: PageRequest) -> Answer:
    return await _run(call)


async def _run(call: PageRequest, *, said: str | None = None, problems: tuple[Fault, ...] = ()) -> Answer:
    found = await call.engine.lifecycle.show(call.who, call.path["run"])
    for problem in problems:
        call.engine.redactor.redact_fault(problem, call.who)
    values: dict[str, Any] = {
        "run": found, "more": found["action_count"] - len(found["actions"]), "may_undo": call.may("writer"),
        "said": said, "problems": [problem.summary for problem in problems],
    }  # fmt: skip
    status = _STATUS.get(problems[0].code, 400) if problems and said is None else 200
    return TemplatePage("lifecycle_run.html", values, status)


async def undo(call: PageRequest) -> Answer:
    """All that the run did, or what it did to one memory; asked twice it changes nothing the second time."""
    id = call.value("memory") or None
    try:
        done = await call.engine.lifecycle.undo(
            call.who, call.path["run"], memory_id=id, reason=call.value("reason") or None
        )
    except Fault as fault:
        return await _run(call, problems=(fault,))  # which raises where there is no such run
    return await _run(call, said=_told(done), problems=tuple(done.faults.values()))


def _told(done: UndoResult) -> str:
    if not done.restored:
        return "It was taken back already."
    left = f"; {plural(len(done.faults), 'memory')} stayed" if done.faults else ""
    return f"{plural(len(done.restored), 'memory')} brought back{left}."


ROUTES = (
    PageRoute("GET", "lifecycle", show_runs, "page_lifecycle"),
    PageRoute("GET", "lifecycle/{run}", show_run, "page_lifecycle_run"),
    PageRoute("POST", "lifecycle/{run}/undo", undo, "page_lifecycle_undo"),
)
