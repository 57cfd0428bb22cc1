"""What a run notes for itself, in its scratchpad or its conversation: it reads it at once, and it ends with the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from commonplace.engine.checks import check_expiry
from commonplace.engine.core import Core
from commonplace.engine.redaction import Secrets
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.runs import Run, kind, require_open
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import is_uuid, mint_id
from commonplace.wire.plain import check_not_blank
from commonplace.wire.record import Memory, Principal


@dataclass(slots=True, frozen=True)
class RunNote:
    """Not a memory: no versions, no search, and nothing of it is left when its run is over."""

    id: str
    agent: str
    namespace: str | None
    content: str
    tags: Sequence[str] = ()
    expires_at: int | None = None
    created_at: int = 0

    def within(self, scope: MemoryScope, now: int) -> bool:
        named = self.agent == scope.agent and scope.namespace in (None, self.namespace)
        return named and (self.expires_at is None or self.expires_at > now)


class RunNotes:
    """`backend` is one of `runs.BACKENDS`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def add(
        self, who: Principal, run: Run, backend: str, scope: MemoryScope, content: str, tags: Sequence[str] = (),
        expires_at: int | None = None, secrets: Secrets | None = None,
    ) -> RunNote:  # fmt: skip
        core = self._core
        core.require(who, scope.agent, "writer")
        check_not_blank(content, "content")
        check_expiry(expires_at, core.clock())
        core.redactor.check_name(scope.agent, "memoryRef", secrets)
        content = await core.redact_async(content, "content", secrets)
        tags = await core.redact_async(list(tags), "tags", secrets)  # of which there may be any number
        # A note is no memory and waits for nobody: it goes with its run. What is rejected is rejected here, too.
        said = Memory("", who.tenant, scope.agent, "semantic", content, kind="note", tags=list(tags))
        kept = await core.policies.admit_memory(who, "remember", said, reviewed=True)
        made = RunNote(mint_id(core.clock()), scope.agent, scope.namespace, kept.content, kept.tags, expires_at)

        def work(tx: Transaction) -> RunNote:
            require_open(tx, run)
            kept = replace(made, created_at=tx.now)
            tx.put_record(Record(kind(run.id, backend), kept.id, asdict(kept)))
            return kept

        return await core.transact(who.tenant, work)

    async def list(
        self, who: Principal, run: Run, backend: str, scope: MemoryScope, tag: str | None = None
    ) -> Sequence[RunNote]:
        """Those of the scope that have not expired, newest first."""
        self._core.require(who, scope.agent, "reader")
        records = await self._core.primary.records(who.tenant, kind(run.id, backend))
        found = [RunNote(**record.value) for record in records]
        mine = [n for n in found if n.within(scope, self._core.clock()) and (tag is None or tag in n.tags)]
        return sorted(mine, key=lambda n: (n.created_at, n.id), reverse=True)

    async def get(self, who: Principal, run: Run, backend: str, scope: MemoryScope, id: str) -> RunNote | None:
        self._core.require(who, scope.agent, "reader")
        self._core.check_names(id=id)
        record = await self._core.primary.record(who.tenant, kind(run.id, backend), id) if is_uuid(id) else None
        note = None if record is None else RunNote(**record.value)
        return note if note is not None and note.within(scope, self._core.clock()) else None

    async def remove(self, who: Principal, run: Run, backend: str, scope: MemoryScope, id: str) -> bool:
        """Drop one; whether it was there."""
        self._core.require(who, scope.agent, "writer")
        self._core.check_names(id=id)
        if not is_uuid(id):
            return False

        def work(tx: Transaction) -> bool:
            record = tx.record(kind(run.id, backend), id)
            if record is None or not RunNote(**record.value).within(scope, tx.now):
                return False
            tx.drop_record(record.kind, record.key)
            return True

        return await self._core.transact(who.tenant, work)
