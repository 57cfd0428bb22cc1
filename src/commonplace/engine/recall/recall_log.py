"""Recall counters and recall audit, written behind the answer so that reading never waits for a disk."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.stores.base import Transaction
from commonplace.wire.canonical import new_salt, sha256_hex
from commonplace.wire.errors import Fault
from commonplace.wire.record import Principal

DELAY_SECONDS = 0.5
_MAX_WAITING = 2000  # recalls held back before the next one is written at once
_MAX_KEPT = 1000  # for a store that fails, and fewer than make a recall wait; beyond that the oldest are lost
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

    @property
    def recalled(self) -> list[str]:
        """What counts as recalled: a tail that is only shown must not raise importance, nor keep what is stale."""
        return [id for id in self.ids if id not in self.tail] if self.counted else []


class RecallLog:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: list[RecallEntry] = []
        self._writing: list[list[RecallEntry]] = []  # handed to the store and not answered yet
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def unwritten(self, tenant: str) -> list[RecallEntry]:
        """For those who only look, and must not wait for the write lock, to take into account."""
        held = itertools.chain(*self._writing, self._waiting)
        return [recalled for recalled in held if recalled.who.tenant == tenant]

    async def note(self, recalled: RecallEntry) -> None:
        self.hold([recalled])
        if self._core.settings.recalls_at_once or len(self._waiting) >= _MAX_WAITING:
            await self.flush()

    def hold(self, recalls: list[RecallEntry]) -> None:
        """Until the next flush, or until a transaction that is made anyway takes them along."""
        self._waiting += recalls
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self._due)

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
        waiting, self._waiting = self._waiting, []
        by_tenant: dict[str, list[RecallEntry]] = {}
        for recalled in waiting:
            by_tenant.setdefault(recalled.who.tenant, []).append(recalled)
        for tenant, recalls in by_tenant.items():
            self._writing.append(recalls)
            try:
                await self._core.transact(tenant, lambda tx, recalls=recalls: _write(tx, recalls))  # type: ignore[misc]
            except Fault as fault:
                log.warning("%d recalls could not be counted yet: %s", len(recalls), fault.message)
                self._waiting[:0] = recalls[-_MAX_KEPT:]  # they go with the next that can be written
            finally:
                self._writing.remove(recalls)

    async def close(self) -> None:
        try:
            if self._task is not None:
                await self._task
        finally:
            await self.flush()


def _write(tx: Transaction, recalls: list[RecallEntry]) -> None:
    for r in recalls:
        if r.recalled:
            tx.count_recalls(r.recalled, r.at)
        salt = new_salt()
        hashed = sha256_hex(salt, r.query.encode("utf-8", "surrogatepass"))
        payload = {"query_hash": hashed, "salt": salt.hex(), "results": len(r.ids), "ids": r.ids[:_IDS_SHOWN]}
        audit.append(tx, r.who, "recall", r.agent_id, [audit.part(None, payload)])
