"""The engine: every operation of every protocol ends here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from commonplace.embedders.base import Embedder, Encoding, Vectors
from commonplace.embedders.text_queue import Lane
from commonplace.engine.checks import memory_not_found, require_role
from commonplace.engine.core import SYSTEM, Core, Settings
from commonplace.engine.governance.policy_admin import PolicyAdmin
from commonplace.engine.governance.recovery import Recovery
from commonplace.engine.governance.review_events import ReviewEvents
from commonplace.engine.governed_changes import GovernedChanges
from commonplace.engine.ledger.ledger import Ledger
from commonplace.engine.lifecycle.audit_job import AuditJob
from commonplace.engine.lifecycle.consolidate_job import ConsolidateJob
from commonplace.engine.lifecycle.dream_job import DreamJob
from commonplace.engine.lifecycle.expire_job import ExpireJob, parse_policy
from commonplace.engine.lifecycle.retain_job import RetainJob
from commonplace.engine.lifecycle.scheduler import Job, Lifecycle
from commonplace.engine.memory import read
from commonplace.engine.outbox.deliveries import DeliveryReport
from commonplace.engine.outbox.replicas import Attachment
from commonplace.engine.outbox.stores import Stores
from commonplace.engine.palaces.palaces import Palaces
from commonplace.engine.peers.peers import Peers
from commonplace.engine.procedures.procedures import Procedures
from commonplace.engine.recall.recall import Recaller
from commonplace.engine.redaction import Redactor
from commonplace.engine.runs.refs import Refs
from commonplace.engine.runs.run_notes import RunNotes
from commonplace.engine.runs.runs import Runs
from commonplace.engine.tokens import Tokens
from commonplace.engine.transfer.exports import Exports
from commonplace.engine.transfer.imports import Imports
from commonplace.engine.transfer.migration_marks import require_whole
from commonplace.engine.types import NumberedPage, Query, RecallResult, SearchResult, Snapshot
from commonplace.engine.upkeep.embedding_backlog import EmbeddingBacklog
from commonplace.engine.upkeep.upkeep import Upkeep
from commonplace.judges.base import Judge
from commonplace.stores.base import EmbedderInfo, Page, Primary
from commonplace.stores.optional import FileUpkeep
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import Where
from commonplace.wire.record import Clock, Memory, Principal, system_clock

_FIRST_TEXT = "a first text, so that the first caller need not wait for the model"


#: Where the caller of the request in hand reaches the page of reviews, if a proxy has said so: links in its answer lead
#: there. "" is where everyone does.
callers_review_url: ContextVar[str] = ContextVar("callers_review_url", default="")


class Engine(GovernedChanges):
    """Over one primary store. Open it with `await Engine.open(...)` and close it when done.

    What concerns memories are its own methods; each other room of the house is an attribute.
    """

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._backlog = EmbeddingBacklog(core)
        core.fill_vectors = self._backlog.wake
        self._recaller = Recaller(core, self._recall_log)
        self.embedder_note: str | None = None  # set by whoever chose the embedder
        self.palaces = Palaces(core, self._recaller, self._recall_log, self.assert_fact)
        self.exports = Exports(core, self.palaces)
        self.imports = Imports(core, self.palaces)
        self.peers = Peers(core, self._recaller)
        self.ledger = Ledger(core, self._recall_log, self.peers.identity)
        self.procedures = Procedures(core, self.update)
        self.policies = PolicyAdmin(core)
        self.refs = Refs(core)
        self.recovery = Recovery(core)
        self.review_events = ReviewEvents(core)
        self.runs = Runs(core)
        self.run_notes = RunNotes(core)
        self.stores = Stores(core)
        self.tokens = Tokens(core)
        lifecycle, exports = core.settings.lifecycle, core.settings.audit
        jobs: list[Job] = [
            ExpireJob(core, self._recall_log, self.runs, self.reviews, [parse_policy(p) for p in lifecycle.expire]),
            RetainJob(core),
            DreamJob(core),
            ConsolidateJob(core),
        ]
        if exports.export:
            folder = (core.settings.folder or Path()) / Path(exports.export).expanduser()
            jobs.append(AuditJob(core, self.ledger.heads, folder, exports.export_minutes * 60_000))
        self.lifecycle = Lifecycle(core, jobs, lifecycle.paused)
        self.upkeep = Upkeep(core, self._recall_log, self.ledger, self.runs, self.reviews, self.stores)

    @classmethod
    async def open(
        cls,
        primary: Primary,
        embedder: Embedder | None = None,
        *,
        clock: Clock = system_clock,
        settings: Settings | None = None,
        replicas: Sequence[Attachment] = (),
    ) -> Engine:
        await require_whole(primary)
        core = Core(primary, clock, settings, replicas)
        await core.use_embedder(embedder)
        await core.second.follow()
        await core.outbox.find_unattached_stores()
        core.outbox.start()
        return cls(core)

    # what others may know of it

    @property
    def clock(self) -> Clock:
        return self._core.clock

    @property
    def settings(self) -> Settings:
        return self._core.settings

    @property
    def redactor(self) -> Redactor:
        return self._core.redactor

    @property
    def note(self) -> str | None:
        """What does not work as configured, such as an embedding model that is missing."""
        return self._core.note

    def approval_url(self, review_id: str | None) -> str | None:
        """Where a person decides about a review; None where no server shows it."""
        base = callers_review_url.get() or self._core.settings.review_url
        return f"{base}/{review_id}" if base and review_id else None

    def pending_fields(self, review_id: str | None) -> dict[str, Any]:
        """What every protocol's answer says of what waits for a person; nothing where nothing does."""
        if review_id is None:
            return {}
        url = self.approval_url(review_id)
        return {"pending_approval": True, "review_id": review_id} | ({"approval_url": url} if url else {})

    @property
    def store_name(self) -> str:
        return self._core.primary.name

    @property
    def capabilities(self) -> frozenset[str]:
        """Of all its stores together."""
        return self._core.primary.capabilities.union(*(r.capabilities for r in self._core.outbox.replicas))

    @property
    def embedder(self) -> EmbedderInfo | None:
        """What made the store's vectors."""
        return self._core.embedder_info

    def reporting(self, who: Principal | None = None) -> AbstractContextManager[DeliveryReport]:
        """What the stores beside the primary did with what is changed within, as far as this principal is told."""
        return self._core.outbox.reporting(who)

    # reading

    async def recall(self, who: Principal, query: Query) -> RecallResult:
        return await self._recaller.recall(who, query)

    async def search(self, who: Principal, query: Query, *, limit: int, at_least: float | None = None) -> SearchResult:
        """The best `limit` hits and how many there are; only what is shown counts as recalled."""
        return await self._recaller.search(who, query, limit, at_least)

    async def get(
        self, who: Principal, agent_id: str, ref: str, *, as_of: int | None = None, snapshot: Snapshot | None = None
    ) -> Memory:
        found = await read.get(self._core, who, agent_id, ref, as_of=as_of, snapshot=snapshot)
        seen = await self._core.policies.shown_versions(who, [found])
        if not seen:
            raise memory_not_found(agent_id, ref)
        return seen[0]

    async def find(self, who: Principal, ref: str, agent: str | None = None) -> Memory:
        """By any id that names it: of one agent, else of every agent the caller may read."""
        seen = await self._core.policies.shown(who, [await read.find(self._core, who, ref, agent)])
        if not seen:
            raise read.record_not_found(ref)
        return seen[0]

    async def list(
        self, who: Principal, agents: tuple[str, ...], where: Where = (), **options: Unpack[read.ListOptions]
    ) -> Page:
        page = await read.list_page(self._core, who, agents, where, **options)
        return replace(page, memories=await self._core.policies.shown_versions(who, page.memories))

    async def page(
        self,
        who: Principal,
        agents: tuple[str, ...],
        where: Where = (),
        *,
        limit: int,
        offset: int = 0,
        newest_first: bool = True,
    ) -> NumberedPage:
        page = await read.numbered_page(
            self._core, who, agents, where, limit=limit, offset=offset, newest_first=newest_first
        )
        return replace(page, memories=await self._core.policies.shown(who, page.memories))

    async def count(self, who: Principal, agents: tuple[str, ...], where: Where = ()) -> int:
        return await read.count(self._core, who, agents, where)

    async def history(self, who: Principal, agent_id: str, ref: str) -> Sequence[Memory]:
        versions = await read.history(self._core, who, agent_id, ref)
        seen = await self._core.policies.shown_versions(who, versions)
        if not seen:
            raise memory_not_found(agent_id, ref)
        return seen

    async def agent_names(self, who: Principal) -> Sequence[str]:
        """Every agent that has memories and that the caller may use."""
        return await self._core.usable_agents(who)

    # the embedder and the judge, for others to use

    async def encode(self, who: Principal, texts: Sequence[str], *, remember: bool = True) -> Sequence[Encoding]:
        """A unit vector for each text, made by the store's own embedder, with those of its tokens where that gives
        any; without `remember` none of the texts stays in its cache, for callers who may erase them where we do not
        hear of it."""
        require_role(who, "reader")
        # One text is most likely a question, for which someone waits.
        lane = Lane.QUERY if len(texts) == 1 else Lane.WRITE
        encoded, _ = await self._core.encode_with_info(texts, who.tenant, lane, bounded=True)
        if encoded is None:
            raise Unavailable(self._core.note or "no embedder is configured")
        if not remember and self._core.embedding is not None:
            self._core.embedding.discard(texts, tenant=who.tenant)
        return encoded

    async def embed(self, who: Principal, texts: Sequence[str], *, remember: bool = True) -> Vectors:
        """As `encode`, the vectors alone."""
        return np.stack([each.vector for each in await self.encode(who, texts, remember=remember)])

    def use_judge(self, open_judge: Callable[[], Judge | None]) -> None:
        """Let a judge read what was found, whenever relevance is calibrated for the store's embedder: a reindex may
        bring one for which it is."""
        self._core.judge = open_judge()

    @property
    def embeds(self) -> bool:
        """Whether texts become vectors here; otherwise `note` says why recall is by keywords only."""
        return self._core.embedding is not None and self._core.note is None

    async def warm_indexes(self) -> None:
        if isinstance(self._core.primary, FileUpkeep):
            await self._core.primary.warm()

    async def warm_embedder(self) -> None:
        if self._core.embedding is not None:
            await self._core.encode_with_info([_FIRST_TEXT], SYSTEM, Lane.QUERY)
        await self._core.second.embed([_FIRST_TEXT], SYSTEM, Lane.QUERY)

    def start_lifecycle(self) -> None:
        """Do in the background what is due, as processes that live on do; `close` ends it."""
        if seconds := self._core.settings.lifecycle.interval:
            self.lifecycle.start(seconds)

    def resume_embedding(self) -> None:
        """Make, in the background, the vectors that memories still lack: since this process or an earlier one."""
        self._backlog.wake()

    async def wait_for_vectors(self) -> None:
        """Until what was begun in the background is done."""
        await self._backlog.join()

    async def release_idle_models(self) -> None:
        """Give back the memory of models that nobody has used for a while; the next use loads them again."""
        embedding, judge = self._core.embedding, self._core.judge
        await asyncio.to_thread(self._core.second.unload_if_idle)
        if embedding is not None and await asyncio.to_thread(embedding.unload_if_idle):
            unload = getattr(judge, "unload", None)  # which is only ever asked after an embedding
            if unload is not None:
                await asyncio.to_thread(unload)

    # life

    def queues(self) -> Mapping[str, int]:
        """What waits: units of work for the store, texts for the embedder, recalls to be logged."""
        embedding = self._core.embedding
        return {
            "writes": self._core.writing,
            "embeddings": embedding.waiting if embedding else 0,
            "recalls": len(self._recall_log),
        }

    async def sizes(self) -> dict[str, Any] | None:
        """Where the store lies and how large it is; None for one that has no files."""
        primary = self._core.primary
        return await primary.sizes() if isinstance(primary, FileUpkeep) else None

    async def health(self, who: Principal | None = None) -> dict[str, Any]:
        health = await self._core.primary.health()
        info = self._core.embedder_info
        failing = self.stores.failing(who)
        if failing and health.get("status") == "ok":
            health = {**health, "status": "degraded"}
        note = "; ".join(filter(None, (self._core.note, *failing)))
        return {**health, "embedder": info.name if info else None, **({"note": note} if note else {})}

    def log_recalls_at_once(self, at_once: bool) -> None:
        """Whether a recall's audit entry is written before its answer, or a moment after."""
        self._core.settings.recalls_at_once = at_once

    async def flush(self) -> None:
        """Write the recall log now."""
        await self._recall_log.flush()

    async def close(self) -> None:
        await self.lifecycle.stop()
        await self._backlog.close()
        try:
            await self._recall_log.close()
        finally:
            try:
                await self._core.outbox.close()  # first: what it still delivers has vectors
            finally:
                try:
                    self._core.second.close()
                    if self._core.embedding is not None:
                        self._core.embedding.close()
                finally:
                    await self._core.primary.close()
