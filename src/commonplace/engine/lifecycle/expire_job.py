"""The job `expire`: what is over by its own time, reviews that nobody decided, keys and runs nobody needs any more, and
standing policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commonplace.engine.core import IDEMPOTENCY, Core
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.lifecycle.run_log import Action, ActionKind, RunLog, drop_old_runs
from commonplace.engine.memory import expire
from commonplace.engine.memory.erase import must_erase
from commonplace.engine.memory.forget import CHUNK, apply_forget
from commonplace.engine.memory.read import read_all
from commonplace.engine.memory.undelete import restored_since
from commonplace.engine.memory.write import LASTING
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.runs.runs import Runs
from commonplace.engine.types import Expire
from commonplace.stores.base import Reach, Transaction
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.record import MEMORY_TYPES, Memory, Principal
from commonplace.wire.times import DAY_MS

KEEP_IDEMPOTENCY_MS = 7 * DAY_MS
KEY_SWEEP_MS = DAY_MS // 24  # where somebody writes all the time, some key is due at every moment
LEFT_ALONE_MS = 30 * DAY_MS
EVERY_AGENT = "*"
_ACTION_KINDS: dict[str, ActionKind] = {"forget": "forgotten", "archive": "archived", "demote": "demoted"}
_ACTIONS = tuple(_ACTION_KINDS)
_PAGE = 1000  # keys that are read, and dropped, at once
_CONDITIONS = ("type", "older_than_days", "no_recall_in_days", "confidence_below")


@dataclass(slots=True)
class ExpireJob:
    core: Core
    log: RecallLog
    runs: Runs
    reviews: Reviews
    policies: Sequence[Expire] = ()  # for each of which agent_id may be `*`
    every: int = 60_000
    name: str = "expire"
    keys_due: dict[str, int] = field(default_factory=dict)  # by tenant: when keys are looked at again

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        log = log or RunLog()
        counts = {"expired": 0, "by_policy": 0, "reviews": 0, "keys": 0, "runs": 0}
        counts["reviews"] = len(await self.reviews.overdue(who)) if dry_run else await self.reviews.sweep(who)
        now = self.core.clock()
        if asked or now >= self.keys_due.get(who.tenant, 0):
            counts["keys"], due = await drop_old_keys(self.core, who.tenant, dry_run=dry_run)
            if not dry_run:
                self.keys_due[who.tenant] = max(due, now + KEY_SWEEP_MS)
        if not dry_run:
            counts["runs"] = await self.runs.sweep(who.tenant)
            await drop_old_runs(self.core, who.tenant)
            await self.log.flush()  # a recall a moment ago must count before "not recalled" is decided
        for agent in await self.core.usable_agents(who):
            counts["expired"] += await self._sweep(who, agent, dry_run)
            for policy in self.policies:
                if policy.agent_id in (EVERY_AGENT, agent):
                    counts["by_policy"] += await self._apply(who, replace(policy, agent_id=agent), dry_run, log)
        return counts

    async def _sweep(self, who: Principal, agent: str, dry_run: bool) -> int:
        """What nobody can see any more becomes forgotten; a retention promise is kept by the job `retain`."""
        over = (Condition(("expires_at",), "lte", self.core.clock()),)
        reach = Reach(who.tenant, (agent,), over, statuses=("live", "archived"))
        memories = [memory for memory in await read_all(self.core, reach) if not must_erase(memory)]
        if dry_run:
            return len(memories)

        def work(tx: Transaction, batch: Sequence[Memory]) -> list[str]:
            return apply_forget(
                tx, self.core, who, agent, batch, hard=False, because="its time was over", unchanged=True
            )

        done, _ = await self.core.transact_in_chunks(who, memories, CHUNK, work)
        return len(done)

    async def _apply(self, who: Principal, policy: Expire, dry_run: bool, log: RunLog) -> int:
        found = await expire.select_expired(self.core, who, policy)
        if policy.action == "demote":  # once is enough: demoting again would change nothing but the audit
            found = [memory for memory in found if memory.demotion > expire.DEMOTION]
        # Not at once again what someone has brought back.
        found = [memory for memory in found if not restored_since(memory, self.core.clock() - LEFT_ALONE_MS)]

        def action(memory: Memory) -> Action:
            why = {"policy": policy_text(policy)}
            return Action(_ACTION_KINDS[policy.action], memory.agent_id, memory.id, memory.version, why)

        if dry_run:
            found, _ = await self.core.policies.admitted(who, "forget", found)
            for memory in found:
                log.plan(action(memory))
            return len(found)
        if not found:
            return 0
        done = await expire.apply_policy(self.core, who, policy, found, lambda tx, memory: log.note(tx, action(memory)))
        return len(done.ids)


async def drop_old_keys(core: Core, tenant: str, *, dry_run: bool = False) -> tuple[int, int]:
    """Idempotency keys that nobody will repeat any more, as whoever reads a file again does: how many there are, and
    when the next of the others is one. None that is written meanwhile will be sooner."""
    now, dropped, after = core.clock(), 0, None
    next_due = now + KEEP_IDEMPOTENCY_MS + 1
    while True:
        page = await core.primary.records_page(tenant, IDEMPOTENCY, {}, after=after, limit=_PAGE)
        brief = [record for record in page if LASTING not in record.value]
        due = {record.key: int(record.value.get("at", 0)) + KEEP_IDEMPOTENCY_MS + 1 for record in brief}
        old = [key for key, at in due.items() if at <= now]
        next_due = min([next_due, *(at for at in due.values() if at > now)])
        dropped += len(old)

        def work(tx: Transaction, keys: Sequence[str] = old) -> None:
            for key in keys:
                tx.drop_record(IDEMPOTENCY, key)

        if old and not dry_run:
            await core.transact(tenant, work)
        if len(page) < _PAGE:
            return dropped, next_due
        after = page[-1].key


def parse_policy(text: str) -> Expire:
    """`agent=alice type=episodic older_than_days=90 action=archive`, as it stands in a configuration."""
    given = dict(part.partition("=")[::2] for part in text.split())
    agent, action, type = given.pop("agent", EVERY_AGENT), given.pop("action", "archive"), given.pop("type", None)
    known = ("older_than_days", "no_recall_in_days", "confidence_below")
    if wrong := sorted(given.keys() - set(known)):
        raise _wrong(text, f"there is no {wrong[0]!r:.80}; there are agent, type, action, {', '.join(known)}")
    if action not in _ACTIONS or (type is not None and type not in MEMORY_TYPES):
        raise _wrong(text, f"action is one of {', '.join(_ACTIONS)}, type one of {', '.join(MEMORY_TYPES)}")
    if type is None and not given:
        raise _wrong(text, "it must name at least one condition: without one it would expire everything")
    try:
        days = {name: int(given[name]) for name in known[:2] if name in given}
        below = float(given["confidence_below"]) if "confidence_below" in given else None
    except ValueError:
        raise _wrong(text, "days are whole numbers, confidence_below is a number from 0 to 1") from None
    if any(each < 1 for each in days.values()) or (below is not None and not 0 <= below <= 1):
        raise _wrong(text, "days are at least 1, confidence_below is from 0 to 1")
    return Expire(agent, type=type, confidence_below=below, action=action, **days)  # type: ignore[arg-type]


def policy_text(policy: Expire) -> str:
    """As it stands in a configuration, less the agent."""
    given = [f"{name}={value}" for name in _CONDITIONS if (value := getattr(policy, name)) is not None]
    return " ".join([*given, f"action={policy.action}"])


def _wrong(text: str, problem: str) -> ValidationError:
    return ValidationError(f"lifecycle.expire: {text!r:.120}: {problem}", field="lifecycle.expire")
