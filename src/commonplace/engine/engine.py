"""The engine: every operation of every protocol ends here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

import numpy as np

from commonplace.embedders.base import Embedder, Encoding, Vectors
from commonplace.embedders.text_queue import Lane
from commonplace.engine.core import SYSTEM, Core, Settings, memory_not_found, require_role
from commonplace.engine.governance import staging
from commonplace.engine.governance.client import consult
from commonplace.engine.governance.policies import ReviewRequired
from commonplace.engine.governance.policy_admin import PolicyAdmin
from commonplace.engine.governance.recovery import Recovery
from commonplace.engine.governance.review_events import ReviewEvents
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.graph.graph import AssertResult, Graph
from commonplace.engine.ledger.ledger import Ledger
from commonplace.engine.lifecycle.audit_job import AuditJob
from commonplace.engine.lifecycle.consolidate_job import ConsolidateJob
from commonplace.engine.lifecycle.dream_job import DreamJob
from commonplace.engine.lifecycle.expire_job import ExpireJob, parse_policy
from commonplace.engine.lifecycle.retain_job import RetainJob
from commonplace.engine.lifecycle.scheduler import Job, Lifecycle
from commonplace.engine.memory import expire, forget, merge, read, undelete, undo, unmerge, upsert, write
from commonplace.engine.memory.change import changed, check_update
from commonplace.engine.outbox.deliveries import DeliveryReport
from commonplace.engine.outbox.replicas import Attachment
from commonplace.engine.outbox.stores import Stores
from commonplace.engine.palaces.palaces import Palaces
from commonplace.engine.peers.peers import Peers
from commonplace.engine.procedures.procedures import Procedures
from commonplace.engine.recall.recall import Recaller
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.redaction import Redactor, Secrets
from commonplace.engine.runs.refs import Refs
from commonplace.engine.runs.run_notes import RunNotes
from commonplace.engine.runs.runs import Runs
from commonplace.engine.tokens import Tokens
from commonplace.engine.transfer.exports import Exports
from commonplace.engine.transfer.imports import Imports
from commonplace.engine.types import (
    BatchItem,
    Draft,
    Expire,
    ExpireResult,
    Forget,
    ForgetResult,
    Merge,
    MergeResult,
    NumberedPage,
    Query,
    RecallResult,
    Receipt,
    SearchResult,
    Snapshot,
    Statement,
    Update,
    UpdateResult,
    UpsertResult,
)
from commonplace.engine.upkeep.embedding_backlog import EmbeddingBacklog
from commonplace.engine.upkeep.upkeep import Upkeep
from commonplace.judges.base import Judge
from commonplace.stores.base import EmbedderInfo, FileUpkeep, Page, Primary
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Fault, Forbidden, NotFound, Unavailable
from commonplace.wire.filters import Where
from commonplace.wire.record import Clock, Memory, Principal, system_clock

Staged = TypeVar("Staged", Receipt, ForgetResult, MergeResult, AssertResult)

_FIRST_TEXT = "a first text, so that the first caller need not wait for the model"


#: Where the caller of the request in hand reaches the page of reviews, if a proxy has said so: links in its answer lead
#: there. "" is where everyone does.
callers_review_url: ContextVar[str] = ContextVar("callers_review_url", default="")


class Engine:
    """Over one primary store. Open it with `await Engine.open(...)` and close it when done.

    What concerns memories are its own methods; each other room of the house is an attribute.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._recall_log = RecallLog(core)
        self._backlog = EmbeddingBacklog(core)
        core.fill_vectors = self._backlog.wake
        self._recaller = Recaller(core, self._recall_log)
        self.embedder_note: str | None = None  # set by whoever chose the embedder
        self.graph = Graph(core)
        self.palaces = Palaces(core, self._recaller, self._recall_log, self.assert_fact)
        self.exports = Exports(core, self.palaces)
        self.imports = Imports(core, self.palaces)
        self.peers = Peers(core, self._recaller)
        self.ledger = Ledger(core, self._recall_log, self.peers.identity)
        self.procedures = Procedures(core, self.update)
        self.policies = PolicyAdmin(core)
        self.refs = Refs(core)
        self.recovery = Recovery(core)
        self.reviews = Reviews(core)
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
        core = Core(primary, clock, settings, replicas)
        await core.use_embedder(embedder)
        await core.second.follow()
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

    # writing

    def reporting(self) -> AbstractContextManager[DeliveryReport]:
        """What the stores beside the primary did with what is changed within."""
        return self._core.outbox.reporting()

    async def remember(
        self,
        who: Principal,
        draft: Draft,
        *,
        idempotency_key: str | None = None,
        approval: dict[str, Any] | None = None,
        reasoning: str | None = None,
        secrets: Secrets | None = None,
    ) -> Receipt:
        """Keep a memory; with `approval`, the request to show a reviewer, it waits for one first."""
        stage = partial(staging.stage_remember, self._core, who, draft, approval, reasoning, idempotency_key, secrets)
        if approval is not None:
            return await self._consulted(who, await stage())
        try:
            return await write.remember(self._core, who, draft, idempotency_key, secrets)
        except ReviewRequired as asked:
            return await self._consulted(who, await stage(asked))

    async def remember_many(self, who: Principal, items: Sequence[BatchItem]) -> list[Receipt | Fault]:
        """Each item its own outcome; those that need approval are staged one by one."""
        write.check_batch(items)  # before any of them is staged
        # In the order of the batch also where some of it waits for a person: ids tell in which order things were said.
        items = [replace(item, memory_id=mint_id(self._core.clock())) for item in items]
        outcomes: dict[int, Receipt | Fault] = {}
        plain = [i for i, item in enumerate(items) if item.approval is None]
        if plain:
            kept = await write.remember_many(self._core, who, [items[i] for i in plain])
            outcomes |= dict(zip(plain, kept, strict=True))
        for i, item in enumerate(items):
            asked = outcomes.get(i)
            if asked is None or isinstance(asked, ReviewRequired):
                try:
                    staged = await staging.stage_remember(
                        self._core, who, item.draft, item.approval, item.reasoning, item.idempotency_key, asked=asked,
                        memory_id=item.memory_id,
                    )  # fmt: skip
                    outcomes[i] = await self._consulted(who, staged)
                except Fault as fault:
                    outcomes[i] = fault
        return [outcomes[i] for i in range(len(items))]

    async def upsert(
        self, who: Principal, draft: Draft, ref: str | None, agent: str | None, approval: dict[str, Any] | None = None
    ) -> UpsertResult:
        """Create a record or replace the whole of it, under an id of the author's choice."""
        try:
            done = await upsert.upsert(self._core, who, draft, ref, agent, approval)
        except ReviewRequired as asked:
            done = await upsert.upsert(self._core, who, draft, ref, agent, asked)
        return replace(done, receipt=await self._consulted(who, done.receipt))

    async def update_with(
        self,
        who: Principal,
        agent_id: str,
        ref: str,
        change: Callable[[Memory], Memory],
        *,
        expected_version: int | None = None,
    ) -> Memory:
        """Change a memory at once by a function of what it is; it may be called again when the memory has moved on."""
        return await write.update(self._core, who, agent_id, ref, change, expected_version=expected_version)

    async def update(self, who: Principal, update: Update) -> UpdateResult:
        """Change what is given of a memory, or let the change wait for a reviewer."""
        check_update(update)
        result = await self._update(who, update)
        if result.review_id is not None:
            decided = await self._consulted(who, Receipt(result.memory.id, 0, [], result.review_id))
            if decided.memory is not None:
                result = UpdateResult(decided.memory)
        return replace(result, memory=await self._core.policies.masked(who, result.memory))

    async def _update(self, who: Principal, update: Update) -> UpdateResult:
        if update.approval_required:
            return await staging.stage_update(self._core, who, update)
        try:
            memory = await write.update(
                self._core, who, update.agent_id, update.id, lambda m: changed(m, update),
                expected_version=update.expected_version,
            )  # fmt: skip
        except ReviewRequired as asked:
            return await staging.stage_update(self._core, who, update, asked)
        return UpdateResult(memory)

    async def assert_fact(self, who: Principal, statement: Statement) -> AssertResult:
        """State something in the graph, or let it wait for a reviewer."""
        stated = await self._assert_fact(who, statement)
        if stated.replaced is None:
            return stated
        ended = await self._core.policies.shown_triples(who, [stated.replaced])
        return replace(stated, replaced=ended[0] if ended else None, held=None)

    async def _assert_fact(self, who: Principal, statement: Statement) -> AssertResult:
        if statement.approval_required:
            return await self._consulted(who, await staging.stage_statement(self._core, who, statement))
        try:
            return await self.graph.assert_statement(who, statement)
        except ReviewRequired as asked:
            return await self._consulted(who, await staging.stage_statement(self._core, who, statement, asked))

    async def forget(self, who: Principal, request: Forget) -> ForgetResult:
        if request.approval_required:
            return await self._consulted(who, await staging.stage_forget(self._core, who, request))
        try:
            return await forget.forget(self._core, who, request)
        except ReviewRequired as asked:
            return await self._consulted(who, await staging.stage_forget(self._core, who, request, asked))

    async def delete(self, who: Principal, ref: str, agent: str | None = None) -> ForgetResult:
        """Forget the one memory that an id of any kind names, softly; nothing where it is not there."""
        try:
            memory = await read.find(self._core, who, ref, agent)
        except NotFound:
            return ForgetResult([], self._core.primary.name, erased=False)
        try:
            return await forget.delete(self._core, who, memory)
        except ReviewRequired as asked:
            request = Forget(memory.agent_id, [memory.id])
            return await self._consulted(who, await staging.stage_forget(self._core, who, request, asked))

    async def undelete(self, who: Principal, agent_id: str, id: str, *, reason: str | None = None) -> Memory:
        """Bring back what was forgotten or archived, and not erased, as its next version."""
        return await self._core.policies.masked(who, await undelete.undelete(self._core, who, agent_id, id, reason))

    async def unmerge(self, who: Principal, agent_id: str, id: str) -> Memory:
        """Make what became part of another memory one of its own again, as its next version."""
        return await self._core.policies.masked(who, (await unmerge.unmerge(self._core, who, agent_id, id))[0])

    async def undo(
        self, who: Principal, ids: Sequence[str], *, agent_id: str | None = None, reason: str | None = None
    ) -> undo.UndoResult:
        """Take back whatever was done to these short of erasing them: forgetting, archiving, demoting, merging,
        promoting. Of every agent the caller may use where none is named."""
        return await undo.undo(self._core, who, ids, agent_id, reason)

    async def merge(self, who: Principal, request: Merge) -> MergeResult:
        return await self._masked(who, await self._merge(who, request))

    async def _merge(self, who: Principal, request: Merge) -> MergeResult:
        if request.approval_required:
            return await self._consulted(who, await staging.stage_merge(self._core, who, request))
        try:
            return await merge.merge(self._core, who, request)
        except ReviewRequired as asked:
            return await self._consulted(who, await staging.stage_merge(self._core, who, request, asked))

    async def expire(self, who: Principal, request: Expire) -> ExpireResult:
        await self._recall_log.flush()  # a recall a moment ago must count before "not recalled" is decided
        return await expire.expire(self._core, who, request)

    async def _consulted(self, who: Principal, staged: Staged) -> Staged:
        """What was staged, or what became of it at once where another review system decides; refused where it
        rejects."""
        client = self._core.settings.governance_client
        if client is None or staged.review_id is None:
            return staged
        decided = await consult(self.reviews, who, staged.review_id, client)
        if decided is None:
            return staged
        if decided.outcome is None:
            decision = decided.review["decision"]
            why = f": {decision['reason']}" if "reason" in decision else ""
            raise Forbidden(f"{decision['reviewer']} rejected it{why}", review_id=staged.review_id)
        return cast("Staged", decided.outcome)

    # what destructive operations would do

    async def preview_forget(self, who: Principal, request: Forget) -> list[Memory]:
        """What a forget would take; of what nobody can read, only that it is there."""
        found = await forget.preview(self._core, who, request)
        return [await self._core.policies.masked(who, memory) for memory in found]

    async def preview_merge(self, who: Principal, request: Merge) -> MergeResult:
        canonical, duplicates = await merge.resolve_parties(self._core, who, request)
        return await self._masked(who, merge.merge_preview(self._core, canonical, duplicates, request))

    async def _masked(self, who: Principal, merged: MergeResult) -> MergeResult:
        """With no more of what was merged than a recall would tell."""
        shown = [await self._core.policies.masked(who, memory) for memory in (merged.survivor, *merged.losers)]
        return replace(merged, survivor=shown[0], losers=shown[1:])

    async def preview_expire(self, who: Principal, request: Expire) -> list[Memory]:
        now = self._core.clock()
        # A preview waits for nobody's write lock, so what the log has not written yet is counted here.
        recalled = {id: r.at for r in self._recall_log.unwritten(who.tenant) for id in r.recalled}
        found = await expire.select_expired(self._core, who, request, recalled)
        return [await self._core.policies.masked(who, forget.preview_of(m, now)) for m in found]

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

    async def health(self) -> dict[str, Any]:
        health = await self._core.primary.health()
        info = self._core.embedder_info
        failing = self.stores.failing()
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
                self._core.second.close()
                if self._core.embedding is not None:
                    self._core.embedding.close()
            finally:
                try:
                    await self._core.outbox.close()
                finally:
                    await self._core.primary.close()
