"""A memory with copies in another, for tests: both on files, so that it can be seen which bytes are left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from commonplace import Memory
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine, restore_backup
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import Unavailable

M = TypeVar("M", bound=Memory)
TEXT = "PINCODE-ZEBRA-4711 opens the safe"
AGENT = "agent"


def files_with(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


class OtherMemory(Memory):
    """One that can be taken away."""

    name = "memory"
    is_away = False

    async def engine(self) -> Engine:
        if self.is_away:
            raise Unavailable("away")
        return await super().engine()


class Pair:
    """A memory with copies in another, each on files of its own, and one clock for both."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self._folder = folder / "ours"
        self.theirs = self._open(OtherMemory, folder / "theirs")
        self.ours = self._open(Memory, self._folder, self.theirs)

    def _open(self, kind: type[M], folder: Path, *replicas: Memory) -> M:
        stores = [f"sqlite://{folder}/memories.db", *replicas]
        return kind(AGENT, data=folder, embedder=HashingEmbedder(), clock=self.clock, stores=stores)

    async def copies(self) -> list[str]:
        return [memory["content"] for memory in (await self.theirs.list())["memories"]]

    async def reopen_ours(self, backup: Path) -> None:
        """With this backup in its place."""
        await self.ours.close()
        await restore_backup(backup, self._folder / "memories.db", replace_existing=True)
        self.ours = self._open(Memory, self._folder, self.theirs)

    async def close(self) -> None:
        await self.ours.close()
        await self.theirs.compact()
        await self.theirs.close()


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[Pair]:
    made = Pair(folder)
    await made.theirs.engine()
    outbox = (await made.ours.engine())._core.outbox
    outbox._loop.cancel()  # tests say when something is tried again
    try:
        yield made
    finally:
        await made.close()
