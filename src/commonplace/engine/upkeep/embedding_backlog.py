"""Vectors that come after their memories: made in the background, when nobody else needs the embedder.

What waits is in the store, as rows without a vector, so that it outlives this process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Sequence
from contextlib import suppress

from commonplace.embedders.text_queue import Lane
from commonplace.engine.core import Core, memory_vectors, reads_speakers
from commonplace.engine.memory.passages import passages
from commonplace.stores.base import EmbedderInfo, StaleGeneration
from commonplace.stores.optional import LateVectors
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import Memory

_AT_ONCE = 256  # memories read at once; finding them costs a scan
log = logging.getLogger("commonplace.engine")

Numbered = tuple[int, Memory]  # a version and the number of its vectors


class EmbeddingBacklog:
    """One task, which ends when nothing is left to do."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def wake(self) -> None:
        """There may be something to do."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def join(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """What is left is taken up again by the next process."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while self._again:
            self._again = False
            for fill in (self._fill_first, self._fill_second):
                try:
                    await fill()
                except StaleGeneration:  # a reindex has made all of them
                    pass
                except Fault as fault:
                    log.warning("the vectors that memories lack could not be made: %s", fault.message)

    async def _fill_first(self) -> None:
        store, info = self._core.primary, self._core.embedder_info
        if info is not None and self._core.embedding is not None and isinstance(store, LateVectors):
            await self._fill(store, info)

    async def _fill_second(self) -> None:
        """Of the second embedder only once it is searched: until then `model add` is at it."""
        second = self._core.second
        store, info, after = second.store, second.info, 0
        if store is None or info is None or not info.ready or second.embedding is None:
            return
        while found := await store.without_second(after, _AT_ONCE):
            after = found[-1][0]
            for number, memory in round_robin(found):
                vectors = await second.embed(passages(memory), memory.tenant, Lane.BACKGROUND)
                if vectors is None or second.info != info:
                    return
                await store.add_second(memory, number, info.generation, vectors)

    async def _fill(self, store: LateVectors, info: EmbedderInfo) -> None:
        after = 0
        while found := await store.without_vectors(info.generation, after, _AT_ONCE):
            after = found[-1][0]
            for number, memory in round_robin(found):
                try:
                    texts = passages(memory, speakers=reads_speakers(self._core.embedding))
                    encoded, made_by = await self._core.encode_with_info(texts, memory.tenant, Lane.BACKGROUND)
                except ValidationError as fault:  # this text cannot be embedded; the others can
                    log.warning("memory %s stays without vectors: %s", memory.id, fault.message)
                    continue
                if encoded is None or made_by != info:  # no model, or another embedder now
                    return
                await store.add_vectors(memory, number, info.generation, *memory_vectors(encoded))
                await self._core.outbox.requeue([memory])


def round_robin(found: Sequence[Numbered]) -> list[Numbered]:
    """One of each tenant, then the next of each: nobody waits for another's thousand."""
    by_tenant: dict[str, list[Numbered]] = {}
    for each in found:
        by_tenant.setdefault(each[1].tenant, []).append(each)
    return [each for turn in itertools.zip_longest(*by_tenant.values()) for each in turn if each is not None]
