"""Who fills the target of a migration: the process that began last. One that was overtaken, or whose migration another
has brought to its end, changes nothing there any more: it would take away what was written since."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TypeVar

from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration_marks import MIGRATION, OWNER, SOURCE, holds_more_than_marks
from commonplace.stores.base import Primary, Record, Transaction
from commonplace.wire.errors import Conflict

T = TypeVar("T")


class Claim:
    def __init__(self, target: Primary) -> None:
        self._target = target
        self._token = uuid.uuid4().hex
        self._tenants = set[str]()

    async def begin(self, begins: Mapping[str, str]) -> None:
        """Take the target, and note of which store it is the copy, by how the ledger of each tenant `begins`: another
        must not go on with it."""

        def work(tx: Transaction) -> bool:
            noted = tx.record(MIGRATION, SOURCE)
            if noted is None:
                tx.put_record(Record(MIGRATION, SOURCE, {"begins": dict(begins), "seen_empty": False}))
            elif any(begins.get(tenant) != first for tenant, first in noted.value["begins"].items()):
                raise Conflict(
                    "the target holds part of another store, of which a migration was stopped",
                    hint="go on with that one, or empty the target",
                )
            tx.put_record(self._mark())
            return noted is not None and bool(noted.value.get("seen_empty", True))

        # Noted, as whoever was killed before it had looked leaves a mark in what may be somebody's store: going on
        # would take away what they have written.
        seen_empty = await self._target.transact(SYSTEM, work)
        self._tenants.add(SYSTEM)
        if seen_empty:
            return
        for tenant in begins:  # who has it open, and may have written there since it was looked at, does no more
            await self.take(tenant)
        if await holds_more_than_marks(self._target):  # or another migration came to its end since
            for tenant in (*self._tenants - {SYSTEM}, SYSTEM):
                await self.transact(tenant, release)
            raise _overtaken()
        await self.transact(SYSTEM, _note_empty)

    async def take(self, tenant: str) -> None:
        """Before anything is read of it there, so that nobody else writes to it meanwhile."""
        if tenant in self._tenants:
            return
        # First: whoever is killed with a mark in a store that another has filled leaves it there for good.
        if not await self._has_target():
            raise _overtaken()
        await self._target.transact(tenant, lambda tx: tx.put_record(self._mark()))
        self._tenants.add(tenant)
        if not await self._has_target():
            await self.transact(tenant, release)
            raise _overtaken()

    async def transact(self, tenant: str, work: Callable[[Transaction], T]) -> T:
        """One unit of work, by whoever has the target."""

        def owned(tx: Transaction) -> T:
            if not self._is_mine(tx.record(MIGRATION, OWNER)):
                raise _overtaken()
            return work(tx)

        await self.take(tenant)
        return await self._target.transact(tenant, owned)

    async def _has_target(self) -> bool:
        return self._is_mine(await self._target.record(SYSTEM, MIGRATION, OWNER))

    def _mark(self) -> Record:
        return Record(MIGRATION, OWNER, {"token": self._token})

    def _is_mine(self, held: Record | None) -> bool:
        return held is not None and held.value["token"] == self._token


def _note_empty(tx: Transaction) -> None:
    noted = tx.record(MIGRATION, SOURCE)
    assert noted is not None
    tx.put_record(Record(MIGRATION, SOURCE, {**noted.value, "seen_empty": True}))


def release(tx: Transaction) -> None:
    """Take away what says that a migration has not come to its end."""
    tx.drop_record(MIGRATION, SOURCE)
    tx.drop_record(MIGRATION, OWNER)


def _overtaken() -> Conflict:
    return Conflict(
        "another process goes on with this migration, or has ended it",
        hint="wait for its end, then run this again: it compares both stores",
    )
