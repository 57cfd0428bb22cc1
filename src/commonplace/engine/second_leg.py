"""The second embedder of a store, where it has one: what is written gets its vectors, and questions are asked by both.

Which one it is, the store says; this process has it or does without, and then says so. Nothing waits for it that would
not wait for the first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from commonplace.embedders.base import Embedder, Vectors
from commonplace.embedders.cache import CachedEmbedder
from commonplace.embedders.registry import open_embedder
from commonplace.embedders.text_queue import Lane
from commonplace.stores.base import Primary
from commonplace.stores.optional import SecondEmbedderInfo, SecondVectors
from commonplace.wire.errors import Fault, RateLimited

log = logging.getLogger("commonplace.engine")


class SecondLeg:
    def __init__(self, primary: Primary) -> None:
        self.store = primary if isinstance(primary, SecondVectors) else None
        self.info: SecondEmbedderInfo | None = None
        self.embedding: CachedEmbedder | None = None
        self.foreign_questions = 0  # asked since the start in another language than English
        self.note: str | None = None  # why questions are not asked by it, though the store has its vectors

    @property
    def ready(self) -> bool:
        return self.info is not None and self.info.ready

    @property
    def known_generation(self) -> int | None:
        """What a search says that it knows, so that it hears when that has changed."""
        if self.store is None:
            return None
        return self.info.generation if self.info is not None and self.info.ready else 0

    async def follow(self, at_hand: Embedder | None = None) -> bool:
        """Use what the store has now, or `at_hand` if it is that; whether anything has changed."""
        info = await self.store.second_embedder() if self.store is not None else None
        if info == self.info:
            return False
        old, before, self.info = self.embedding, self.info, info
        if info is None:
            self.embedding, self.note = None, None
        elif old is None or before is None or before.name != info.name:
            self.embedding = self._opened(info, at_hand)
        if old is not None and old is not self.embedding:
            await asyncio.to_thread(old.close)
        return True

    def _opened(self, info: SecondEmbedderInfo, at_hand: Embedder | None) -> CachedEmbedder | None:
        try:
            found = at_hand if at_hand is not None and at_hand.name == info.name else open_embedder(info.name)
        except Fault as fault:
            self._lacks(fault)
            return None
        self.note = None
        return CachedEmbedder(found) if found is not None else None

    async def embed(self, texts: Sequence[str], tenant: str, lane: Lane = Lane.WRITE) -> Vectors | None:
        """None where there is no such embedder, or it has too much to do: then the other legs answer, and what is
        written gets its vectors later."""
        embedding = self.embedding
        if embedding is None or not texts:
            return None
        try:
            embedding.check_room(tenant, lane)
            vectors = await embedding.embed_async(texts, tenant=tenant, lane=lane)
        except RateLimited:
            return None
        except Fault as fault:
            if embedding is self.embedding:
                self._lacks(fault)
            return None
        self.note = None
        return vectors

    def _lacks(self, fault: Fault) -> None:
        note = f"{fault.message}; until then recall does without this store's second vectors"
        if note != self.note:
            log.warning("%s", note)
        self.note = note

    def clear(self) -> None:
        """Something was erased: forget the texts that the cache has."""
        if self.embedding is not None:
            self.embedding.clear()

    def unload_if_idle(self) -> None:
        if self.embedding is not None:
            self.embedding.unload_if_idle()

    def close(self) -> None:
        if self.embedding is not None:
            self.embedding.close()
