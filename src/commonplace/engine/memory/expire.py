"""Which memories an expire policy means, expiring them, and erasing what was promised to be gone by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from commonplace.engine.core import REVIEW, Core
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.rows import version_part
from commonplace.engine.memory.erase import erase_drafts, must_erase
from commonplace.engine.memory.forget import CHUNK, apply_forget
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.retention import PROMISE, promise_of, retention_end
from commonplace.engine.types import Expire, ExpireResult
from commonplace.stores.base import Entry, Reach, Record, Transaction
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import Memory, Principal, replace_fields
from commonplace.wire.times import DAY_MS

_REVIEWS_AT_ONCE = 200  # of thousands that wait: reading them must keep nobody else from being answered
#: The record that says that every review has its promise recorded.
_RECORDED = ("promises", "recorded")
DEMOTION = 0.25


def conditions(policy: Expire, now: int) -> Where:
    """Everything in the policy that a store can filter by; `not_recalled_lately` decides the rest."""
    where: list[Condition] = []
    if policy.older_than_days is not None:
        where.append(Condition(("created_at",), "lt", max(now - policy.older_than_days * DAY_MS, 0)))
    if policy.type is not None:
        where.append(Condition(("type",), "eq", policy.type))
    if policy.confidence_below is not None:
        where.append(Condition(("confidence",), "lt", policy.confidence_below))
    return tuple(where)


def not_recalled_lately(memory: Memory, policy: Expire, now: int) -> bool:
    """Not recalled for so long; a memory never recalled counts from its creation."""
    if policy.no_recall_in_days is None:
        return True
    last = memory.last_recalled_at if memory.last_recalled_at is not None else memory.created_at
    return last < now - policy.no_recall_in_days * DAY_MS


async def select_expired(
    core: Core, who: Principal, request: Expire, recalled: Mapping[str, int] | None = None
) -> list[Memory]:
    """What an expire policy means right now; `recalled` are times of recalls, by id, that the store has yet to hear."""
    core.require(who, request.agent_id, "writer")
    given = (request.older_than_days, request.type, request.confidence_below, request.no_recall_in_days)
    if all(condition is None for condition in given):
        raise ValidationError(
            "policy must name at least one condition: without one it would expire everything", field="policy"
        )
    if request.no_recall_in_days is not None and "recall_tracking" not in core.primary.capabilities:
        raise ValidationError("no_recall_in_days needs a store that tracks recalls; this one does not", field="policy")
    now = core.clock()
    found = await read_all(core, Reach(who.tenant, (request.agent_id,), conditions(request, now)))
    lately = recalled or {}
    found = [replace_fields(m, last_recalled_at=lately[m.id]) if m.id in lately else m for m in found]
    return [m for m in found if not_recalled_lately(m, request, now)]


async def expire(core: Core, who: Principal, request: Expire) -> ExpireResult:
    return await apply_policy(core, who, request, await select_expired(core, who, request))


Note = Callable[[Transaction, Memory], None]


async def apply_policy(
    core: Core, who: Principal, request: Expire, found: Sequence[Memory], note: Note | None = None
) -> ExpireResult:
    """Do what the policy says to these, which it means; `note` is told of each in the unit of work that does it."""
    # What a rule keeps from being forgotten without a person is not to go by a condition either.
    memories, against = await core.policies.admitted(who, "forget", found)

    def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
        return apply_expire(tx, core, who, request, batch, note)

    done, why = await core.transact_in_chunks(who, memories, CHUNK, work)
    gone = set(done)
    if against is not None and why is None:
        why = f"the policy {against.name!r} holds some of them back; forget those by their ids"
    remaining = [] if why is None else [m.id for m in found if m.id not in gone]
    if request.action == "forget" and any(must_erase(m) for m in memories if m.id in gone):
        failed = await core.delete_migration_backups(who)
        why = why or failed
    return ExpireResult(done, remaining, why)


def apply_expire(
    tx: Transaction, core: Core, who: Principal, request: Expire, batch: Sequence[Memory], note: Note | None = None
) -> list[str]:
    if request.action == "forget":
        done = apply_forget(
            tx, core, who, request.agent_id, batch, hard=False, because="expired by policy", unchanged=True
        )
    else:
        done = _archive_or_demote(tx, who, request, batch)
    if note is not None:
        for id in done:
            if (now := tx.get(id)) is not None:  # else it was erased, as was promised of it
                note(tx, now)
    return done


def _archive_or_demote(tx: Transaction, who: Principal, request: Expire, batch: Sequence[Memory]) -> list[str]:
    unchanged = [now for m in batch if (now := tx.get(m.id)) is not None and now.version == m.version]
    parts = []
    if request.action == "demote":
        tx.demote([m.id for m in unchanged], DEMOTION)
        parts = [audit.part(m.id, {"demotion": DEMOTION}) for m in unchanged]
    else:
        for memory in unchanged:
            archived = tx.put(Entry(replace(memory, status="archived"), None, b""))
            parts.append(version_part(archived))
    if parts:
        audit.append(tx, who, "expire", request.agent_id, parts)
    return [m.id for m in unchanged]


@dataclass(slots=True)
class Overdue:
    """What was promised to be gone by now and is still there, by agent: memories, and drafts that reviews quote."""

    memories: dict[str, list[Memory]] = field(default_factory=dict)
    drafts: dict[str, list[str]] = field(default_factory=dict)
    since: int | None = None  # when the first of them was due
    promises: dict[str, str] = field(default_factory=dict)  # the key of the record of its promise, by draft
    settled: list[str] = field(default_factory=list)  # keys of promises that are due and bind nobody any more
    unrecorded: list[Record] | None = None  # promises of reviews that were made before promises were recorded

    def __len__(self) -> int:
        return sum(map(len, self.memories.values())) + sum(map(len, self.drafts.values()))

    @property
    def needs_noting(self) -> bool:
        """Whether the records of promises are not as they should be."""
        return bool(self.settled) or self.unrecorded is not None

    def _add(self, due: int | None) -> None:
        self.since = min((at for at in (self.since, due) if at is not None), default=None)


async def overdue(core: Core, who: Principal) -> Overdue:
    found = Overdue()
    over = (Condition(("expires_at",), "lte", core.clock()),)
    for agent in filter(who.may_use, await core.primary.agent_names(who.tenant)):
        reach = Reach(who.tenant, (agent,), over, statuses=("live", "archived", "deleted"))
        if memories := [m for m in await read_all(core, reach) if must_erase(m)]:
            found.memories[agent] = memories
            found._add(min(m.expires_at or 0 for m in memories))
    # A write that waits, or was turned down, became no memory, but its review quotes it and the promise was made.
    now = core.clock()
    for promise in await _due_promises(core, who.tenant, found, now):
        record = await core.primary.record(who.tenant, REVIEW, promise.value["review_id"])
        due = None if record is None else retention_end(record.value)
        if record is None or due != promise.value["due"]:
            found.settled.append(promise.key)  # approved, erased, or edited, which made another promise
        elif who.may_use(record.value["agent_id"]):
            memory_id = record.value["memory_id"]
            found.drafts.setdefault(record.value["agent_id"], []).append(memory_id)
            found.promises[memory_id] = promise.key
            found._add(due)
    return found


async def _due_promises(core: Core, tenant: str, found: Overdue, now: int) -> list[Record]:
    if await core.primary.record(tenant, *_RECORDED) is None:
        found.unrecorded = await _promises_of_reviews(core, tenant)
        return [promise for promise in found.unrecorded or () if promise.value["due"] <= now]
    due: list[Record] = []
    after: str | None = None
    limit = 1  # at first: in most minutes none is due
    while True:
        page = await core.primary.records_page(tenant, PROMISE, {}, after=after, limit=limit)
        over = [promise for promise in page if promise.value["due"] <= now]
        due += over
        if len(over) < limit:
            return due
        after, limit = page[-1].key, min(2 * limit, _REVIEWS_AT_ONCE)


async def _promises_of_reviews(core: Core, tenant: str) -> list[Record] | None:
    """Of every review; None where there are no reviews."""
    found: list[Record] | None = None
    after: str | None = None
    while reviews := await core.primary.records_page(tenant, REVIEW, {}, after=after, limit=_REVIEWS_AT_ONCE):
        made = (promise_of(record.value) for record in reviews)
        found = [*(found or ()), *(promise for promise in made if promise is not None)]
        after = reviews[-1].key
    return found


async def sweep(core: Core, who: Principal) -> int:
    """Erase what was kept under a retention promise that has run out; it has been invisible since."""
    found = await overdue(core, who)
    erased = 0
    for agent, memories in found.memories.items():

        def work(tx: Transaction, batch: Sequence[Memory], agent: str = agent) -> list[str]:
            return apply_forget(tx, core, who, agent, batch, hard=True, because="retention ended")

        # What fails is due again at the next sweep.
        done, _ = await core.transact_in_chunks(who, memories, CHUNK, work, begun=erased > 0)
        erased += len(done)
    for agent, ids in found.drafts.items():
        done = await core.transact(
            who.tenant,
            lambda tx, agent=agent, ids=ids: erase_drafts(tx, core, who, agent, ids),  # type: ignore[misc]
        )
        erased += len(done)
        found.settled += [found.promises[id] for id in done if id in found.promises]
    if found.needs_noting:
        await core.transact(who.tenant, lambda tx: _note_promises(tx, found))
    if erased:
        await core.delete_migration_backups(who)
    return erased


def _note_promises(tx: Transaction, found: Overdue) -> None:
    if found.unrecorded is not None:
        for promise in found.unrecorded:
            tx.put_record(promise)
        tx.put_record(Record(*_RECORDED, {"at": tx.now}))
    for key in found.settled:
        tx.drop_record(PROMISE, key)
