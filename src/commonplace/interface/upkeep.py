"""How it is and what keeps it well. What only the owner of the data can do is refused here, and done by `sdk`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.interface.base import Document, Documents, InterfaceBase
from commonplace.wire.errors import Unavailable

if TYPE_CHECKING:
    from commonplace.embedders.base import Embedder
    from commonplace.engine import Progress

_LOCAL_ONLY = "run `commonplace {command}` where the data is: a server does not do this for others"


class UpkeepMethods(InterfaceBase):
    async def status(self) -> Document:
        """What there is: the version, the memories of each agent, the reviews that wait, the embedder.

        >>> (await memory.status())["memories"]
        1
        """
        return await self._call(Document, "status", {})

    async def health(self) -> Document:
        """{status: ok, degraded or down, …}.

        >>> (await memory.health())["status"]
        'ok'
        """
        return await self._call(Document, "health", {})

    async def stores(self) -> Documents:
        """The stores: of each its name, role, status, how much waits for it and since when.

        >>> [(store["role"], store["waiting"]) for store in await memory.stores()]
        [('primary', 0)]
        """
        return await self._call(Documents, "stores", {})

    async def resync(
        self, store: str, progress: Progress | None = None, *, dry_run: bool = False, keep_unknown: bool = False
    ) -> Document:
        """Make a store that has copies equal to the first: {equal, sent, deleted, memories, copies, hash, copies_hash,
        all_tenants}, `unreadable` [{tenant, agent_id, id}] of what is no copy and may be the other's own, and `errors`
        [{error, count}] of what was not taken.

        What the first store never had, as where it was lost or is of an older backup, is named in `unknown`
        likewise and deleted, or with `keep_unknown` left. With `dry_run` nothing is changed, and there are no hashes.

        >>> from commonplace.wire.errors import NotFound
        >>> try:
        ...     await memory.resync("mem0")
        ... except NotFound:
        ...     print("there is but one store")
        there is but one store
        """
        raise Unavailable(_LOCAL_ONLY.format(command="stores resync"))

    async def discard_deliveries(
        self, store: str, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Document:
        """Drop what waits for a store that is configured no more: {store, waiting, deletions}. It is never told of
        them, the deletions among them.

        >>> from commonplace.wire.errors import NotFound
        >>> try:
        ...     await memory.discard_deliveries("mem0")
        ... except NotFound:
        ...     print("nothing waits for it")
        nothing waits for it
        """
        raise Unavailable(_LOCAL_ONLY.format(command="stores discard"))

    async def flush(self) -> None:
        """Write what is written behind (recall counters and their audit entries), now. A server does it by itself.

        >>> await memory.flush()
        """

    async def doctor(self, repair: bool = True, progress: Progress | None = None) -> Documents:
        """Check everything; what can be derived again is repaired. A list of {check, ok, detail, repaired}.

        >>> all(finding["ok"] for finding in await memory.doctor())
        True
        """
        raise Unavailable(_LOCAL_ONLY.format(command="doctor"))

    async def backup(self, path: str | Path, progress: Progress | None = None) -> Document:
        """A consistent copy of the store in one file, while others read and write.

        >>> made = await memory.backup(folder / "copy.db")
        >>> (folder / "copy.db").exists()
        True
        """
        raise Unavailable(_LOCAL_ONLY.format(command="backup"))

    async def compact(self, progress: Progress | None = None) -> Document:
        """Give back unused space; afterwards no erased byte is left in the files.

        >>> done = await memory.compact()
        """
        raise Unavailable(_LOCAL_ONLY.format(command="compact"))

    async def reindex(self, embedder: str | Embedder | None = None, progress: Progress | None = None) -> Document:
        """Embed everything anew, by default with the configured embedder. Recall keeps working meanwhile.

        >>> (await memory.reindex("hashing-128"))["reindexed"]
        1
        """
        raise Unavailable(_LOCAL_ONLY.format(command="reindex"))
