"""Runs: what an agent sees from its start to its end, what it notes meanwhile, and the secrets it must not keep."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core
from commonplace.engine.memory.read import get
from commonplace.engine.redaction import Secrets
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.types import Snapshot
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import NotFound, SecretLeakage, ValidationError
from commonplace.wire.record import MIN_SECRET_CHARS, Memory, Principal
from commonplace.wire.times import DAY_MS

RUNS = "run"  # every run of a tenant and when it was last used, so that idle ones are found
ITSELF = "run"  # the key of the run among its own records
BACKENDS = ("scratchpad", "conversation")  # where it notes things for itself
_OUTCOME = "outcome"
_FIELDS = ("id", "tenant", "owner", "used", "ref", "agent")  # of a run, which are kept under their own names
_WITHIN = (*BACKENDS, _OUTCOME)  # all that goes when it ends
IDLE_MS = 7 * DAY_MS
TOUCHED_MS = 3_600_000  # a use is written down at most this often, and idle runs are looked for as often
SECRET_CHARS = (MIN_SECRET_CHARS, 65_536)
MAX_SECRETS = 100
MAX_SECRET_CHARS = 262_144  # of all together: each is looked for in many spellings
_ID = re.compile(r"run_[0-9a-f]{32}\Z")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_FORGOTTEN = (
    "the secrets of this run were kept in memory only and are gone since the server was restarted, so what it writes "
    "can no longer be checked for them; end it and start another with its secrets"
)


@dataclass(slots=True, frozen=True)
class Run:
    id: str
    tenant: str
    owner: str  # the name of whoever started it
    snapshot: Snapshot
    used: int
    ref: str | None = None  # the memoryRef it was started with
    agent: str | None = None  # whose memory that is
    has_secrets: bool = False  # of its own, which it came with

    def open_to(self, who: Principal) -> bool:
        """A run of an agent belongs to all who may use that agent; any other to its owner and to those who may all."""
        if self.agent is not None:
            return who.may_use(self.agent)
        return who.name == self.owner or who.uses_all_agents


class Runs:
    """The runs of every tenant. Their secrets are in here and nowhere else."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._secrets: dict[tuple[str, str], Secrets] = {}  # by tenant and run
        self._used: dict[tuple[str, str], int] = {}  # more exact than what is written down
        self._tidied: dict[str, int] = {}

    async def start(
        self,
        who: Principal,
        *,
        ref: str | None = None,
        scope: MemoryScope | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Run:
        """From now on the run sees what is there now; `secrets` are kept out of everything it writes."""
        require_role(who, "reader")
        check_secrets(secrets or {})
        held = await asyncio.to_thread(Secrets.of, secrets) if secrets else None
        if ref is not None:
            self._core.redactor.check_name(ref, "memoryRef", held)
        if secrets and self._core.settings.redaction.mode == "off":
            raise ValidationError(
                "redaction is off, so no secret could be kept out; leave secrets out", field="secrets"
            )
        await self._tidy(who.tenant)
        id = f"run_{token_hex(16)}"

        def work(tx: Transaction) -> Run:
            agent = scope.agent if scope else None
            run = Run(id, who.tenant, who.name, Snapshot(tx.seq, tx.now), tx.now, ref, agent, bool(secrets))
            _keep(tx, run)
            return run

        run = await self._core.transact(who.tenant, work)
        if held is not None:
            self._secrets[who.tenant, id] = held
        return run

    async def find(self, who: Principal, id: str) -> Run:
        """The run, if the caller may use it and it is not over."""
        self._core.check_names(runId=id)
        found = await self._core.primary.record(who.tenant, kind(id), ITSELF) if _ID.match(id) else None
        if found is None or not (run := _run(found.value)).open_to(who):
            raise run_not_found(id)
        if self._idle(who.tenant, id, found.value):
            await self._finish(who.tenant, id)
            raise run_not_found(id)
        return run

    async def use(self, who: Principal, id: str) -> Run:
        """The run, noted as used; one that ended, idled out or is not the caller's is unknown."""
        run = await self.find(who, id)
        now = self._core.clock()
        self._used[who.tenant, id] = now
        if now - run.used >= TOUCHED_MS:
            await self._core.transact(who.tenant, lambda tx: _touch(tx, id))
            await self._tidy(who.tenant)
        return run

    async def end(self, who: Principal, id: str) -> None:
        run = await self.find(who, id)
        if who.name != run.owner:
            require_role(who, "writer")  # what others noted in it goes with it
        await self._finish(who.tenant, id)

    async def keep_outcome(self, who: Principal, run: Run, value: dict[str, Any], about: Sequence[str]) -> None:
        """Keep with the run what came of it; `about` are the memories it quotes, which take it along when erased."""

        def work(tx: Transaction) -> None:
            require_open(tx, run)
            tx.put_record(Record(kind(run.id, _OUTCOME), "", value, tuple(about)))

        await self._core.transact(who.tenant, work)

    async def outcome(self, who: Principal, run: Run) -> dict[str, Any] | None:
        found = await self._core.primary.record(who.tenant, kind(run.id, _OUTCOME), "")
        return None if found is None else found.value

    async def read(self, who: Principal, scope: MemoryScope, id: str, snapshot: Snapshot | None) -> Memory | None:
        """A memory of a scope by its id, as a run that began at `snapshot` sees it, else as it is now."""
        self._core.check_names(id=id)
        if not is_uuid(id):  # ids that authors chose in other protocols are theirs to use
            return None
        try:
            memory = await get(self._core, who, scope.agent, id, snapshot=snapshot)
        except NotFound:
            return None
        seen = await self._core.policies.shown_versions(who, [memory])
        return seen[0] if seen and memory.id == id and scope.covers(memory) else None

    def secrets_of(self, run: Run | None) -> Secrets | None:
        """What must not be in anything the run writes; refused when that is no longer known."""
        if run is None or not run.has_secrets:
            return None
        held = self._secrets.get((run.tenant, run.id))
        if held is None:
            raise SecretLeakage(_FORGOTTEN)
        return held

    async def sweep(self, tenant: str) -> int:
        """End the runs that nobody has used for seven days, and finish what an earlier end left."""
        # Before looking, so that what a run has that starts meanwhile is left alone.
        held = [key for key in (*self._secrets, *self._used) if key[0] == tenant]
        known = await self._core.primary.records(tenant, RUNS)
        over = [
            record.key for record in known if "ended" in record.value or self._idle(tenant, record.key, record.value)
        ]
        for id in over:
            await self._finish(tenant, id)
        there = {record.key for record in known}
        for key in held:
            if key[1] not in there:  # another process ended it
                self._secrets.pop(key, None)
                self._used.pop(key, None)
        return len(over)

    async def _tidy(self, tenant: str) -> None:
        now = self._core.clock()
        if now - self._tidied.get(tenant, 0) >= TOUCHED_MS:
            self._tidied[tenant] = now
            await self.sweep(tenant)

    def _idle(self, tenant: str, id: str, value: dict[str, Any]) -> bool:
        return self._core.clock() - max(int(value["used"]), self._used.get((tenant, id), 0)) >= IDLE_MS

    async def _finish(self, tenant: str, id: str) -> None:
        self._secrets.pop((tenant, id), None)
        self._used.pop((tenant, id), None)

        def end(tx: Transaction) -> None:
            tx.drop_record(kind(id), ITSELF)
            tx.put_record(Record(RUNS, id, {"used": tx.now, "ended": True}))

        # First nothing more can be noted in it, then what was noted goes: a stop in between leaves work for `sweep`.
        await self._core.transact(tenant, end)
        noted = [record for part in _WITHIN for record in await self._core.primary.records(tenant, kind(id, part))]

        def clear(tx: Transaction) -> None:
            for record in noted:
                tx.drop_record(record.kind, record.key)
            tx.drop_record(RUNS, id)

        await self._core.transact(tenant, clear)


def kind(id: str, part: str = "") -> str:
    """A run's records have kinds of their own, because records are read by kind."""
    return f"run:{id}:{part}" if part else f"run:{id}"


def run_not_found(id: str) -> NotFound:
    """The same sentence whether it never was, has ended, or is someone else's."""
    return NotFound(f"no run {id:.80}, or it has ended; `POST /openwop/runs` starts one")


def require_open(tx: Transaction, run: Run) -> None:
    if tx.record(kind(run.id), ITSELF) is None:
        raise run_not_found(run.id)


def check_secrets(given: Any) -> None:
    """What may be given as secrets. No message of ours repeats one."""
    if not isinstance(given, Mapping):
        raise ValidationError("secrets must be an object of labels and values", field="secrets")
    if len(given) > MAX_SECRETS:
        raise ValidationError(f"secrets must hold at most {MAX_SECRETS}, not {len(given)}", field="secrets")
    least, most = SECRET_CHARS
    for label, value in given.items():
        if not isinstance(label, str) or not _LABEL.match(label):
            raise ValidationError(
                "a label in secrets must be 1 to 64 of the characters A-Z a-z 0-9 _ . -", field="secrets"
            )
        if not isinstance(value, str) or not least <= len(value) <= most:
            sentence = f"secrets.{label} must be text of {least} to {most:,} characters"
            raise ValidationError(sentence, field=f"secrets.{label}")
    if (size := sum(map(len, given.values()))) > MAX_SECRET_CHARS:
        sentence = f"secrets must hold at most {MAX_SECRET_CHARS:,} characters together, not {size:,}"
        raise ValidationError(sentence, field="secrets")


def _keep(tx: Transaction, run: Run) -> None:
    value = {name: getattr(run, name) for name in _FIELDS} | {"seq": run.snapshot.seq, "at": run.snapshot.at}
    value["guarded"] = run.has_secrets  # the name it has in stores that are in use
    tx.put_record(Record(kind(run.id), ITSELF, value))
    tx.put_record(Record(RUNS, run.id, {"used": run.used}))


def _touch(tx: Transaction, id: str) -> None:
    record = tx.record(kind(id), ITSELF)
    if record is not None:
        tx.put_record(Record(record.kind, record.key, {**record.value, "used": tx.now}))
        tx.put_record(Record(RUNS, id, {"used": tx.now}))


def _run(value: dict[str, Any]) -> Run:
    fields = {name: value[name] for name in _FIELDS}
    return Run(snapshot=Snapshot(value["seq"], value["at"]), has_secrets=value["guarded"], **fields)
