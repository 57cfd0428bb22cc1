"""MemoryAdapter: the four operations of OpenWOP's memory, for one caller and within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from commonplace.dialects.openwop.discovery import LONG_TERM, check_offered
from commonplace.dialects.openwop.entries import (
    SOURCE,
    Entry,
    check_size,
    ending,
    jotted,
    kept_tags,
    shown_tags,
    to_draft,
    to_entry,
    where,
    within_budget,
)
from commonplace.engine import Engine
from commonplace.engine.memory.read import tagged
from commonplace.engine.runs import run_notes
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.runs import Run
from commonplace.engine.types import Query
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.filters import Condition, Where, matches
from commonplace.wire.models import ForgetRequest
from commonplace.wire.record import Memory, Principal
from commonplace.wire.validate import check

MOST_ENTRIES = 500


class MemoryAdapter:
    """Bound to a run it reads what was there when the run began; without one it reads what is there.

    A memoryRef the caller may not use is an empty memory to `list`, `get` and `delete`; `put` is refused.
    """

    def __init__(self, engine: Engine, who: Principal, run: Run | None = None) -> None:
        self._engine = engine
        self._who = who
        self._run = run
        self._snapshot = run.snapshot if run else None

    async def list(
        self, memory_ref: str, options: dict[str, Any] | None = None, *, backend: str = LONG_TERM[0]
    ) -> list[Entry]:
        """MemoryEntry objects, newest first unless `options` say rank relevance."""
        options = options or {}
        check("openwop/types/memory-list-options", options)
        if (options.get("rank") == "relevance") != ("query" in options):
            raise ValidationError("rank relevance and query go together: give both or neither", field="query")
        run = await self._within(backend)
        scope = await self._usable(memory_ref)
        if scope is None:
            return []
        tag = options.get("tag")
        asked = int(options.get("limit", 0))
        limit = asked if 0 < asked <= MOST_ENTRIES else MOST_ENTRIES
        if run is not None:
            if "query" in options:
                raise ValidationError("rank relevance is for longTerm memory", field="rank")
            noted = await run_notes.jottings(self._engine.core, self._who, run, backend, scope, tag)
            found = [jotted(jotting) for jotting in noted[:limit]]
        elif "query" in options:
            found = [to_entry(memory) for memory in await self._relevant(scope, options["query"], tag, limit)]
        else:
            found = [to_entry(memory) for memory in await self._newest(scope, tag, limit)]
        budget = options.get("tokenBudget")
        return within_budget(found, None if budget is None else int(budget))

    async def get(self, memory_ref: str, id: str, *, backend: str = LONG_TERM[0]) -> Entry | None:
        run = await self._within(backend)
        scope = await self._usable(memory_ref)
        if scope is None:
            return None
        if run is not None:
            noted = await run_notes.jottings(self._engine.core, self._who, run, backend, scope)
            return next((jotted(jotting) for jotting in noted if jotting.id == id), None)
        memory = await self._memory(scope, id, at_start=True)
        return to_entry(memory) if memory else None

    async def put(self, memory_ref: str, entry: Entry, *, backend: str = LONG_TERM[0]) -> Entry:
        """The entry as it was kept: with its id, its time, and without secrets."""
        run = await self._within(backend)
        _check_entry(entry)
        scope = await self._engine.refs.resolve(self._who, memory_ref, "writer")
        check_size(entry["content"])
        secrets = self._engine.runs.secrets_of(self._run)
        try:
            if run is not None:
                made = await run_notes.add_note(
                    self._engine.core, self._who, run, backend, scope, entry["content"],
                    kept_tags(entry.get("tags", ())), ending(entry), secrets,
                )  # fmt: skip
                return jotted(made)
            draft = to_draft(scope, entry, self._run.id if self._run else None)
            receipt = await self._engine.remember(self._who, draft, secrets=secrets)
        except ValidationError as fault:
            raise _in_our_words(fault) from None
        assert receipt.memory is not None  # only what waits for approval, or is answered again, has none
        return to_entry(receipt.memory)

    async def delete(self, memory_ref: str, id: str, *, backend: str = LONG_TERM[0]) -> bool:
        """Whether it was there. Later runs no longer see it; this one does, as it saw it from its start."""
        run = await self._within(backend)
        scope = await self._usable(memory_ref)
        if scope is None:
            return False
        if run is not None:
            return await run_notes.remove_note(self._engine.core, self._who, run, backend, scope, id)
        if (memory := await self._memory(scope, id, at_start=False)) is None:
            return False
        forgotten = await self._engine.forget(self._who, ForgetRequest(agent_id=scope.agent, ids=[memory.id]))
        return bool(forgotten.ids)

    # which backend, whose memory

    async def _within(self, backend: str) -> Run | None:
        """The run whose own notes are meant, or None for long-term memory; refused when the run is over."""
        if backend not in (*run_notes.BACKENDS, *LONG_TERM):
            known = ", ".join((*run_notes.BACKENDS, LONG_TERM[0]))
            raise ValidationError(f"backend must be one of {known}, not {backend[:40]!r}", field="backend")
        if backend in LONG_TERM:
            check_offered(self._engine.core.settings.redaction, backend)
        elif self._run is None:
            raise ValidationError(f"{backend} belongs to a run: give its runId", field="runId")
        if self._run is not None:
            await self._engine.runs.use(self._who, self._run.id)
        return None if backend in LONG_TERM else self._run

    async def _usable(self, ref: str) -> MemoryScope | None:
        try:
            return await self._engine.refs.resolve(self._who, ref)
        except Forbidden:
            return None

    # long-term memory

    async def _memory(self, scope: MemoryScope, id: str, *, at_start: bool) -> Memory | None:
        if not is_uuid(id):  # ids that authors chose in other protocols are theirs to use
            return None
        snapshot = self._snapshot if at_start else None
        try:
            memory = await self._engine.get(self._who, scope.agent, id, snapshot=snapshot)
        except NotFound:
            return None
        return memory if memory.id == id and memory.status == "live" and matches(memory, where(scope)) else None

    async def _newest(self, scope: MemoryScope, tag: str | None, limit: int) -> Sequence[Memory]:
        if tag is None or not tag.startswith(SOURCE):
            tags = () if tag is None else (tagged(tag),)
            return await self._through(scope.agent, where(scope) + tags, lambda _: True, limit)
        # As a tag of its own, or as the source that is shown as one.
        either = (tagged(tag), Condition(("source",), "eq", tag.removeprefix(SOURCE)))
        found: dict[str, Memory] = {}
        for condition in either:
            for memory in await self._through(
                scope.agent, (*where(scope), condition), lambda m: tag in shown_tags(m), limit
            ):
                found[memory.id] = memory
        return sorted(found.values(), key=lambda m: (m.created_at, m.id), reverse=True)[:limit]

    async def _through(
        self, agent: str, conditions: Where, keep: Callable[[Memory], bool], limit: int
    ) -> Sequence[Memory]:
        """The newest that are kept, however many pages that takes."""
        kept = []
        cursor: str | None = None
        while True:
            page = await self._engine.list(
                self._who, (agent,), conditions, limit=limit, cursor=cursor, archived=False, snapshot=self._snapshot
            )
            kept += [memory for memory in page.memories if keep(memory)]
            cursor = page.next_cursor
            if cursor is None or len(kept) >= limit:
                return kept[:limit]

    async def _relevant(self, scope: MemoryScope, text: str, tag: str | None, limit: int) -> Sequence[Memory]:
        conditions = where(scope)
        if tag is not None and tag.startswith(SOURCE):
            ids = [memory.id for memory in await self._newest(scope, tag, MOST_ENTRIES)]
            conditions += (Condition(("id",), "in", ids),)
        elif tag is not None:
            conditions += (tagged(tag),)
        query = Query((scope.agent,), text, limit, conditions, min_score=0.0, judge="off", snapshot=self._snapshot)
        return [hit.memory for hit in (await self._engine.recall(self._who, query)).hits]


def _check_entry(entry: Any) -> None:
    for name in ("id", "createdAt"):
        if isinstance(entry, dict) and name in entry:
            raise ValidationError(f"entry.{name} is given by the host; leave it out", field=f"entry.{name}")
    check("openwop/types/new-entry", entry)


def _in_our_words(fault: ValidationError) -> ValidationError:
    if fault.details.get("field") == "expires_at":
        return ValidationError("entry.expiresAt must be in the future", field="entry.expiresAt")
    if fault.details.get("field") == "content":
        return ValidationError(f"entry.{fault.message}", field="entry.content")
    return fault
