"""memorywire: its requests become engine calls, and what the engine answers becomes its responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from commonplace.__about__ import __version__
from commonplace.dialects.memorywire.base import Document
from commonplace.dialects.memorywire.governance import GovernanceOperations
from commonplace.dialects.memorywire.graph import GraphOperations
from commonplace.dialects.memorywire.records import (
    erasure_report,
    store_errors,
    to_draft,
    to_expire,
    to_forget,
    to_hit,
    to_merge,
    to_procedure,
    to_update,
    to_wire,
)
from commonplace.engine import BatchItem, DeliveryReport, Fire, ProcedureResult, Query, Receipt, tagged
from commonplace.wire import filters
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.filters import Condition, Where
from commonplace.wire.models import (
    AgentOutcome,
    ExpireRequest,
    ExpireResponse,
    FireRequest,
    ForgetRequest,
    ForgetResponse,
    LifecycleRunRequest,
    MergeRequest,
    MergeResponse,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
    ResetRequest,
    StoreError,
    StoreOutcome,
    UpdateRequest,
)
from commonplace.wire.times import DAY_MS
from commonplace.wire.validate import parse


class Memorywire(GovernanceOperations, GraphOperations):
    """The five operations and what surrounds them, for one caller."""

    # the five operations

    async def remember(self, request: RememberRequest) -> RememberResponse:
        with self._engine.reporting(self._who) as report:
            receipt = await self._engine.remember(
                self._who,
                to_draft(request),
                idempotency_key=request.idempotency_key,
                approval=_approval(request),
                reasoning=request.reasoning,
            )
        return self._remembered(receipt, report)

    async def remember_many(self, requests: Sequence[RememberRequest]) -> Sequence[RememberResponse | Fault]:
        """Each its own outcome."""
        items = [
            BatchItem(to_draft(request), request.idempotency_key, _approval(request), request.reasoning)
            for request in requests
        ]
        with self._engine.reporting(self._who) as report:
            outcomes = await self._engine.remember_many(self._who, items)
        return [self._remembered(each, report) if isinstance(each, Receipt) else each for each in outcomes]

    async def remember_batch(self, items: Sequence[Document]) -> Sequence[RememberResponse | Fault]:
        """Each item its own outcome: what is wrong with one is said in its place."""
        outcomes: list[RememberRequest | Fault] = []
        for item in items:
            try:
                outcomes.append(parse(RememberRequest, item))
            except ValidationError as fault:
                outcomes.append(fault)
        requests = [outcome for outcome in outcomes if isinstance(outcome, RememberRequest)]
        answers = iter(await self.remember_many(requests) if requests or not items else ())
        results = [outcome if isinstance(outcome, Fault) else next(answers) for outcome in outcomes]
        for each in results:
            if isinstance(each, Fault):
                self._engine.redactor.redact_fault(each, self._who)
        return results

    async def recall(self, request: RecallRequest) -> RecallResponse:
        where = filters.parse(request.filter)
        if request.user_id is not None:
            where += (Condition(("user_id",), "eq", request.user_id),)
        if request.types:
            where += (Condition(("type",), "in", list(request.types)),)
        if request.fresher_than_days is not None:
            since = max(self._engine.clock() - request.fresher_than_days * DAY_MS, 0)
            where += (Condition(("created_at",), "gte", since),)
        query = Query(
            (request.agent_id,),
            request.query,
            request.k,
            where,
            fusion=request.fusion,
            hops=request.hops,
            quorum=request.quorum_k or 1,
            as_of=request.as_of,
            explain=request.explain,
            min_score=request.min_score,
            judge=request.judge,
            include_shared=request.include_shared,
        )
        found = await self._engine.recall(self._who, query)
        return RecallResponse(
            results=[to_hit(hit) for hit in found.hits],
            fusion_used=request.fusion,
            stores_queried=found.stores_queried,
            latency_ms=round(found.latency_ms),
            note=found.note,
            explain=found.explain,
            errors=_errors(found.errors) or None,
        )

    async def forget(self, request: ForgetRequest) -> ForgetResponse:
        with self._engine.reporting(self._who) as report:
            result = await self._engine.forget(self._who, to_forget(request))
        pending = result.review_id is not None
        own = StoreOutcome(store=result.store, count=len(result.ids), error=result.error)
        others = [StoreOutcome(store=n, count=count, error=why) for n, (count, why) in report.of(result.ids).items()]
        agents = [AgentOutcome(agent_id=agent, count=count) for agent, count in result.agents.items()]
        return ForgetResponse(
            forgotten_ids=result.ids,
            stores=[] if pending else [own, *others],
            hard_delete=result.erased,
            pending_approval=pending,
            approval_url=self._engine.approval_url(result.review_id),
            review_id=result.review_id,
            erased=erasure_report(result),
            remaining_ids=result.remaining or None,
            agents=agents or None,
        )

    async def merge(self, request: MergeRequest) -> MergeResponse:
        with self._engine.reporting(self._who) as report:
            result = await self._engine.merge(self._who, to_merge(request))
        pending, count = result.review_id is not None, len(result.losers)
        done, failed = _stores(report, [result.survivor.id, *(m.id for m in result.losers)])
        return MergeResponse(
            canonical=result.survivor.id,
            merged_count=count,
            strategy_used=request.strategy,
            stores=[] if pending else [self._engine.store_name, *done],
            errors=failed or None,
            pending_approval=pending or None,
            approval_url=self._engine.approval_url(result.review_id),
            review_id=result.review_id,
        )

    async def expire(self, request: ExpireRequest) -> ExpireResponse:
        with self._engine.reporting(self._who) as report:
            result = await self._engine.expire(self._who, to_expire(request))
        store = self._engine.store_name
        done, failed = _stores(report, result.ids)
        own = [StoreError(store=store, error=result.error)] if result.error else []
        return ExpireResponse(
            matched_count=len(result.ids) + len(result.remaining),
            action_taken=request.action,
            stores=[*([] if result.error and not result.ids else [store]), *done],
            remaining_count=len(result.remaining) or None,
            errors=own + failed or None,
        )

    # what destructive operations would do

    async def preview_forget(self, request: ForgetRequest) -> Sequence[Document]:
        return [to_wire(m) for m in await self._engine.preview_forget(self._who, to_forget(request))]

    async def preview_merge(self, request: MergeRequest) -> Document:
        merged = await self._engine.preview_merge(self._who, to_merge(request))
        return {"survivor": to_wire(merged.survivor), "losers": [to_wire(m) for m in merged.losers]}

    async def preview_expire(self, request: ExpireRequest) -> Sequence[Document]:
        return [to_wire(m) for m in await self._engine.preview_expire(self._who, to_expire(request))]

    # single memories

    async def get(self, agent_id: str, id: str, *, as_of: int | None = None) -> Document:
        return to_wire(await self._engine.get(self._who, agent_id, id, as_of=as_of))

    async def history(self, agent_id: str, id: str) -> Sequence[Document]:
        return [to_wire(m) for m in await self._engine.history(self._who, agent_id, id)]

    async def update(self, ref: str, request: UpdateRequest) -> Document:
        """The memory as it is now, and whether the change waits for approval."""
        with self._engine.reporting(self._who) as report:
            result = await self._engine.update(self._who, to_update(ref, request))
        return {**to_wire(result.memory), **self._engine.pending_fields(result.review_id), **store_errors(report)}

    async def list(
        self,
        agent_id: str,
        *,
        type: str | None = None,
        tag: str | None = None,
        user_id: str | None = None,
        filter: Document | None = None,
        limit: int = 100,
        cursor: str | None = None,
        as_of: int | None = None,
    ) -> Document:
        """A page {memories, next_cursor}, newest first."""
        where: Where = filters.parse(filter)
        if type is not None:
            where += (Condition(("type",), "eq", type),)
        if user_id is not None:
            where += (Condition(("user_id",), "eq", user_id),)
        if tag is not None:
            where += (tagged(tag),)
        page = await self._engine.list(self._who, (agent_id,), where, limit=limit, cursor=cursor, as_of=as_of)
        return {"memories": [to_wire(m) for m in page.memories], "next_cursor": page.next_cursor}

    # procedures

    async def procedure_show(self, id: str, *, agent_id: str | None = None) -> Document:
        return to_procedure(await self._engine.procedures.show(self._who, id, agent_id))

    async def procedure_draw(self, id: str, *, agent_id: str | None = None, format: str = "svg") -> Document:
        drawing = await self._engine.procedures.draw(self._who, id, agent_id, format)
        return {"id": id, "format": format, "drawing": drawing}

    async def procedure_fire(self, ref: str, request: FireRequest) -> Document:
        """The procedure as it is now, whether the change waits for approval, and which stores have not taken it."""
        fire = Fire(ref, **{**dict(request), "facts": request.facts or {}})
        with self._engine.reporting(self._who) as report:
            result = await self._engine.procedures.fire(self._who, fire)
        return self._moved(result, report)

    async def procedure_reset(self, ref: str, request: ResetRequest) -> Document:
        with self._engine.reporting(self._who) as report:
            result = await self._engine.procedures.reset(self._who, Fire(ref, **dict(request)))
        return self._moved(result, report)

    # the server

    async def health(self) -> Document:
        found = await self._engine.health(self._who)
        answer = {
            "status": found["status"],
            "version": __version__,
            "store": self._engine.store_name,
            "capabilities": sorted(self._engine.capabilities),
            "embedder": found["embedder"],
        }
        return answer | ({"note": found["note"]} if found.get("note") else {})

    async def status(self) -> Document:
        """What the caller may see of the store."""
        found = await self._engine.upkeep.status(self._who)
        answer = {"version": __version__, **{name: found[name] for name in ("agents", "memories", "pending_reviews")}}
        if found["embedder"]:
            answer["embedder"] = {name: found["embedder"][name] for name in ("name", "dimension")}
        if note := "; ".join(filter(None, (self._engine.note, *self._engine.stores.failing(self._who)))):
            answer["note"] = note
        answer |= {name: found[name] for name in ("webhook", "unwritten_recalls", "audit_export") if found.get(name)}
        return answer

    # the stores

    async def stores(self) -> Sequence[Document]:
        return await self._engine.stores.list(self._who)

    # the lifecycle

    async def lifecycle(self) -> Document:
        return {"jobs": await self._engine.lifecycle.status(self._who)}

    async def lifecycle_run(self, job: str, request: LifecycleRunRequest) -> Document:
        with self._engine.reporting(self._who) as undelivered:
            done = await self._engine.lifecycle.run(self._who, job, dry_run=request.dry_run)
        return asdict(done) | store_errors(undelivered)

    async def lifecycle_runs(
        self, *, job: str | None = None, limit: int = 20, before: str | None = None
    ) -> Sequence[Document]:
        return await self._engine.lifecycle.runs(self._who, job=job, limit=limit, before=before)

    async def lifecycle_show(self, id: str) -> Document:
        return await self._engine.lifecycle.show(self._who, id)

    async def undo(
        self,
        *,
        ids: Sequence[str] | None = None,
        run_id: str | None = None,
        recovery_id: str | None = None,
        agent_id: str | None = None,
        reason: str | None = None,
    ) -> Document:
        """What was done to these memories, by a run of a job or by a recovery, is taken back."""
        if [ids, run_id, recovery_id].count(None) != 2:
            raise ValidationError(
                "undo takes ids, of memories, or run_id, of a run of a job, or recovery_id: one of them", field="ids"
            )
        if ids is None and agent_id is not None:
            raise ValidationError("it is of every agent that it was for: leave agent_id out", field="agent_id")
        with self._engine.reporting(self._who) as report:
            if recovery_id is not None:
                done = await self._engine.recovery.undo(self._who, recovery_id, reason)
            elif run_id is not None:
                done = await self._engine.lifecycle.undo(self._who, run_id, reason=reason)
            else:
                done = await self._engine.undo(self._who, ids or (), agent_id=agent_id, reason=reason)
        answer: Document = {"restored_ids": done.restored, "unchanged_ids": done.unchanged}
        if done.faults:
            for fault in done.faults.values():
                self._engine.redactor.redact_fault(fault, self._who)
            errors = [{"id": id, "code": fault.code, "message": fault.message} for id, fault in done.faults.items()]
            answer["errors"] = errors
        return answer | store_errors(report, field="stores")

    # encoding

    def _moved(self, result: ProcedureResult, report: DeliveryReport) -> Document:
        return {**to_procedure(result), **self._engine.pending_fields(result.review_id), **store_errors(report)}

    def _remembered(self, receipt: Receipt, report: DeliveryReport) -> RememberResponse:
        done, failed = _stores(report, [receipt.id])
        return RememberResponse(
            id=receipt.id,
            stored_at=receipt.stored_at,
            stores=[*receipt.stores, *done],
            errors=failed or None,
            pending_approval=receipt.review_id is not None,
            approval_url=self._engine.approval_url(receipt.review_id),
            review_id=receipt.review_id,
            redacted=receipt.redacted or None,
        )


def _errors(by_store: Mapping[str, str]) -> list[StoreError]:
    return [StoreError(store=store, error=error) for store, error in by_store.items()]


def _stores(report: DeliveryReport, ids: Iterable[str]) -> tuple[list[str], list[StoreError]]:
    """Those beside the primary that did it to all of these, and those that did not."""
    outcomes = report.of(ids)
    done = [store for store, (_, why) in outcomes.items() if why is None]
    return done, _errors({store: why for store, (_, why) in outcomes.items() if why is not None})


def _approval(request: RememberRequest) -> Document | None:
    return request.model_dump(exclude_unset=True) if request.approval_required else None
