"""Memory for Python programs: `Memory` for async code, `SyncMemory` for the rest."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from commonplace import config as configuration, plugins
from commonplace.__about__ import __version__
from commonplace.dialects.memorywire import Memorywire
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Engine, Progress, Settings
from commonplace.judges.registry import open_judge
from commonplace.stores.base import Primary
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.models import (
    AssertRequest,
    DecideRequest,
    EraseRequest,
    ExpireRequest,
    ExpireResponse,
    ForgetRequest,
    ForgetResponse,
    MergeRequest,
    MergeResponse,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
    RetractRequest,
    UpdateRequest,
)
from commonplace.wire.record import Clock, Principal, system_clock
from commonplace.wire.validate import parse

T = TypeVar("T")


async def open_engine(
    config: configuration.Config, *, store: Primary | None = None, embedder: Embedder | None = None,
    clock: Clock = system_clock, settings: Settings | None = None,
) -> Engine:  # fmt: skip
    """The engine for a configuration. A store that already has vectors keeps the embedder that made them."""
    settings = settings or Settings()
    settings.folder, settings.redaction, settings.mrp = config.data, config.redaction, config.mrp
    primary = store or plugins.open_store(config.store_url, clock)
    try:
        wanted = embedder or open_embedder(config.embedder)
        recorded = await primary.embedder()
        chosen, note = wanted, None
        if wanted is not None and recorded is not None and wanted.name != recorded.name:
            chosen = _reopen(recorded.name) or wanted
            if chosen is not wanted:
                note = (
                    f"this store's vectors were made by {recorded.name}, which is used; "
                    f"`commonplace reindex` changes to {wanted.name}"
                )
        engine = await Engine.open(primary, chosen, clock=clock, settings=settings)
        engine.embedder_note = note
        engine.use_judge(lambda: open_judge(config.judge).judge)
        return engine
    except BaseException:
        await primary.close()
        raise


def _reopen(name: str) -> Embedder | None:
    try:
        return open_embedder(name)
    except Fault:
        return None


class Memory:
    """One agent's memory. Opens its store at the first call; close it, or use `async with`.

    >>> async with Memory(agent_id="assistant") as memory:
    ...     await memory.remember("Alice is allergic to peanuts", user_id="alice")
    ...     found = await memory.recall("what should I not cook for Alice?")
    """

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        stores: Sequence[str] | None = None,
        data: str | Path | None = None,
        embedder: str | Embedder | None = None,
        principal: Principal | None = None,
        clock: Clock = system_clock,
    ) -> None:
        if stores is not None and len(stores) != 1:
            raise ValidationError(
                "stores must name exactly one store URL, such as sqlite://./memories.db", field="stores"
            )
        self._embedder = None if isinstance(embedder, str) else embedder
        self.config = configuration.load(
            data=data,
            agent=agent_id,
            embedder=embedder if isinstance(embedder, str) else None,
            store=stores[0] if stores else None,
        )
        self.agent_id = self.config.agent
        self._who = principal or Principal()
        self._clock = clock
        self._engine: Engine | None = None
        self._opening: asyncio.Lock | None = None

    async def engine(self) -> Engine:
        if self._engine is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._engine is None:
                    self._engine = await open_engine(self.config, embedder=self._embedder, clock=self._clock)
        return self._engine

    async def _wire(self) -> Memorywire:
        return Memorywire(await self.engine(), self._who)

    def _request(self, fields: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in fields.items() if value is not None}
        given.setdefault("agent_id", self.agent_id)
        return given

    # the five operations

    async def remember(self, content: str, *, type: str = "semantic", **fields: Any) -> RememberResponse:
        """Keep a memory. `fields` are those of a remember request: user_id, metadata, confidence, source,
        expires_at, approval_required, idempotency_key, privacy_intent, embedding, agent_id."""
        request = parse(RememberRequest, self._request({"content": content, "type": type, **fields}))
        return await (await self._wire()).remember(request)

    async def remember_batch(self, items: Sequence[str | dict[str, Any]]) -> list[RememberResponse | Fault]:
        """Keep many at once: strings, or dicts with the fields of `remember`. Each has its own outcome."""
        outcomes: list[RememberResponse | Fault | None] = []
        requests: list[RememberRequest] = []
        for item in items:
            fields = {"content": item} if isinstance(item, str) else dict(item)
            try:
                requests.append(parse(RememberRequest, self._request({"type": "semantic", **fields})))
                outcomes.append(None)
            except ValidationError as fault:
                outcomes.append(fault)
        answered = iter(await (await self._wire()).remember_many(requests)) if requests or not items else iter(())
        return [outcome if outcome is not None else next(answered) for outcome in outcomes]

    async def recall(self, query: str, *, k: int = 5, **fields: Any) -> RecallResponse:
        """Find memories. `fields` are those of a recall request: user_id, types, filter, fresher_than_days,
        fusion, hops, min_score, as_of, explain, include_shared, agent_id."""
        request = parse(RecallRequest, self._request({"query": query, "k": k, **fields}))
        return await (await self._wire()).recall(request)

    async def forget(self, ids: Sequence[str] | str | None = None, **fields: Any) -> ForgetResponse:
        """Delete by `ids`, `filter`, or both; `hard_delete=True` erases. Others: user_id, reason, cascade,
        approval_required, agent_id."""
        request = parse(ForgetRequest, self._request({"ids": _listed(ids), **fields}))
        return await (await self._wire()).forget(request)

    async def merge(self, canonical: str, duplicates: Sequence[str], **fields: Any) -> MergeResponse:
        """Make one of several. `strategy` is keep_canonical, merge_content or keep_highest_confidence."""
        request = parse(MergeRequest, self._request({"canonical": canonical, "duplicates": list(duplicates), **fields}))
        return await (await self._wire()).merge(request)

    async def expire(self, policy: dict[str, Any], *, action: str = "forget", **fields: Any) -> ExpireResponse:
        """Apply a policy {older_than_days, type, confidence_below, no_recall_in_days}: forget, archive or demote."""
        request = parse(ExpireRequest, self._request({"policy": policy, "action": action, **fields}))
        return await (await self._wire()).expire(request)

    # what destructive operations would do

    async def preview_forget(self, ids: Sequence[str] | str | None = None, **fields: Any) -> list[dict[str, Any]]:
        request = parse(ForgetRequest, self._request({"ids": _listed(ids), **fields}))
        return list(await (await self._wire()).preview_forget(request))

    async def preview_merge(self, canonical: str, duplicates: Sequence[str], **fields: Any) -> dict[str, Any]:
        request = parse(MergeRequest, self._request({"canonical": canonical, "duplicates": list(duplicates), **fields}))
        return await (await self._wire()).preview_merge(request)

    async def preview_expire(self, policy: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        request = parse(ExpireRequest, self._request({"policy": policy, **fields}))
        return list(await (await self._wire()).preview_expire(request))

    # as they were called at first; programs use these names
    would_forget, would_merge, would_expire = preview_forget, preview_merge, preview_expire

    # single memories

    async def get(self, id: str, *, as_of: int | None = None, agent_id: str | None = None) -> dict[str, Any]:
        return await (await self._wire()).get(agent_id or self.agent_id, id, as_of=as_of)

    async def list(
        self, *, type: str | None = None, tag: str | None = None, user_id: str | None = None,
        filter: dict[str, Any] | None = None, limit: int = 100, cursor: str | None = None, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A page {memories, next_cursor}, newest first."""
        return await (await self._wire()).list(
            agent_id or self.agent_id, type=type, tag=tag, user_id=user_id,
            filter=filter, limit=limit, cursor=cursor, as_of=as_of,
        )  # fmt: skip

    async def update(self, id: str, **fields: Any) -> dict[str, Any]:
        """Change content, metadata, tags, confidence or expires_at; `expected_version` guards against overwriting."""
        return await (await self._wire()).update(id, parse(UpdateRequest, self._request(fields)))

    async def history(self, id: str, *, agent_id: str | None = None) -> Sequence[dict[str, Any]]:
        return await (await self._wire()).history(agent_id or self.agent_id, id)

    # the knowledge graph

    async def graph_assert(self, subject: str, predicate: str, object: str, **fields: Any) -> dict[str, Any]:
        """State something; what held of this subject and predicate until then ends. `fields`: confidence,
        provenance, valid_from (ms), agent_id."""
        given = self._request({"subject": subject, "predicate": predicate, "object": object, **fields})
        return await (await self._wire()).graph_assert(parse(AssertRequest, given))

    async def graph_query(
        self, subject: str, *, predicate: str | None = None, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """{subject, triples}: what is stated about a subject now, or held at `as_of` (ms)."""
        return await (await self._wire()).graph_query(
            agent_id or self.agent_id, subject, predicate=predicate, as_of=as_of
        )

    async def graph_history(
        self, subject: str, *, predicate: str | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        """{subject, triples}: everything that was ever stated about it, oldest first."""
        return await (await self._wire()).graph_history(agent_id or self.agent_id, subject, predicate=predicate)

    async def graph_path(
        self, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """{start, end, triples}: the fewest statements that lead from one thing to another."""
        return await (await self._wire()).graph_path(
            agent_id or self.agent_id, start, end, max_hops=max_hops, as_of=as_of
        )

    async def graph_retract(self, subject: str, predicate: str, **fields: Any) -> dict[str, Any]:
        """End what holds now, with nothing in its place."""
        given = self._request({"subject": subject, "predicate": predicate, **fields})
        return await (await self._wire()).graph_retract(parse(RetractRequest, given))

    async def graph_erase(self, subject: str, **fields: Any) -> dict[str, Any]:
        """Erase everything ever stated about a subject; with `mentions=True` also what names it as the object."""
        given = self._request({"subject": subject, **fields})
        return await (await self._wire()).graph_erase(parse(EraseRequest, given))

    async def preview_graph_erase(self, subject: str, **fields: Any) -> dict[str, Any]:
        given = self._request({"subject": subject, **fields})
        return await (await self._wire()).preview_graph_erase(parse(EraseRequest, given))

    would_graph_erase = preview_graph_erase

    async def neighbors(self, id: str, *, hops: int = 1, agent_id: str | None = None) -> dict[str, Any]:
        """{id, neighbors}: the memories within so many hops of one, each with its distance."""
        return await (await self._wire()).neighbors(agent_id or self.agent_id, id, hops=hops)

    # reviews

    async def reviews(self, status: str | None = "pending") -> Any:
        return await (await self.engine()).reviews.list(self._who, status)

    async def approve(
        self,
        review_id: str,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        request: dict[str, Any] | None = None,
        apply: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Let a staged write happen, as it was asked or as `request` changes it. A new memory may join another
        (`apply={"merge_into": id}`) or take the place of others (`apply={"forget": [ids]}`) as it is approved."""
        joined = None if apply is None else parse(DecideRequest, {"approved": True, "apply": apply}).apply
        return await (await self._wire()).decide(review_id, True, reviewer or self._who.name, reason, request, joined)

    async def reject(self, review_id: str, *, reviewer: str | None = None, reason: str | None = None) -> dict[str, Any]:
        return await (await self._wire()).decide(review_id, False, reviewer or self._who.name, reason)

    async def review(self, review_id: str) -> dict[str, Any]:
        return await (await self.engine()).reviews.get(self._who, review_id)

    # audit

    async def audit(
        self, *, agent_id: str | None = None, operation: str | None = None, since: int | None = None,
        until: int | None = None, limit: int = 100, cursor: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A page {entries, next_cursor} of the audit trail, oldest first."""
        return await (await self._wire()).audit(
            agent_id=agent_id, operation=operation, since=since, until=until,
            limit=limit, cursor=cursor,
        )  # fmt: skip

    async def verify_audit(self, progress: Progress | None = None) -> dict[str, Any]:
        """{ok, entries, head}, and when it is not ok {first_bad, problem}."""
        return await (await self._wire()).verify_audit(progress)

    # upkeep

    async def status(self) -> dict[str, Any]:
        engine = await self.engine()
        found = await engine.upkeep.status(self._who)
        return {
            "version": __version__, "data": str(self.config.data), **found,
            "note": found["note"] or engine.embedder_note,
        }  # fmt: skip

    async def doctor(self, repair: bool = True, progress: Progress | None = None) -> Any:
        """Check everything; what can be derived again is repaired. A list of {check, ok, detail, repaired}."""
        findings = await (await self.engine()).upkeep.doctor(self._who, repair, progress)
        return [asdict(finding) for finding in findings]

    async def backup(self, path: str | Path, progress: Progress | None = None) -> dict[str, Any]:
        """A consistent copy of the store in one file, while others read and write."""
        return await (await self.engine()).upkeep.backup(self._who, path, progress)

    async def compact(self, progress: Progress | None = None) -> dict[str, Any]:
        """Give back unused space; afterwards no erased byte is left in the files."""
        return await (await self.engine()).upkeep.compact(self._who, progress)

    async def reindex(self, embedder: str | Embedder | None = None, progress: Progress | None = None) -> dict[str, Any]:
        """Embed everything anew, by default with the configured embedder. Recall keeps working meanwhile."""
        chosen = open_embedder(embedder or self.config.embedder) if isinstance(embedder, str | None) else embedder
        if chosen is None:
            raise ValidationError("reindex needs an embedder; name one, such as --embedder minilm", field="embedder")
        return await (await self.engine()).upkeep.reindex(self._who, chosen, progress)

    # life

    async def health(self) -> dict[str, Any]:
        return await (await self.engine()).health()

    async def flush(self) -> None:
        """Write what is written behind (recall counters and their audit entries), now."""
        await (await self.engine()).flush()

    async def close(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.close()

    async def __aenter__(self) -> Memory:
        await self.engine()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _listed(ids: Sequence[str] | str | None) -> Any:
    if ids is None:
        return None
    return [ids] if isinstance(ids, str) else list(ids)


class SyncMemory:
    """`Memory` without async: the same methods, each waiting for its answer. Safe to share between threads."""

    def __init__(self, agent_id: str | None = None, **options: Any) -> None:
        self._memory = Memory(agent_id, **options)
        self.agent_id = self._memory.agent_id
        self.config = self._memory.config
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="commonplace-sdk", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        if not self._loop.is_closed():
            self.run(self._memory.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> SyncMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _waiting(name: str, method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: SyncMemory, *args: Any, **kwargs: Any) -> Any:
        return self.run(getattr(self._memory, name)(*args, **kwargs))

    return call


for _name, _method in inspect.getmembers(Memory, inspect.iscoroutinefunction):
    if not _name.startswith("_") and _name != "close":
        setattr(SyncMemory, _name, _waiting(_name, _method))
