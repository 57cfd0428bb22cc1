"""What each run of a job did to which memory and why, so that people can see it and take it back.

Each action is noted in the unit of work that does it: a run that was killed has noted exactly what it did. Nothing
here quotes a memory, and what was erased is noted nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core
from commonplace.engine.memory.read import readable
from commonplace.engine.memory.undo import UndoResult, undo_one
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import is_uuid, mint_id
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

RUN = "lifecycle_run"  # the kind of a run's own record; its actions are of a kind of each run's own
KEPT_MS = 90 * DAY_MS
SHOWN_ACTIONS = 200  # of one run, at once
_SHOWN_CHARS = 200  # of a memory
MAX_RUNS = 100  # of one page

ActionKind = Literal["merged", "promoted", "archived", "forgotten", "demoted"]
Document = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Action:
    """What was done to a memory; undoing it takes all of the action back. `version` is the one it left."""

    action: ActionKind
    agent_id: str
    id: str
    version: int
    why: Document  # parts of a score, a similarity, a policy
    into: str | None = None  # what it was merged into or promoted to
    sources: tuple[str, ...] = ()  # all that were promoted together, where there are several


@dataclass(slots=True)
class RunLog:
    """Of one run. Without an id it notes nothing, and with `planned` only what would be done."""

    job: str = ""
    by: str = ""
    at: int = 0
    id: str | None = None
    planned: list[Action] = field(default_factory=list)

    def note(self, tx: Transaction, action: Action) -> None:
        if self.id is None:
            return
        if tx.record(RUN, self.id) is None:
            tx.put_record(Record(RUN, self.id, {"job": self.job, "by": self.by, "at": self.at}))
        # In the order done: a unit of work knows its place in the tenant's sequence.
        tx.put_record(Record(_actions(self.id), f"{tx.seq:016d} {action.id}", asdict(action), _about(action)))

    def plan(self, action: Action) -> None:
        if len(self.planned) < SHOWN_ACTIONS:
            self.planned.append(action)

    def finish(self, tx: Transaction, report: Document) -> bool:
        """Say how it ended, if it did anything; whether it did."""
        record = None if self.id is None else tx.record(RUN, self.id)
        if record is not None:
            tx.put_record(replace(record, value={**record.value, **report}))
        return record is not None


def _actions(run_id: str) -> str:
    return f"{RUN} {run_id}"


def new_log(core: Core, who: Principal, job: str) -> RunLog:
    now = core.clock()
    return RunLog(job, who.name, now, mint_id(now))


# reading runs


async def runs(
    core: Core, who: Principal, *, job: str | None = None, limit: int = 20, before: str | None = None
) -> list[Document]:
    """Runs that did something to memories the caller may use, the newest first, each with its actions."""
    return await _newest(core, who, partial(_shown, core, who), job=job, limit=limit, before=before)


async def summaries(
    core: Core, who: Principal, *, job: str | None = None, limit: int = 20, before: str | None = None
) -> list[Document]:
    """As `runs`, with how many of what each did and the first text in the place of the actions: what a list shows of
    runs with thousands of them."""

    async def summary(record: Record) -> Document | None:
        actions = await _of(core, who, record.key)
        if not actions:
            return None
        text = await _texts(core, who, actions[:1])
        done = Counter(action.action for action in actions)
        return {**await _header(core, who, record), "done": dict(done), **text(actions[0])}

    return await _newest(core, who, summary, job=job, limit=limit, before=before)


async def _newest(
    core: Core, who: Principal, show: Callable[[Record], Awaitable[Document | None]], *,
    job: str | None, limit: int, before: str | None,
) -> list[Document]:  # fmt: skip
    require_role(who, "reader")
    if not 1 <= limit <= MAX_RUNS:
        raise ValidationError(f"limit must be a whole number from 1 to {MAX_RUNS}, not {limit}", field="limit")
    if before is not None and not is_uuid(before):
        raise ValidationError(f"before is the id of a run, not {before!r:.80}", field="before")
    found: list[Document] = []
    for record in sorted(await core.primary.records(who.tenant, RUN), key=lambda r: r.key, reverse=True):
        if (before is None or record.key < before) and job in (None, record.value["job"]):
            seen = await show(record)
            if seen is not None:
                found.append(seen)
            if len(found) == limit:
                break
    return found


async def run(core: Core, who: Principal, run_id: str) -> Document:
    require_role(who, "reader")
    core.check_names(run_id=run_id)
    record = await core.primary.record(who.tenant, RUN, run_id) if is_uuid(run_id) else None
    seen = None if record is None else await _shown(core, who, record)
    if seen is None:
        raise _no_run(run_id)
    return seen


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"no run {run_id:.80}", hint="`commonplace lifecycle history` shows what there is")


async def _shown(core: Core, who: Principal, record: Record) -> Document | None:
    """None where nothing of it is the caller's business."""
    actions = await _of(core, who, record.key)
    if not actions:
        return None
    first = actions[:SHOWN_ACTIONS]
    texts = await _texts(core, who, first)
    shown = [{**to_document(action), **texts(action)} for action in first]
    return {**await _header(core, who, record), "actions": shown, "action_count": len(actions)}


async def _header(core: Core, who: Principal, record: Record) -> Document:
    """When, by whom, and how it ended."""
    ended = {"duration_ms": None, "counts": {}, "error": None, "undone_at": None, "undone_by": None, **record.value}
    return {"id": record.key, **(ended if await sees_all(core, who) else without_numbers(ended))}


async def sees_all(core: Core, who: Principal) -> bool:
    """Whether numbers of the whole tenant tell the caller of nothing but what they may read."""
    return who.uses_all_agents and not await core.policies.withholds(who)


def without_numbers(ended: Document) -> Document:
    """How a run ended, for a caller who may not see all of it: a problem, too, may name another's memory."""
    error = None if ended["error"] is None else "it failed; whoever may read everything can see why"
    return {**ended, "counts": {}, "error": error}


async def _of(core: Core, who: Principal, run_id: str) -> list[Action]:
    records = sorted(await core.primary.records(who.tenant, _actions(run_id)), key=lambda r: r.key)
    found = [Action(**{**r.value, "sources": tuple(r.value["sources"])}) for r in records]
    return await visible(core, who, [action for action in found if who.may_use(action.agent_id)])


async def visible(core: Core, who: Principal, actions: Sequence[Action]) -> list[Action]:
    """Those that are about nothing that a rule withholds: an action is told, and undone, as a whole or not at all."""
    withheld = await core.policies.withheld(who, (name for action in actions for name in _about(action)))
    return [action for action in actions if withheld.isdisjoint(_about(action))]


def _about(action: Action) -> tuple[str, ...]:
    """The memories that it names."""
    return tuple(dict.fromkeys(name for name in (action.id, action.into, *action.sources) if name))


def to_document(action: Action) -> Document:
    document = {name: value for name, value in asdict(action).items() if value not in (None, ())}
    return {**document, "sources": list(action.sources)} if action.sources else document


async def _texts(core: Core, who: Principal, actions: Sequence[Action]) -> Callable[[Action], Document]:
    """The beginning of what each is about, where the caller can read it: of what is gone, what it became part of."""
    ids = list(dict.fromkeys(name for action in actions for name in (action.id, action.into) if name))
    now = core.clock()
    there = [m for m in await core.primary.get(who.tenant, ids) if readable(m, now)]
    by_id: dict[str, Memory] = {m.id: m for m in await core.policies.shown(who, there)}

    def text(action: Action) -> Document:
        memory = by_id.get(action.id) or by_id.get(action.into or "")
        return {} if memory is None else {"content": memory.content[:_SHOWN_CHARS]}

    return text


# undoing runs


async def undo_run(
    core: Core, who: Principal, run_id: str, reason: str | None = None, memory_id: str | None = None
) -> UndoResult:
    """Everything it did, or all that it did to one memory, the last first; what someone has changed since stays as it
    is, and is named."""
    require_role(who, "writer")
    core.check_names(run_id=run_id, memory_id=memory_id)
    actions = await _of(core, who, run_id) if is_uuid(run_id) else []
    if not actions:
        raise _no_run(run_id)
    if memory_id is not None:
        actions = [action for action in actions if action.id == memory_id]
        if not actions:
            raise NotFound(f"run {run_id} did nothing to a memory {memory_id:.80}")
    why = None if reason is None else await core.redact_async(reason, "reason")
    result = UndoResult()
    for action in reversed(actions):
        await undo_one(core, who, action.id, result, agent_id=action.agent_id, reason=why, version=action.version)
    result.settle()

    def work(tx: Transaction) -> None:
        if (record := tx.record(RUN, run_id)) is not None:
            tx.put_record(Record(RUN, run_id, {**record.value, "undone_at": tx.now, "undone_by": who.name}))

    if result.restored and memory_id is None:
        await core.transact(who.tenant, work)
    return result


async def drop_old_runs(core: Core, tenant: str) -> None:
    old = core.clock() - KEPT_MS
    for header in await core.primary.records(tenant, RUN):
        if header.value["at"] >= old:
            continue
        keys = [record.key for record in await core.primary.records(tenant, _actions(header.key))]

        def work(tx: Transaction, id: str = header.key, keys: Sequence[str] = tuple(keys)) -> None:
            for key in keys:
                tx.drop_record(_actions(id), key)
            tx.drop_record(RUN, id)

        await core.transact(tenant, work)
