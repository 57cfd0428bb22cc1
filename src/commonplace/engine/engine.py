"""The engine: every operation of every protocol ends here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from commonplace.embedders.base import Embedder
from commonplace.engine import forgetting, governance, ledger, reading, upkeep, writing
from commonplace.engine.behind import Behind, Recalled
from commonplace.engine.core import Core, Settings
from commonplace.engine.draft import Draft, Forgotten, Query, Receipt, Recollection
from commonplace.engine.governance import Decided, Decision
from commonplace.engine.merge import Merged, combine
from commonplace.engine.writing import Item
from commonplace.stores.base import AuditEntry, Page, Primary, Progress
from commonplace.stores.where import Where
from commonplace.wire.errors import Fault
from commonplace.wire.models import ExpireRequest, ForgetRequest, MergeRequest
from commonplace.wire.record import Clock, Memory, Principal, system_clock


class Engine:
    """Over one primary store. Open it with `await Engine.open(...)` and close it when done."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.embedder_note: str | None = None  # set by whoever chose the embedder
        self._behind = Behind(core)

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
    ) -> Receipt:
        """Keep a memory; with `approval`, the request to show a reviewer, it waits for one first."""
        if approval is not None:
            return await governance.stage_remember(self.core, who, draft, approval, reasoning, idempotency_key)
        return await writing.remember(self.core, who, draft, idempotency_key)

    async def remember_many(self, who: Principal, items: Sequence[Item]) -> list[Receipt | Fault]:
        return await writing.remember_many(self.core, who, items)

    async def recall(self, who: Principal, query: Query) -> Recollection:
        recollection = await reading.recall(self.core, who, query)
        ids = [hit.memory.id for hit in recollection.hits]
        recalled = Recalled(who, query.agents[0] if len(query.agents) == 1 else "*", query.text, ids, self.core.clock())
        await self._behind.note(recalled)
        return recollection

    async def forget(self, who: Principal, request: ForgetRequest) -> Forgotten:
        if request.approval_required:
            return await governance.stage_forget(self.core, who, request)
        return await forgetting.forget(self.core, who, request)

    async def would_forget(self, who: Principal, request: ForgetRequest) -> list[Memory]:
        return await forgetting.chosen(self.core, who, request)

    async def merge(self, who: Principal, request: MergeRequest) -> Merged:
        return await forgetting.merge(self.core, who, request)

    async def stage_merge(self, who: Principal, request: MergeRequest) -> tuple[Memory, str]:
        return await governance.stage_merge(self.core, who, request)

    async def would_merge(self, who: Principal, request: MergeRequest) -> Merged:
        canonical, duplicates = await forgetting.parties(self.core, who, request)
        return combine(canonical, duplicates, request.strategy)

    async def expire(self, who: Principal, request: ExpireRequest) -> list[str]:
        await self._behind.flush()  # a recall a moment ago must count before "not recalled" is decided
        return await forgetting.expire(self.core, who, request)

    async def would_expire(self, who: Principal, request: ExpireRequest) -> list[Memory]:
        await self._behind.flush()
        return await forgetting.due(self.core, who, request)

    # single memories

    async def get(self, who: Principal, agent_id: str, ref: str, *, as_of: int | None = None) -> Memory:
        return await reading.get(self.core, who, agent_id, ref, as_of=as_of)

    async def list(self, who: Principal, agents: tuple[str, ...], where: Where = (), **options: Any) -> Page:
        return await reading.listing(self.core, who, agents, where, **options)

    async def history(self, who: Principal, agent_id: str, ref: str) -> Sequence[Memory]:
        return await reading.history(self.core, who, agent_id, ref)

    async def update(
        self,
        who: Principal,
        agent_id: str,
        ref: str,
        change: Callable[[Memory], Memory],
        *,
        expected_version: int | None = None,
    ) -> Memory:
        return await writing.update(self.core, who, agent_id, ref, change, expected_version=expected_version)

    async def agents(self, who: Principal) -> dict[str, int]:
        counts = await self.core.primary.agents(who.tenant)
        return {agent: count for agent, count in counts.items() if who.may_use(agent)}

    # reviews

    async def reviews(self, who: Principal, status: str | None = "pending") -> Any:
        return await governance.reviews(self.core, who, status)

    async def review(self, who: Principal, review_id: str) -> dict[str, Any]:
        return await governance.review(self.core, who, review_id)

    async def decide(self, who: Principal, review_id: str, decision: Decision) -> Decided:
        return await governance.decide(self.core, who, review_id, decision)

    # audit

    async def audit(self, who: Principal, **which: Any) -> Any:
        """Entries of the agents the caller may use, with n above `after`."""
        await self._behind.flush()
        entries: Sequence[AuditEntry] = await self.core.primary.audit(who.tenant, **which)
        return [e for e in entries if e.agent_id == "*" or who.may_use(e.agent_id)]

    async def verify_audit(self, who: Principal, progress: Progress | None = None) -> ledger.Verifier:
        await self._behind.flush()
        return await upkeep.verify_audit(self.core, who.tenant, progress)

    # upkeep

    async def status(self, who: Principal) -> dict[str, Any]:
        await self._behind.flush()
        return await upkeep.status(self.core, who)

    async def doctor(self, who: Principal, repair: bool = True, progress: Progress | None = None) -> Any:
        await self._behind.flush()
        return await upkeep.doctor(self.core, who, repair, progress)

    async def backup(self, who: Principal, target: str | Path, progress: Progress | None = None) -> dict[str, Any]:
        await self._behind.flush()
        return await upkeep.backup(self.core, who, target, progress)

    async def compact(self, who: Principal, progress: Progress | None = None) -> dict[str, Any]:
        await self._behind.flush()
        return await upkeep.compact(self.core, who, progress)

    async def reindex(self, who: Principal, embedder: Embedder, progress: Progress | None = None) -> dict[str, Any]:
        return await upkeep.reindex(self.core, who, embedder, progress)

    # life

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
        await self._behind.flush()

    async def close(self) -> None:
        await self._behind.close()
        if self.core.embedding is not None:
            self.core.embedding.close()
        await self.core.primary.close()
