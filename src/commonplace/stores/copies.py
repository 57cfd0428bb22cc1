"""A primary used as a replica, such as a second SQLite file: it keeps copies, and nobody asks for their history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from commonplace.stores.base import Candidate, Entry, Page, Primary, Reach, Search
from commonplace.wire.errors import Conflict, Unavailable
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory

#: Tenant, kind and key of what a migration notes in the store that it fills, until all is there.
UNFINISHED_MIGRATION = ("", "migration", "source")
_MADE_BY = "copied vectors"  # which embedder made them is the other primary's business


def no_unfinished_migration() -> Conflict:
    return Conflict(
        "no unfinished migration is in this store, and so it is left where it is",
        hint="name with --to the store that a migration was filling when it stopped",
    )


def _is_of_copy(condition: Condition) -> bool:
    """Whether a condition is on what a copy has of its own, and so is for whoever has the memory: its versions are
    those that arrived here, each written when it did, which is never before the memory was."""
    if condition.op == "any":
        return any(map(_is_of_copy, condition.value))
    column = condition.path[0]
    return column in ("aliases", "version") or (column == "updated_at" and condition.op not in ("gt", "gte", "exists"))


class PrimaryCopy:
    def __init__(self, primary: Primary) -> None:
        self._primary = primary
        self.name = primary.name
        self.capabilities = frozenset(primary.capabilities) - {"governance", "recall_tracking", "graph"}

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._check_unowned({entry.memory.tenant for entry in entries})
        dimension = next((e.vectors.shape[1] for e in entries if e.vectors is not None), None)
        info = await self._primary.embedder()
        if info is None and dimension is not None:
            info = await self._primary.adopt_embedder(_MADE_BY, dimension)
        for entry in entries:
            fits = info is not None and entry.vectors is not None and entry.vectors.shape[1] == info.dimension
            # Aliases are looked up in the primary alone, and two copies may hold one for a moment.
            memory = replace(entry.memory, aliases=[])
            copy = Entry(memory, entry.vectors if fits else None, entry.terms, info.generation if info else 0)
            await self._primary.transact(memory.tenant, lambda tx, copy=copy: tx.put(copy))  # type: ignore[misc]

    async def _check_unowned(self, tenants: Iterable[str]) -> None:
        """Copies come without a ledger. A store that has one is somebody's own, perhaps the very one that is copied:
        what was only forgotten there would be erased. One that is being filled gets its ledger last, and what was not
        copied into it is taken away."""
        if await self._primary.record(*UNFINISHED_MIGRATION) is not None:
            raise Unavailable("a migration into this store has not come to its end: name an empty one for copies")
        for tenant in tenants:
            if (await self._primary.audit_head(tenant))[0]:
                raise Unavailable(
                    "this store has a ledger of its own, as one has that was used as a first store, if only to recall: "
                    "name an empty one for copies, or move this one away and resync"
                )

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        return await self._primary.get(tenant, ids)

    async def search(self, search: Search) -> list[Candidate]:
        info = await self._primary.embedder()
        fits = info is not None and search.vector is not None and len(search.vector) == info.dimension
        plain = replace(search, vector=search.vector if fits else None, generation=None, tokens=None)
        reach = replace(search.reach, where=tuple(each for each in search.reach.where if not _is_of_copy(each)))
        return await self._primary.search(replace(plain, reach=reach, second=None, second_generation=None))

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        await self._check_unowned({tenant})
        return await self._primary.delete(tenant, ids)

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        return await self._primary.scan(reach, limit=limit, cursor=cursor, newest_first=newest_first)

    async def agent_names(self, tenant: str) -> list[str]:
        return await self._primary.agent_names(tenant)

    async def tenants(self) -> list[str]:
        return await self._primary.tenants()

    async def health(self) -> dict[str, Any]:
        return await self._primary.health()

    async def close(self) -> None:
        await self._primary.close()
