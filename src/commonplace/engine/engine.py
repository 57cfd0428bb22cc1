"""The engine: every operation of every protocol ends here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commonplace.embedders.base import Embedder, Vectors
from commonplace.engine import rate_limit
from commonplace.engine.core import Core, Settings, require_role
from commonplace.engine.governance import reviews
from commonplace.engine.governance.reviews import Decision, ReviewOutcome
from commonplace.engine.graph.knowledge import Knowledge
from commonplace.engine.ledger.audit import Verifier
from commonplace.engine.memory import expire, forget, read, upsert, write
from commonplace.engine.memory.merge import MergeResult
from commonplace.engine.memory.write import Item
from commonplace.engine.palaces import palace_recall, palaces
from commonplace.engine.peers import asking
from commonplace.engine.peers.peers import Peers
from commonplace.engine.recall import counting
from commonplace.engine.recall.recall_log import RecallEntry, RecallLog
from commonplace.engine.redaction import Secrets
from commonplace.engine.runs.refs import Refs
from commonplace.engine.runs.runs import Runs
from commonplace.engine.types import Draft, ForgetResult, Query, RecallResult, Receipt, Snapshot
from commonplace.engine.upkeep import maintenance
from commonplace.stores.base import AuditEntry, Page, Primary, Progress
from commonplace.wire.errors import Fault, Forbidden, Unavailable
from commonplace.wire.filters import Where
from commonplace.wire.models import ExpireRequest, ForgetRequest, MergeRequest
from commonplace.wire.record import Clock, Memory, Principal, system_clock

_AUDIT_AT_ONCE = 1000


class Engine(Knowledge):
    """Over one primary store. Open it with `await Engine.open(...)` and close it when done."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.embedder_note: str | None = None  # set by whoever chose the embedder
        self.refs = Refs(core)
        self.runs = Runs(core)
        self._recall_log = RecallLog(core)
        self._recalls = rate_limit.per_minute(core.settings.recalls_per_minute)
        self.peers = Peers(core)

    @classmethod
    async def open(
        cls,
        primary: Primary,
        embedder: Embedder | None = None,
        *,
        clock: Clock = system_clock,
        settings: Settings | None = None,
    ) -> Engine:
        core = Core(primary, clock, settings)
        await core.use_embedder(embedder)
        return cls(core)

    # the five operations

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
        if approval is not None:
            return await reviews.stage_remember(self.core, who, draft, approval, reasoning, idempotency_key, secrets)
        return await write.remember(self.core, who, draft, idempotency_key, secrets)

    async def remember_many(self, who: Principal, items: Sequence[Item]) -> list[Receipt | Fault]:
        return await write.remember_many(self.core, who, items)

    async def recall(self, who: Principal, query: Query) -> RecallResult:
        self._spend_recall(who, query.agents)
        recollection = await read.recall(self.core, who, query)
        ids = [hit.memory.id for hit in recollection.hits]
        agent = query.agents[0] if len(query.agents) == 1 else "*"
        await self._recall_log.note(
            RecallEntry(who, agent, query.text, ids, self.core.clock(), counted=query.snapshot is None)
        )
        return recollection

    async def search(
        self, who: Principal, query: Query, *, limit: int, at_least: float | None = None
    ) -> counting.SearchResult:
        """The best `limit` hits and how many there are; only what is shown counts as recalled."""
        if not query.agents:
            return counting.SearchResult([], 0)
        self._spend_recall(who, query.agents)
        found = await counting.search(self.core, who, query, limit, at_least)
        ids = [hit.memory.id for hit in found.hits]
        agent = query.agents[0] if len(query.agents) == 1 else "*"
        await self._recall_log.note(RecallEntry(who, agent, query.text, ids, self.core.clock()))
        return found

    async def ask(self, who: Principal, asked: asking.Asked, *, limit: int, show: int) -> asking.Answered:
        """As `search`, with keywords and without a question, too; of `limit` that are looked at `show` are recalled."""
        if not asked.agents:
            return asking.Answered([], 0)
        spent = [agent for agent in asked.agents if self._recalls and self._recalls.wait((who.tenant, agent))]
        left = tuple(agent for agent in asked.agents if agent not in spent) or asked.agents
        self._spend_recall(who, left)
        found = await asking.ask(self.core, who, replace(asked, agents=left), limit)
        if len(left) < len(asked.agents):
            found.cut = found.cut or "some agents have used up their recalls of this minute"
        text = asked.text if asked.text is not None else " ".join(asked.keywords)
        agent = asked.agents[0] if len(asked.agents) == 1 else "*"
        ids = [match.memory.id for match in found.matches[:show]]
        await self._recall_log.note(RecallEntry(who, agent, text, ids, self.core.clock()))
        return found

    async def store(
        self, who: Principal, draft: Draft, ref: str | None, agent: str | None, approval: dict[str, Any] | None = None
    ) -> upsert.UpsertResult:
        """Create a record or replace the whole of it, under an id of the author's choice."""
        return await upsert.store(self.core, who, draft, ref, agent, approval)

    def _spend_recall(self, who: Principal, agents: tuple[str, ...]) -> None:
        if self._recalls is None:
            return
        for agent in agents:
            self.core.require(who, agent, "reader")  # nobody spends the budget of an agent that is not theirs
        for agent in agents:
            if wait := self._recalls.wait((who.tenant, agent)):
                limit = self.core.settings.recalls_per_minute
                raise rate_limit.refuse(wait, f"agent {agent!r} has used up its {limit} recalls a minute")
        for agent in agents:  # only now that none refuses
            self._recalls.spend((who.tenant, agent))

    async def forget(self, who: Principal, request: ForgetRequest) -> ForgetResult:
        if request.approval_required:
            return await reviews.stage_forget(self.core, who, request)
        return await forget.forget(self.core, who, request)

    async def preview_forget(self, who: Principal, request: ForgetRequest) -> list[Memory]:
        """What a forget would take; of what nobody can read any more, only that it is there."""
        now = self.core.clock()
        return [forget.preview_of(m, now) for m in await forget.chosen(self.core, who, request)]

    async def merge(self, who: Principal, request: MergeRequest) -> MergeResult:
        return await forget.merge(self.core, who, request)

    async def stage_merge(self, who: Principal, request: MergeRequest) -> tuple[Memory, str]:
        return await reviews.stage_merge(self.core, who, request)

    async def preview_merge(self, who: Principal, request: MergeRequest) -> MergeResult:
        canonical, duplicates = await forget.parties(self.core, who, request)
        return forget.combined(self.core, canonical, duplicates, request)

    async def expire(self, who: Principal, request: ExpireRequest) -> list[str]:
        await self._recall_log.flush()  # a recall a moment ago must count before "not recalled" is decided
        return await expire.expire(self.core, who, request)

    async def preview_expire(self, who: Principal, request: ExpireRequest) -> list[Memory]:
        await self._recall_log.flush()
        now = self.core.clock()
        return [forget.preview_of(m, now) for m in await expire.due(self.core, who, request)]

    # single memories

    async def get(
        self, who: Principal, agent_id: str, ref: str, *, as_of: int | None = None, snapshot: Snapshot | None = None
    ) -> Memory:
        return await read.get(self.core, who, agent_id, ref, as_of=as_of, snapshot=snapshot)

    async def list(self, who: Principal, agents: tuple[str, ...], where: Where = (), **options: Any) -> Page:
        return await read.listing(self.core, who, agents, where, **options)

    async def find(self, who: Principal, ref: str, agent: str | None = None) -> Memory:
        """By any id that names it: of one agent, else of every agent the caller may read."""
        return await upsert.find(self.core, who, ref, agent)

    async def page(
        self, who: Principal, agents: tuple[str, ...], where: Where = (), *, limit: int, offset: int = 0,
        newest_first: bool = True,
    ) -> counting.NumberedPage:  # fmt: skip
        return await counting.page(self.core, who, agents, where, limit=limit, offset=offset, newest_first=newest_first)

    async def count(self, who: Principal, agents: tuple[str, ...], where: Where = ()) -> int:
        return await counting.count(self.core, who, agents, where)

    async def history(self, who: Principal, agent_id: str, ref: str) -> Sequence[Memory]:
        return await read.history(self.core, who, agent_id, ref)

    async def update(
        self,
        who: Principal,
        agent_id: str,
        ref: str,
        change: Callable[[Memory], Memory],
        *,
        expected_version: int | None = None,
    ) -> Memory:
        return await write.update(self.core, who, agent_id, ref, change, expected_version=expected_version)

    async def agents(self, who: Principal) -> dict[str, int]:
        counts = await self.core.primary.agents(who.tenant)
        return {agent: count for agent, count in counts.items() if who.may_use(agent)}

    async def agent_names(self, who: Principal) -> Sequence[str]:
        """As `agents`, without counting."""
        return [agent for agent in await self.core.primary.agent_names(who.tenant) if who.may_use(agent)]

    # palaces

    async def palace_names(self, who: Principal) -> Sequence[str]:
        return await palaces.palaces(self.core, who)

    async def every_palace(self, who: Principal) -> Sequence[palaces.Palace]:
        return await palaces.every(self.core, who)

    async def palace(self, who: Principal, name: str) -> palaces.Palace:
        return await palaces.find(self.core, who, name)

    async def create_palace(self, who: Principal, name: str, description: str | None = None) -> palaces.Palace:
        return await palaces.create(self.core, who, name, description)

    async def ensure_palace(self, who: Principal, name: str) -> palaces.Palace:
        return await palaces.ensure(self.core, who, name)

    async def identify_palace(self, who: Principal, name: str, identity: str | None) -> palaces.Palace:
        return await palaces.identify(self.core, who, name, identity)

    async def recall_layers(
        self, who: Principal, name: str, text: str, k: int, *, deep: bool = False
    ) -> palace_recall.PalaceRecall:
        """A palace's recall; what the question itself found and is shown counts as recalled."""
        palace = await palaces.find(self.core, who, name)
        self._spend_recall(who, (name,))
        found = await palace_recall.recall(self.core, who, name, text, k, palace.identity, deep=deep)
        await self._recall_log.note(RecallEntry(who, name, text, found.found, self.core.clock()))
        return found

    async def most_important(self, who: Principal, agent: str, where: Where = (), *, limit: int) -> Sequence[Memory]:
        """By importance as it is now, the recalls of a moment ago counted."""
        await self._recall_log.flush()
        return await palace_recall.most_important(self.core, who, agent, where, limit=limit)

    # reviews

    async def reviews(self, who: Principal, status: str | None = "pending") -> Any:
        return await reviews.reviews(self.core, who, status)

    async def review(self, who: Principal, review_id: str) -> dict[str, Any]:
        return await reviews.review(self.core, who, review_id)

    async def decide(self, who: Principal, review_id: str, decision: Decision) -> ReviewOutcome:
        return await reviews.decide(self.core, who, review_id, decision)

    # audit

    async def audit(self, who: Principal, *, limit: int = 100, after: int = 0, **which: Any) -> Sequence[AuditEntry]:
        """The next `limit` entries with n above `after` that are about agents the caller may use."""
        require_role(who, "reviewer")
        if which.get("agent_id") is not None:
            self.core.require(who, which["agent_id"], "reviewer")
        await self._recall_log.flush()
        # Of many agents' entries a caller may see few, so a page of theirs takes more than a page to find.
        step = limit if "*" in who.agents else max(limit, _AUDIT_AT_ONCE)
        found: list[AuditEntry] = []
        while len(found) < limit:
            batch: Sequence[AuditEntry] = await self.core.primary.audit(who.tenant, limit=step, after=after, **which)
            # An entry about several agents names memories of all of them.
            found += [e for e in batch if ("*" in who.agents if e.agent_id == "*" else who.may_use(e.agent_id))]
            if len(batch) < step:
                break
            after = batch[-1].n
        return found[:limit]

    async def verify_audit(self, who: Principal, progress: Progress | None = None) -> Verifier:
        require_role(who, "reviewer")
        if "*" not in who.agents:
            raise Forbidden(f"{who.name} may not use every agent, and the audit chain is about all of them")
        await self._recall_log.flush()
        return await maintenance.verify_audit(self.core, who.tenant, progress)

    # upkeep

    async def status(self, who: Principal) -> dict[str, Any]:
        await self._recall_log.flush()
        return await maintenance.status(self.core, who)

    async def doctor(self, who: Principal, repair: bool = True, progress: Progress | None = None) -> Any:
        await self._recall_log.flush()
        return await maintenance.doctor(self.core, who, repair, progress)

    async def backup(self, who: Principal, target: str | Path, progress: Progress | None = None) -> dict[str, Any]:
        await self._recall_log.flush()
        return await maintenance.backup(self.core, who, target, progress)

    async def compact(self, who: Principal, progress: Progress | None = None) -> dict[str, Any]:
        await self._recall_log.flush()
        if who.operates:
            for tenant in await self.core.primary.tenants():
                await self.runs.sweep(tenant)  # so that what idle runs noted is gone from the files, too
        return await maintenance.compact(self.core, who, progress)

    async def reindex(self, who: Principal, embedder: Embedder, progress: Progress | None = None) -> dict[str, Any]:
        return await maintenance.reindex(self.core, who, embedder, progress)

    # the embedder, for others to use

    async def embed(self, who: Principal, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, made by the store's own embedder."""
        require_role(who, "reader")
        vectors = await self.core.embed(texts)
        if vectors is None:
            raise Unavailable(self.core.note or "no embedder is configured")
        return vectors

    # life

    def queues(self) -> dict[str, int]:
        """What waits: units of work for the store, texts for the embedder, recalls to be written behind."""
        embedding = self.core.embedding
        return {"writes": self.core.writing, "embeddings": embedding.waiting if embedding else 0,
                "recalls": len(self._recall_log)}  # fmt: skip

    async def health(self) -> dict[str, Any]:
        health = await self.core.primary.health()
        info = self.core.embedder_info
        return {
            **health,
            "embedder": info.name if info else None,
            **({"note": self.core.note} if self.core.note else {}),
        }

    async def flush(self) -> None:
        """Write what is written behind, now."""
        await self._recall_log.flush()

    async def close(self) -> None:
        try:
            await self._recall_log.close()
        finally:
            try:
                if self.core.embedding is not None:
                    self.core.embedding.close()
            finally:
                await self.core.primary.close()
