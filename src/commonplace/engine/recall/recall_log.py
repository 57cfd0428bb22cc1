"""Recall counters and recall audit, written behind the answer so that reading never waits for a disk."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.recall.saved_recalls import SavedRecalls
from commonplace.stores.base import Transaction
from commonplace.wire.canonical import new_salt, sha256_hex
from commonplace.wire.errors import Fault, Unavailable, with_public
from commonplace.wire.record import Principal

DELAY_SECONDS = 0.5
MAX_RETRY_SECONDS = 60.0
_MAX_WAITING = 2000  # recalls held back before the next one is written at once
#: That a failing store may leave unwritten. Then nothing more is answered: no recall is without its entry.
MAX_UNWRITTEN = 10_000
#: For a store to take what is left when this process ends: longer than another process may keep it locked.
CLOSE_SECONDS = 40.0
_ASK_SECONDS = 2.0
_IDS_SHOWN = 20
log = logging.getLogger("commonplace.engine")


@dataclass(slots=True)
class RecallEntry:
    who: Principal
    agent_id: str
    query: str
    ids: list[str]
    at: int
    counted: bool = True  # what is read within a run is told in the audit and counts for nothing
    tail: frozenset[str] = frozenset()  # of `ids`, those that were shown and do not answer
    hashed: tuple[str, str] | None = None  # salt and hash of a question that is no longer known itself

    @property
    def recalled(self) -> list[str]:
        """What counts as recalled: a tail that is only shown must not raise importance, nor keep what is stale."""
        return [id for id in self.ids if id not in self.tail] if self.counted else []

    def to_saved(self) -> dict[str, Any]:
        """As it is kept in a file: without the question."""
        kept = {"agent_id": self.agent_id, "ids": self.ids, "at": self.at, "counted": self.counted}
        return {**kept, "principal": self.who.name, "tail": sorted(self.tail), "hashed": self.hashed or _hashed(self)}

    @classmethod
    def from_saved(cls, tenant: str, saved: dict[str, Any]) -> RecallEntry:
        who = Principal(saved["principal"], tenant)
        fields = {name: saved[name] for name in ("agent_id", "ids", "at", "counted")}
        return cls(who, query="", tail=frozenset(saved["tail"]), hashed=tuple(saved["hashed"]), **fields)


@dataclass(slots=True)
class WriteFailure:
    """Why what waits is not in the ledger yet; it is tried again."""

    error: str
    failing_since: int
    attempts: int


class RecallLog:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: list[RecallEntry] = []
        self._writing: list[list[RecallEntry]] = []  # handed to the store and not answered yet
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self.failures: dict[str, WriteFailure] = {}  # by tenant
        self._saved = SavedRecalls(core.settings.folder)
        self._first_hashes: dict[str, str] = {}  # of each tenant's ledger, which never changes once there is one

    def __len__(self) -> int:
        return len(self._waiting)

    def unwritten(self, tenant: str) -> list[RecallEntry]:
        """For those who only look, and must not wait for the write lock, to take into account."""
        held = itertools.chain(*self._writing, self._waiting)
        return [recalled for recalled in held if recalled.who.tenant == tenant]

    async def unwritten_report(self, tenant: str) -> dict[str, Any] | None:
        """What is owed to the ledger although it was tried, by this process or by one that has ended; None where
        nothing is."""
        left = await asyncio.to_thread(self._saved.list_for, tenant) if self._saved.exist else []
        known = [asdict(failure) for failure in (self.failures.get(tenant),) if failure is not None]
        known += [{name: getattr(file, name) for name in ("error", "failing_since", "attempts")} for file in left]
        if not known:
            return None
        waiting = len(self.unwritten(tenant)) + sum(len(file.recalls) for file in left)
        return {**min(known, key=lambda each: each["failing_since"]), "waiting": waiting}

    async def note(self, recalled: RecallEntry) -> None:
        if self.failures and len(self._waiting) >= MAX_UNWRITTEN:
            await self.flush()
            if self.failures and len(self._waiting) >= MAX_UNWRITTEN:
                why = next(iter(self.failures.values())).error
                waiting = f"{len(self._waiting):,} recalls wait to be written to the ledger, which fails"
                stopped = "nothing more is recalled until that is mended"
                raise with_public(Unavailable(f"{waiting}: {why}; {stopped}"), f"{waiting}; {stopped}")
        if self._core.settings.folder is not None and not self._core.settings.store:
            # An object of the program's own has no address: what it is owed is known by its ledger alone, which is
            # asked for while it answers.
            with suppress(Exception):  # an object of others may raise anything; who recalled has their answer
                await self._first_hash(recalled.who.tenant)
        self.hold([recalled])
        full = len(self._waiting) >= _MAX_WAITING and not self.failures  # of a store that fails the timer takes care
        if self._core.settings.recalls_at_once or full:
            await self.flush()

    def hold(self, recalls: list[RecallEntry]) -> None:
        """Until the next flush, or until a transaction that is made anyway takes them along."""
        self._waiting += recalls
        if self._waiting and self._timer is None:
            tried = max((failure.attempts for failure in self.failures.values()), default=0)
            delay = min(DELAY_SECONDS * 2 ** min(tried, 10), MAX_RETRY_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(delay, self._due)

    @contextmanager
    def flush_with(self, tenant: str) -> Iterator[Callable[[Transaction], None]]:
        """What a unit of work of this tenant's calls to write all that waits; if the work fails, it waits again."""
        recalls = [recalled for recalled in self._waiting if recalled.who.tenant == tenant]
        self._waiting = [recalled for recalled in self._waiting if recalled.who.tenant != tenant]
        self._writing.append(recalls)
        try:
            yield lambda tx: _write(tx, recalls)
        except BaseException:
            self.hold(recalls)
            raise
        finally:
            self._writing.remove(recalls)

    def _due(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self.flush())

    async def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saved.exist:
            await self._write_saved()
        waiting, self._waiting = self._waiting, []
        by_tenant: dict[str, list[RecallEntry]] = {}
        for recalled in waiting:
            by_tenant.setdefault(recalled.who.tenant, []).append(recalled)
        for tenant, recalls in by_tenant.items():
            # Whoever asked may leave meanwhile: what is handed over is written, or kept, all the same.
            task = asyncio.create_task(self._flush_tenant(tenant, recalls))
            self._flushes.add(task)
            task.add_done_callback(self._flushes.discard)
        for task in tuple(self._flushes):  # also what the timer has begun: whoever flushes wants it written
            await asyncio.shield(task)

    async def _flush_tenant(self, tenant: str, recalls: list[RecallEntry]) -> None:
        self._writing.append(recalls)
        try:
            await self._core.transact(tenant, lambda tx: _write(tx, recalls))
            self.failures.pop(tenant, None)
        except Exception as error:  # whatever it was: an entry that was not written is still owed
            why = _why(error)
            log.warning("%d recalls are not in the ledger yet: %s", len(recalls), why)
            failure = self.failures.setdefault(tenant, WriteFailure(why, self._core.clock(), 0))
            failure.error, failure.attempts = why, failure.attempts + 1
            self._waiting[:0] = recalls
            self.hold([])
        finally:
            self._writing.remove(recalls)

    async def _write_saved(self) -> None:
        """What processes before this one have left."""
        for file in await asyncio.to_thread(lambda: list(self._saved.take())):
            try:
                if not file.belongs_to(await self._first_hash(file.tenant), self._core.settings.store):
                    await asyncio.to_thread(file.give_back)
                    continue
                recalls = [RecallEntry.from_saved(file.tenant, saved) for saved in file.recalls]
                await self._core.transact(file.tenant, partial(_write, recalls=recalls))
                await asyncio.to_thread(file.remove)
            except Exception as error:
                log.warning("%d recalls of before are not in the ledger yet: %s", len(file.recalls), _why(error))
                await asyncio.to_thread(file.give_back)

    async def _first_hash(self, tenant: str) -> str | None:
        if tenant not in self._first_hashes:
            if not (found := await self._core.primary.audit_hashes(tenant, after=0, limit=1)):
                return None
            self._first_hashes[tenant] = found[0]
        return self._first_hashes[tenant]

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._task is not None:
                    await asyncio.wait([self._task])
                await self.flush()
        except TimeoutError:
            self._take_back()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._waiting:
                await self._save()

    def _take_back(self) -> None:
        """What the store has neither taken nor refused: twice in the ledger is better than nowhere."""
        why = f"the store did not answer within {CLOSE_SECONDS:g} s"
        self._waiting[:0] = itertools.chain(*self._writing)
        for recalled in self._waiting:
            self.failures.setdefault(recalled.who.tenant, WriteFailure(why, self._core.clock(), 1))

    async def _save(self) -> None:
        """For the next process to write: this one ends, and the store does not take them."""
        for tenant, failure in list(self.failures.items()):  # a write that hung may be answered meanwhile
            left = [recalled for recalled in self._waiting if recalled.who.tenant == tenant]
            ledger = None
            with suppress(Fault, TimeoutError):
                async with asyncio.timeout(_ASK_SECONDS):
                    ledger = await self._first_hash(tenant)
            try:
                await asyncio.to_thread(
                    self._saved.save, self._core.clock(), tenant=tenant, ledger=ledger, store=self._core.settings.store,
                    recalls=[recalled.to_saved() for recalled in left], **asdict(failure),
                )  # fmt: skip
            except OSError as error:
                why = error.strerror or str(error)
                log.error("%d recalls are lost to the ledger (%s), and to later (%s)", len(left), failure.error, why)
        self._waiting = []


def _why(error: Exception) -> str:
    return error.message if isinstance(error, Fault) else f"{type(error).__name__}: {error}"


def _hashed(recalled: RecallEntry) -> tuple[str, str]:
    """A salt, and the question's hash with it."""
    salt = new_salt()
    return salt.hex(), sha256_hex(salt, recalled.query.encode("utf-8", "surrogatepass"))


def _write(tx: Transaction, recalls: list[RecallEntry]) -> None:
    for r in recalls:
        if r.recalled:
            tx.count_recalls(r.recalled, r.at)
        salt, hashed = r.hashed or _hashed(r)
        payload = {"query_hash": hashed, "salt": salt, "results": len(r.ids), "ids": r.ids[:_IDS_SHOWN]}
        audit.append(tx, r.who, "recall", r.agent_id, [audit.part(None, payload)])
