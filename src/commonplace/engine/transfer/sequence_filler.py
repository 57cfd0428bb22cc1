"""The places in a target's sequence that nothing is copied into: what had them was erased at the source.

Every later version must get the number that it has there, or `as_of` would read another past.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from commonplace.engine.transfer.migration_marks import MIGRATION, PROGRESS
from commonplace.stores.base import Entry, Record, Transaction
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory

_MOST_VERSIONS = 500  # after which a filler is erased and another begun


@dataclass(slots=True)
class SequenceFiller:
    """Takes places first by erasing what the target has of what was erased at the source, then by a memory of no
    content, under the id of an erased one, that is erased in the end."""

    left: int  # places that are still to be taken
    id: str = ""
    version: int = 0
    gone: tuple[str, ...] = ()  # what was copied before and has been erased at the source since
    erased: tuple[str, ...] = ()  # what the ledger says was erased: of these ids a mark of erasure is true
    used: int = 0  # of them

    def take_places(self, tx: Transaction, agent: str, count: int) -> None:
        for _ in range(count):
            # Of two places the first begins a filler that the second ends: one place alone could not be taken.
            last = self.left == 1 or (self.version >= _MOST_VERSIONS and self.left != 2)
            if self.gone:
                tx.erase(self.gone[0])
                self.gone = self.gone[1:]
            elif self.id and last:
                self.erase(tx)
            else:
                self.id = self.id or self._unused_id(tx)
                filler = Memory(self.id, "", agent, "semantic", "-", status="deleted", created_at=1)
                tx.put(Entry(replace(filler, version=self.version), None, b""))
                self.version += 1
            self.left -= 1

    def _unused_id(self, tx: Transaction) -> str:
        while self.used < len(self.erased):
            self.used += 1
            if tx.get(id := self.erased[self.used - 1]) is None:
                return id
        return mint_id(tx.now)

    def become(self, other: SequenceFiller) -> None:
        """As the other one is now, whose work is done."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))

    def erase(self, tx: Transaction) -> None:
        if self.id:
            tx.erase(self.id)
        self.id, self.version = "", 0

    def progress(self, seq: int) -> Record:
        known = {"seq": seq, "filler": self.id, "version": self.version, "used": self.used}
        return Record(MIGRATION, PROGRESS, known)
