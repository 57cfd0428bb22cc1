"""MemoryAdapter: the four operations of OpenWOP's memory, for one caller and within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from commonplace.config import RedactionConfig
from commonplace.dialects.openwop.entries import (
    NAME,
    SOURCE,
    Entry,
    check_size,
    expiry_of,
    kept_tags,
    note_entry,
    shown_tags,
    to_draft,
    to_entry,
    within_budget,
)
from commonplace.engine import BACKENDS, Engine, Forget, MemoryScope, Query, Run, tagged
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.filters import Condition, Where, any_of
from commonplace.wire.record import Memory, Principal
from commonplace.wire.validate import check

LONG_TERM = ("longTerm", "long-term")  # the RFC's spelling, and that of its public scenarios
MAX_ENTRIES = 500
_NOT_OFFERED = (
    "longTerm memory is not offered while redaction is off; "
    'the operator turns it on with mode = "redact" or "reject" in the table [redaction]'
)


def backends(redaction: RedactionConfig) -> list[str]:
    """Long-term memory is only offered while secrets are kept out of it."""
    return [*BACKENDS, *(LONG_TERM if redaction.mode != "off" else ())]


class MemoryAdapter:
    """Bound to a run it reads what was there when the run began; without one it reads what is there.

    A memoryRef the caller may not use is an empty memory to `list`, `get` and `delete`; `put` is refused.
    """

    def __init__(self, engine: Engine, who: Principal, run: Run | None = None) -> None:
        self._engine = engine
        self._who = who
        self._run = run

    async def list(
        self, memory_ref: str, options: dict[str, Any] | None = None, *, backend: str = LONG_TERM[0]
    ) -> list[Entry]:
        """MemoryEntry objects, newest first unless `options` say rank relevance."""
        entries = await self._readable(memory_ref, backend)
        return [] if entries is None else await entries.list(options)

    async def get(self, memory_ref: str, id: str, *, backend: str = LONG_TERM[0]) -> Entry | None:
        entries = await self._readable(memory_ref, backend)
        return None if entries is None else await entries.get(id)

    async def put(self, memory_ref: str, entry: Entry, *, backend: str = LONG_TERM[0]) -> Entry:
        """The entry as it was kept: with its id, its time, and without secrets."""
        await self._check_run()
        for name in ("id", "createdAt"):
            if isinstance(entry, dict) and name in entry:
                raise ValidationError(f"entry.{name} is given by the host; leave it out", field=f"entry.{name}")
        check("openwop/types/new-entry", entry)
        scope = await self._engine.refs.resolve(self._who, memory_ref, "writer")
        return await ScopedEntries(self._engine, self._who, scope, self._run, backend).put(entry)

    async def delete(self, memory_ref: str, id: str, *, backend: str = LONG_TERM[0]) -> bool:
        """Whether it was there. Later runs no longer see it; this one does, as it saw it from its start."""
        entries = await self._readable(memory_ref, backend)
        return entries is not None and await entries.delete(id)

    async def _check_run(self) -> None:
        """An adapter may outlive its run, which is then refused."""
        if self._run is not None:
            await self._engine.runs.use(self._who, self._run.id)

    async def _readable(self, ref: str, backend: str) -> ScopedEntries | None:
        await self._check_run()
        try:
            scope = await self._engine.refs.resolve(self._who, ref)
        except Forbidden:
            return None
        return ScopedEntries(self._engine, self._who, scope, self._run, backend)


class ScopedEntries:
    """The entries of one scope in one backend, for a caller that may use them and a run that is open."""

    def __init__(
        self, engine: Engine, who: Principal, scope: MemoryScope, run: Run | None, backend: str = LONG_TERM[0]
    ) -> None:
        if backend not in (*BACKENDS, *LONG_TERM):
            known = ", ".join((*BACKENDS, LONG_TERM[0]))
            raise ValidationError(f"backend must be one of {known}, not {backend[:40]!r}", field="backend")
        if backend in LONG_TERM and backend not in (offered := backends(engine.settings.redaction)):
            raise ValidationError(_NOT_OFFERED, field="backend", memoryBackends=offered)
        if backend not in LONG_TERM and run is None:
            raise ValidationError(f"{backend} belongs to a run: give its runId", field="runId")
        self._engine = engine
        self._who = who = replace(who, dialect=NAME)
        self.review_id: str | None = None  # of what was put or deleted last, where it waits for approval
        self._scope = scope
        self._run = run
        self._snapshot = run.snapshot if run else None
        # Which notes are meant: those of the run itself, or none where it is long-term memory.
        self._notes = (who, run, backend, scope) if run is not None and backend not in LONG_TERM else None

    async def list(self, options: dict[str, Any] | None = None) -> list[Entry]:
        options = options or {}
        check("openwop/types/memory-list-options", options)
        if (options.get("rank") == "relevance") != ("query" in options):
            raise ValidationError("rank relevance and query go together: give both or neither", field="query")
        tag = options.get("tag")
        asked = int(options.get("limit", 0))
        limit = asked if 0 < asked <= MAX_ENTRIES else MAX_ENTRIES
        if self._notes is not None:
            if "query" in options:
                raise ValidationError("rank relevance is for longTerm memory", field="rank")
            notes = await self._engine.run_notes.list(*self._notes, tag)
            found = [note_entry(note) for note in notes[:limit]]
        elif "query" in options:
            found = [to_entry(memory) for memory in await self._relevant(options["query"], tag, limit)]
        else:
            found = [to_entry(memory) for memory in await self._newest(tag, limit)]
        budget = options.get("tokenBudget")
        return within_budget(found, None if budget is None else int(budget))

    async def get(self, id: str) -> Entry | None:
        if self._notes is not None:
            note = await self._engine.run_notes.get(*self._notes, id)
            return None if note is None else note_entry(note)
        memory = await self._engine.runs.read(self._who, self._scope, id, self._snapshot)
        return None if memory is None else to_entry(memory)

    async def put(self, entry: Entry) -> Entry:
        check_size(entry["content"])
        secrets = self._engine.runs.secrets_of(self._run)
        try:
            if self._notes is not None:
                tags = kept_tags(entry.get("tags", ()))
                note = await self._engine.run_notes.add(*self._notes, entry["content"], tags, expiry_of(entry), secrets)
                return note_entry(note)
            draft = to_draft(self._scope, entry, self._run.id if self._run else None)
            receipt = await self._engine.remember(self._who, draft, secrets=secrets)
        except ValidationError as fault:
            raise _as_openwop(fault) from None
        self.review_id = receipt.review_id
        if receipt.memory is None:  # it waits for approval: as it would be
            return to_entry(self._engine.reviews.proposed(receipt, draft))
        return to_entry(receipt.memory)

    async def delete(self, id: str) -> bool:
        if self._notes is not None:
            return await self._engine.run_notes.remove(*self._notes, id)
        memory = await self._engine.runs.read(self._who, self._scope, id, None)
        if memory is None:
            return False
        done = await self._engine.forget(self._who, Forget(self._scope.agent, [memory.id]))
        self.review_id = done.review_id
        return bool(done.ids)

    # long-term memory

    async def _newest(self, tag: str | None, limit: int) -> Sequence[Memory]:
        where = self._scope.where
        if tag is None or not tag.startswith(SOURCE):
            return await self._scan_newest(where if tag is None else (*where, tagged(tag)), lambda _: True, limit)
        # As a tag of its own, or as the source that is shown as one.
        either = any_of(tagged(tag), Condition(("source",), "eq", tag.removeprefix(SOURCE)))
        return await self._scan_newest((*where, either), lambda m: tag in shown_tags(m), limit)

    async def _scan_newest(self, where: Where, keep: Callable[[Memory], bool], limit: int) -> Sequence[Memory]:
        """The newest that are kept, however many pages that takes."""
        kept = []
        cursor: str | None = None
        while True:
            page = await self._engine.list(
                self._who,
                (self._scope.agent,),
                where,
                limit=limit,
                cursor=cursor,
                archived=False,
                snapshot=self._snapshot,
            )
            kept += [memory for memory in page.memories if keep(memory)]
            cursor = page.next_cursor
            if cursor is None or len(kept) >= limit:
                return kept[:limit]

    async def _relevant(self, text: str, tag: str | None, limit: int) -> Sequence[Memory]:
        where = self._scope.where
        if tag is not None and tag.startswith(SOURCE):
            ids = [memory.id for memory in await self._newest(tag, MAX_ENTRIES)]
            where += (Condition(("id",), "in", ids),)
        elif tag is not None:
            where += (tagged(tag),)
        query = Query((self._scope.agent,), text, limit, where, min_score=0.0, judge="off", snapshot=self._snapshot)
        return [hit.memory for hit in (await self._engine.recall(self._who, query)).hits]


def _as_openwop(fault: ValidationError) -> ValidationError:
    """The refusal with the names that OpenWOP has for our fields."""
    if fault.details.get("field") == "expires_at":
        return ValidationError("entry.expiresAt must be in the future", field="entry.expiresAt")
    if fault.details.get("field") == "content":
        return ValidationError(f"entry.{fault.message}", field="entry.content")
    return fault
