"""CrewAI's memory over this one: what a crew learns is kept word for word, without a model or an embedder of CrewAI's.

    from commonplace.integrations.crewai import CommonplaceMemory

A record is one memory; its scope, categories and privacy are CrewAI's. A recall without a scope finds what any protocol
wrote; what lists, forgets or resets means CrewAI's own records only.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview, require_done
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Fault, NotFound

with framework("crewai", "1.15", extra="crewai"):
    from crewai.events.event_bus import crewai_event_bus
    from crewai.events.types.memory_events import (
        MemoryQueryCompletedEvent,
        MemoryQueryFailedEvent,
        MemoryQueryStartedEvent,
        MemorySaveCompletedEvent,
        MemorySaveFailedEvent,
        MemorySaveStartedEvent,
    )
    from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
    from crewai.memory.unified_memory import Memory
    from crewai.memory.utils import join_scope_paths
    from pydantic import PrivateAttr

_NAME = "crewai"
_MAX_HITS = 1_000  # of one recall
_MAX_NAMED = 200  # ids in one filter, which goes to a server in the address


class CommonplaceMemory(Memory):
    """For `Crew(…, memory=CommonplaceMemory(memory))`, flows, and agents.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; with a `Memory` or `RemoteMemory` only the async methods work.
        user_id: The person it is about; what is about others is not seen. Without one, records of no person, and a
            recall finds whatever the agent knows.
        agent_id: Another agent than the memory's own.
        root_scope: The scope that all of its records lie in.
        read_only: Keep nothing.
        default_importance: Of a record that says none of its own.
    """

    user_id: str | None = None
    agent_id: str | None = None
    _records: RecordStorage = PrivateAttr()

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        root_scope: str | None = None,
        read_only: bool = False,
        default_importance: float = 0.5,
    ) -> None:
        records = RecordStorage(MemoryAccess(memory, _error, agent_id, user_id))
        super().__init__(
            storage=records, user_id=user_id, agent_id=agent_id, root_scope=root_scope, read_only=read_only,
            default_importance=default_importance,
        )  # fmt: skip
        self._records = records

    def remember(self, content: str, *more: Any, **fields: Any) -> MemoryRecord | None:
        return next(iter(self.remember_many([content], *more, **fields)), None)

    async def aremember(self, content: str, *more: Any, **fields: Any) -> MemoryRecord | None:
        return next(iter(await self.aremember_many([content], *more, **fields)), None)

    def remember_many(self, contents: list[str], *more: Any, **fields: Any) -> list[MemoryRecord]:
        with _save_events(self, contents, fields):
            records = self._drafts(contents, *more, **fields)
            return self._records.access.wait(self._records.keep(records))

    async def aremember_many(self, contents: list[str], *more: Any, **fields: Any) -> list[MemoryRecord]:
        with _save_events(self, contents, fields):
            records = self._drafts(contents, *more, **fields)
            return await self._records.access.run(self._records.keep(records))

    def extract_memories(self, content: str) -> list[str]:
        """All of it: what is kept is kept word for word, and no model is asked what of it matters."""
        return [content.strip()] if content.strip() else []

    async def aextract_memories(self, content: str) -> list[str]:
        return self.extract_memories(content)

    def recall(self, query: str, *more: Any, **fields: Any) -> list[MemoryMatch]:
        with _query_events(self, query, fields) as found:
            found += self._records.access.wait(self._matches(query, *more, **fields))
        return found

    async def arecall(self, query: str, *more: Any, **fields: Any) -> list[MemoryMatch]:
        with _query_events(self, query, fields) as found:
            found += await self._records.access.run(self._matches(query, *more, **fields))
        return found

    def update(
        self,
        record_id: str,
        content: str | None = None,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
    ) -> MemoryRecord:
        given = {"content": content, "scope": scope, "categories": categories, "metadata": metadata,
                 "importance": importance}  # fmt: skip
        changes = {name: value for name, value in given.items() if value is not None}
        return self._records.access.wait(self._records.change(record_id, changes))

    def _drafts(
        self,
        contents: Sequence[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        if self.read_only:
            return []
        place = _within(root_scope if root_scope is not None else self.root_scope, scope)
        said = {**(metadata or {}), **({"agent_role": agent_role} if agent_role else {})}
        weight = self.default_importance if importance is None else importance
        return [
            MemoryRecord(
                content=content, scope=place, categories=categories or [], metadata=said, importance=weight,
                source=source, private=private,
            )
            for content in contents
        ]  # fmt: skip

    async def _matches(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: str = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        place = None if scope is None and not self.root_scope else _within(self.root_scope, scope)
        filter = _filter(place, categories, only_records=False)
        if not include_private and source is None:
            filter["crewai.private"] = {"$ne": True}
        # Whose record is private is found out below, so that more are asked for than are wanted.
        wanted = limit if include_private or source is None else min(limit * 4, _MAX_HITS)
        access = self._records.access
        hits = await access.memory.recall(query, k=wanted, filter=filter, **access.scope)
        found = [
            MemoryMatch(record=_record(hit.model_dump()), score=_score(hit), match_reasons=["semantic"]) for hit in hits
        ]
        seen = [m for m in found if include_private or not m.record.private or m.record.source == source]
        return seen[:limit]


class RecordStorage:
    """CrewAI's records in a memory: a `StorageBackend`, but for a search by vectors, which are the memory's own."""

    def __init__(self, access: MemoryAccess) -> None:
        self.access = access

    def __deepcopy__(self, memo: dict[int, Any]) -> RecordStorage:
        return self  # a crew copies its parts; the store that they share is one

    def save(self, records: list[MemoryRecord]) -> None:
        self.access.wait(self.keep(records))

    async def asave(self, records: list[MemoryRecord]) -> None:
        await self.access.run(self.keep(records))

    def search(self, *given: Any, **fields: Any) -> list[tuple[MemoryRecord, float]]:
        raise ValueError("this memory is searched by text, with recall; another embedder's vectors mean nothing to it")

    async def asearch(self, *given: Any, **fields: Any) -> list[tuple[MemoryRecord, float]]:
        return self.search()

    def delete(self, *given: Any, **fields: Any) -> int:
        return self.access.wait(self.forget(*given, **fields))

    async def adelete(self, *given: Any, **fields: Any) -> int:
        return await self.access.run(self.forget(*given, **fields))

    def update(self, record: MemoryRecord) -> None:
        self.access.wait(self.change(record.id, record.model_dump()))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        return self.access.wait(self.find(record_id))

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        return self._all(scope_prefix, offset + limit)[offset:]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = self._all(scope)
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=scope, record_count=len(records), categories=sorted({name for r in records for name in r.categories}),
            oldest_record=min(times, default=None), newest_record=max(times, default=None),
            child_scopes=_children(scope, records),
        )  # fmt: skip

    def list_scopes(self, parent: str = "/") -> list[str]:
        return _children(parent, self._all(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        counts: dict[str, int] = {}
        for record in self._all(scope_prefix):
            for name in record.categories:
                counts[name] = counts.get(name, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        return len(self._all(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        self.delete(scope_prefix=scope_prefix)

    def close(self) -> None:
        self.access.close()

    def _all(self, scope: str | None, limit: int | None = None) -> list[MemoryRecord]:
        async def work() -> list[MemoryRecord]:
            found: list[MemoryRecord] = []
            async for memory in self._list(_filter(scope)):
                found.append(_record(memory))
                if len(found) == limit:
                    break
            return found

        return self.access.wait(work())

    async def _list(self, filter: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async for memory in self.access.list_own(filter):
            if isinstance(_own(memory).get("scope"), str):  # of what only looks like a record it is anything
                yield memory

    async def keep(self, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
        """All that may be kept, each under the memory's id; then raises for the first that may not."""
        drafts = [{**_draft(record), "source": record.source or _NAME, **self.access.scope} for record in records]
        kept = await self.access.remember_all(drafts)
        return [record.model_copy(update={"id": id}) for record, id in zip(records, kept, strict=True)]

    async def find(self, record_id: str) -> MemoryRecord | None:
        found = await self.access.find_own({"id": record_id})
        return None if found is None else _record(found)

    async def change(self, record_id: str, changes: dict[str, Any]) -> MemoryRecord:
        known = await self.find(record_id)
        if known is None:
            raise NotFound(f"Record not found: {record_id}")
        record = known.model_copy(update=changes)
        draft = _draft(record)
        require_done(
            await self.access.memory.update(
                record_id, content=draft["content"], metadata=draft["metadata"], agent_id=self.access.agent_id
            )
        )
        return record

    async def forget(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        filter = _filter(scope_prefix, categories)
        filter |= {f"crewai.metadata.{name}": value for name, value in (metadata_filter or {}).items()}
        if older_than is not None:
            filter["created_at"] = {"$lt": older_than if older_than.tzinfo else older_than.replace(tzinfo=UTC)}
        filters = [filter]
        if record_ids is not None:
            filters = [
                filter | {"id": record_ids[at : at + _MAX_NAMED]} for at in range(0, len(record_ids), _MAX_NAMED)
            ]
        ids = [memory["id"] for each in filters async for memory in self._list(each)]
        if not ids:
            return 0
        gone = await self.access.memory.forget(ids, agent_id=self.access.agent_id, reason="deleted by CrewAI")
        require_done(gone)
        return len(gone.forgotten_ids)


def _error(refusal: Fault | PendingReview) -> ValueError:
    # As CrewAI's memory says that something cannot be done; it has no exception of its own.
    return ValueError(str(refusal))


def _within(root: str | None, scope: str | None) -> str:
    return str(join_scope_paths(root, scope)) or "/"


def _scopes(scope: str) -> list[str]:
    """The scope and all that it is in: what a prefix is looked for among."""
    names = [name for name in scope.split("/") if name]
    return ["/", *("/" + "/".join(names[:end]) for end in range(1, len(names) + 1))]


def _children(parent: str, records: Sequence[MemoryRecord]) -> list[str]:
    depth = len(_scopes(parent))
    return sorted({scopes[depth] for record in records if len(scopes := _scopes(record.scope)) > depth})


def _filter(scope: str | None, categories: list[str] | None = None, *, only_records: bool = True) -> dict[str, Any]:
    filter: dict[str, Any] = {"crewai.scope": {"$exists": True}} if only_records else {}
    if scope is not None and _scopes(scope) != ["/"]:
        filter["crewai.scopes"] = {"$contains": _scopes(scope)[-1]}
    if categories:
        filter["tags"] = categories
    return filter


def _draft(record: MemoryRecord) -> dict[str, Any]:
    own = {"scope": record.scope, "scopes": _scopes(record.scope), "metadata": record.metadata}
    own |= {"private": record.private, "source": record.source}
    metadata = {"kind": "crewai_record", "tags": record.categories, "importance": record.importance, _NAME: own}
    return {"content": record.content, "metadata": metadata}


def _own(memory: dict[str, Any]) -> dict[str, Any]:
    kept = (memory.get("metadata") or {}).get(_NAME)
    return kept if isinstance(kept, dict) else {}


def _record(memory: dict[str, Any]) -> MemoryRecord:
    """A memory as CrewAI has it, whoever wrote it: anyone may put something else where a record has its fields."""
    metadata, own = memory.get("metadata") or {}, _own(memory)
    others = {name: value for name, value in metadata.items() if name not in (_NAME, "tags", "importance")}
    scope, said, source = own.get("scope"), own.get("metadata"), own.get("source", memory.get("source"))
    importance = metadata.get("importance")
    return MemoryRecord(
        id=memory["id"], content=str(memory["content"]), scope=scope if isinstance(scope, str) else "/",
        categories=[name for name in metadata.get("tags") or () if isinstance(name, str)],
        metadata=said if isinstance(said, dict) else others,
        importance=min(max(importance, 0), 1) if isinstance(importance, int | float) else 0.5,
        created_at=_time(memory["created_at"]),
        last_accessed=_time(memory.get("last_recalled_at") or memory["created_at"]),
        source=source if isinstance(source, str) else None, private=own.get("private") is True,
    )  # fmt: skip


def _time(ms: int) -> datetime:
    # Without a zone, as CrewAI writes them: it compares them with its own.
    return datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)


def _score(hit: Any) -> float:
    return float(hit.relevance if hit.relevance is not None else hit.score)


@contextmanager
def _save_events(memory: Memory, contents: Sequence[str], fields: dict[str, Any]) -> Iterator[None]:
    """What CrewAI's traces and its console are told of a save."""
    about = {"value": "\n".join(contents), "metadata": fields.get("metadata"), "source_type": "unified_memory"}
    crewai_event_bus.emit(memory, MemorySaveStartedEvent(**about))
    started = time.perf_counter()
    try:
        yield
    except ValueError as error:
        crewai_event_bus.emit(memory, MemorySaveFailedEvent(**about, error=str(error)))
        raise
    done = {**about, "metadata": fields.get("metadata") or {}, "agent_role": fields.get("agent_role")}
    crewai_event_bus.emit(memory, MemorySaveCompletedEvent(**done, save_time_ms=_ms_since(started)))


@contextmanager
def _query_events(memory: Memory, query: str, fields: dict[str, Any]) -> Iterator[list[MemoryMatch]]:
    about = {"query": query, "limit": fields.get("limit", 10), "score_threshold": None, "source_type": "unified_memory"}
    crewai_event_bus.emit(memory, MemoryQueryStartedEvent(**about))
    started, found = time.perf_counter(), list[MemoryMatch]()
    try:
        yield found
    except ValueError as error:
        crewai_event_bus.emit(memory, MemoryQueryFailedEvent(**about, error=str(error)))
        raise
    done = MemoryQueryCompletedEvent(**about, results=found, query_time_ms=_ms_since(started))
    crewai_event_bus.emit(memory, done)


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
