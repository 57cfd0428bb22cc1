"""What was erased here, as an import has to know it up to its last write: it runs for minutes, and others erase."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.stores.base import Transaction
from commonplace.wire.errors import Unavailable

T = TypeVar("T")

_MAX_ATTEMPTS = 128  # to read what the ledger has: a standby that is asked may come after the server that is written to


class _ErasureNotRead(Exception):
    """The ledger tells of an erasure that was not read yet."""


class Erasures:
    """What the ledger says was erased after one of its entries."""

    def __init__(self, core: Core, tenant: str, after: int = 0) -> None:
        self._core, self._tenant = core, tenant
        self._ids: set[str] = set()
        self._after, self._is_read = after, False

    async def read(self) -> None:
        """All that there is, where it has not been read yet: `transact` finds out what comes later."""
        if not self._is_read:
            await self._read_on()

    async def _read_on(self) -> None:
        found, self._after = await audit.erased_ids(self._core.primary, self._tenant, self._after)
        self._ids.update(found)
        self._is_read = True

    async def erased_among(self, ids: Iterable[str]) -> set[str]:
        """Those of these that were erased, as far as is known now, and have not been restored since."""
        suspects = self._ids.intersection(ids)
        if not suspects:
            return suspects
        return await self._core.transact(self._tenant, lambda tx: {id for id in suspects if self.is_erased(tx, id)})

    def is_erased(self, tx: Transaction, id: str | None) -> bool:
        """Whether it was erased and has not been restored since: inside `transact`, as of that instant."""
        return id in self._ids and tx.get(id) is None and tx.triple(id) is None

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        """One unit of work to which every erasure is known that was acknowledged before it."""

        def informed(tx: Transaction) -> T:
            # Where the ledger has no such entry, as it was cut off, there is nothing to read.
            if self._after < min(audit.last_erasure(tx), tx.audit_head()[0]):
                raise _ErasureNotRead
            return work(tx)

        await self.read()
        without_news = 0
        while without_news < _MAX_ATTEMPTS:  # until nobody erases anything in the moment between
            try:
                return await self._core.transact(self._tenant, informed)
            except _ErasureNotRead:
                before = self._after
                await self._read_on()
                without_news = without_news + 1 if self._after == before else 0
        raise Unavailable("something was erased here, and the ledger cannot be read that far; try again")
