"""Memory for Python programs: `Memory` for async code, `SyncMemory` for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from commonplace import config as configuration
from commonplace.__about__ import __version__
from commonplace.blocking import BlockingMemory, blocking
from commonplace.dialects.memorywire import Memorywire, dispatch
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Engine, GovernanceClient, Progress, Settings
from commonplace.engine_factory import open_engine
from commonplace.interface import MemoryInterface
from commonplace.interface.base import Document, Documents, T
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.memory_store import MemoryStore, why_no_memory_store
from commonplace.wire.models import DecideRequest, EditReviewRequest, RememberResponse
from commonplace.wire.record import CAPABILITIES, Clock, Principal, system_clock
from commonplace.wire.validate import parse

#: That a program waits for stores beside the first to open; a server goes on without them.
_OPENING_SECONDS = 30.0


class Memory(MemoryInterface):
    """One agent's memory. Opens its store at the first call; close it, or use `async with`.

    Args:
        agent_id: Whose memory; `COMMONPLACE_AGENT` or `default` where nothing is said.
        stores: Store URLs, such as sqlite://./memories.db; by default the store in the data directory. The first is
            authoritative; those after it, URLs or objects that are a `MemoryStore`, have copies and are asked, too.
        data: The data directory; `COMMONPLACE_DATA` or the platform's own where nothing is said.
        embedder: An embedder or its name; "none" leaves recall to keywords.
        principal: Who asks, where not everything may be read and written.
        clock: The time in milliseconds, for tests.
        governance: A review system of your own (a `GovernanceClient`), asked about everything that is staged.
        server_url: A server on the same data, whose page shows what waits for approval; `public_url` says it, too.

    >>> async with Memory(agent_id="assistant") as memory:
    ...     await memory.remember("Alice is allergic to peanuts", user_id="alice")
    ...     found = await memory.recall("what should I not cook for Alice?")
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        stores: Sequence[str | MemoryStore] | None = None,
        data: str | Path | None = None,
        embedder: str | Embedder | None = None,
        principal: Principal | None = None,
        clock: Clock = system_clock,
        governance: GovernanceClient | None = None,
        server_url: str | None = None,
    ) -> None:
        urls, self._others = _stores(stores)
        self._embedder = None if isinstance(embedder, str) else embedder
        self.config = configuration.load(
            data=data, agent=agent_id, embedder=embedder if isinstance(embedder, str) else None, stores=urls or None
        )
        self.agent_id = self.config.agent
        self._who = principal or Principal()
        self._clock = clock
        self._settings = Settings(governance_client=governance, review_url=self.config.review_url(server_url or ""))
        self._engine: Engine | None = None
        self._opening: asyncio.Lock | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        return CAPABILITIES if self._engine is None else self._engine.capabilities

    async def engine(self) -> Engine:
        """The engine behind it, for what has no method here; it is opened by the first that asks."""
        if self._engine is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._engine is None:
                    self._engine = await open_engine(
                        self.config,
                        embedder=self._embedder,
                        clock=self._clock,
                        settings=self._settings,
                        others=self._others,
                    )
                    await self._engine.stores.wait_until_open(_OPENING_SECONDS)
        return self._engine

    async def _call(self, answer: type[T], operation: str, request: Document) -> T:
        # First: what is wrong opens no store.
        if operation in dispatch.BY_ID:
            call = dispatch.prepare_by_id(operation, request.pop("id"), request)
        else:
            call = dispatch.prepare(operation, request, typed=True)
        return cast("T", await call(Memorywire(await self.engine(), self._who)))

    async def _remember_batch(self, requests: Documents) -> list[RememberResponse | Fault]:
        return list(await Memorywire(await self.engine(), self._who).remember_batch(requests))

    async def _decide(self, review_id: str, decision: Document) -> Document:
        given = parse(DecideRequest, decision)
        wire = Memorywire(await self.engine(), self._who)
        return await wire.decide(
            review_id, given.approved, given.reviewer, given.reason, given.request, given.apply, given.revision
        )

    async def _edit_review(self, review_id: str, edit: Document) -> Document:
        given = parse(EditReviewRequest, edit)
        return await Memorywire(await self.engine(), self._who).edit_review(review_id, given.request, given.revision)

    async def verify_audit(self, progress: Progress | None = None) -> Document:
        return await Memorywire(await self.engine(), self._who).verify_audit(progress)

    async def status(self) -> Document:
        engine = await self.engine()
        found = await engine.upkeep.status(self._who)
        note = found["note"] or engine.embedder_note
        return {"version": __version__, "data": str(self.config.data), **found, "note": note}

    async def doctor(self, repair: bool = True, progress: Progress | None = None) -> Documents:
        findings = await (await self.engine()).upkeep.doctor(self._who, repair, progress)
        return [asdict(finding) for finding in findings]

    async def backup(self, path: str | Path, progress: Progress | None = None) -> Document:
        return await (await self.engine()).upkeep.backup(self._who, path, progress)

    async def compact(self, progress: Progress | None = None) -> Document:
        return await (await self.engine()).upkeep.compact(self._who, progress)

    async def reindex(self, embedder: str | Embedder | None = None, progress: Progress | None = None) -> Document:
        chosen = open_embedder(embedder or self.config.embedder) if isinstance(embedder, str | None) else embedder
        if chosen is None:
            raise ValidationError("reindex needs an embedder; name one, such as --embedder encoder", field="embedder")
        return await (await self.engine()).upkeep.reindex(self._who, chosen, progress)

    async def resync(
        self, store: str, progress: Progress | None = None, *, dry_run: bool = False, keep_unknown: bool = False
    ) -> Document:
        stores = (await self.engine()).stores
        return await stores.resync(self._who, store, progress, dry_run=dry_run, keep_unknown=keep_unknown)

    async def discard_deliveries(
        self, store: str, *, dry_run: bool = False, progress: Progress | None = None
    ) -> Document:
        return await (await self.engine()).stores.discard(self._who, store, dry_run=dry_run, progress=progress)

    async def health(self) -> Document:
        return await (await self.engine()).health(self._who)

    async def flush(self) -> None:
        await (await self.engine()).flush()

    async def close(self) -> None:
        """Write what is behind and close the store; the next call opens it again."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.close()

    async def __aenter__(self) -> Memory:
        await self.engine()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _stores(given: Sequence[str | MemoryStore] | None) -> tuple[tuple[str, ...], list[MemoryStore]]:
    """URLs and objects; the first is a URL, because only a store of ours can be authoritative."""
    if given is None:
        return (), []
    urls = tuple(each for each in given if isinstance(each, str))
    others = [each for each in given if not isinstance(each, str)]
    if isinstance(given, str) or not given or not isinstance(given[0], str):
        raise ValidationError("stores is a list that begins with a URL, such as sqlite://./memories.db", field="stores")
    for other in others:
        if (why := why_no_memory_store(other)) is not None:
            if isinstance(other, BlockingMemory):  # SyncMemory or SyncRemoteMemory
                why += f"; attach a {type(other.async_memory).__name__} in its place"
            raise ValidationError(why, field="stores")
    return urls, others


class SyncMemory(BlockingMemory):
    """`Memory` without async: the same parameters and methods, each waiting for its answer. Safe to share between
    threads.

    >>> with SyncMemory("assistant") as memory:
    ...     memory.remember("Alice is allergic to peanuts", user_id="alice")
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        stores: Sequence[str | MemoryStore] | None = None,
        data: str | Path | None = None,
        embedder: str | Embedder | None = None,
        principal: Principal | None = None,
        clock: Clock = system_clock,
        governance: GovernanceClient | None = None,
    ) -> None:
        memory = Memory(
            agent_id, stores=stores, data=data, embedder=embedder, principal=principal, clock=clock,
            governance=governance,
        )  # fmt: skip
        super().__init__(memory)
        self.config = memory.config

    engine = blocking(Memory.engine)
