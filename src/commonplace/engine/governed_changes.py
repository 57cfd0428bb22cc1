"""Every change of a memory, made at once or staged for a person where the caller or a policy wants that; and what the
destructive ones would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from commonplace.engine.core import Core
from commonplace.engine.governance import staging
from commonplace.engine.governance.client import consult
from commonplace.engine.governance.policies import ReviewRequired
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.graph.graph import Graph
from commonplace.engine.graph.statements import AssertResult
from commonplace.engine.memory import expire, forget, merge, read, undelete, undo, unmerge, upsert, write
from commonplace.engine.memory.change import changed, check_update
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import (
    BatchItem,
    Draft,
    Expire,
    ExpireResult,
    Forget,
    ForgetResult,
    Merge,
    MergeResult,
    Receipt,
    Statement,
    Update,
    UpdateResult,
    UpsertResult,
)
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Fault, Forbidden, NotFound
from commonplace.wire.record import Memory, Principal

Staged = TypeVar("Staged", Receipt, ForgetResult, MergeResult, AssertResult)


class GovernedChanges:
    """The half of `Engine` that writes."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._recall_log = RecallLog(core)
        self.graph = Graph(core)
        self.reviews = Reviews(core)

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
