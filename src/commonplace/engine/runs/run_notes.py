"""What a run notes for itself, in its scratchpad or its conversation: it reads it at once, and it ends with the run."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.engine.core import Core
from commonplace.engine.redaction import Secrets
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.runs import BACKENDS, Run, kind, must_live
from commonplace.stores.base import Record, Transaction
from commonplace.wire.canonical import is_uuid, mint_id
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Principal

__all__ = ["BACKENDS", "RunNote", "add_note", "jottings", "remove_note"]


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


async def add_note(
    core: Core, who: Principal, run: Run, backend: str, scope: MemoryScope, content: str, tags: Sequence[str] = (),
    expires_at: int | None = None, secrets: Secrets | None = None,
) -> RunNote:  # fmt: skip
    core.require(who, scope.agent, "writer")
    if not content.strip():
        raise ValidationError("content must hold something besides white space", field="content")
    if expires_at is not None and expires_at <= core.clock():
        raise ValidationError("expires_at must be in the future (milliseconds since 1970)", field="expires_at")
    core.redactor.check_name(scope.agent, "memoryRef", secrets)
    content = core.redact_text(content, "content", secrets)
    tags = await to_thread(core.redact_document, list(tags), "tags", secrets)  # of tags there may be any number
    made = RunNote(mint_id(core.clock()), scope.agent, scope.namespace, content, tags, expires_at)

    def work(tx: Transaction) -> RunNote:
        must_live(tx, run)
        kept = replace(made, created_at=tx.now)
        tx.put_record(Record(kind(run.id, backend), kept.id, asdict(kept)))
        return kept

    return await core.transact(who.tenant, work)


async def jottings(
    core: Core, who: Principal, run: Run, backend: str, scope: MemoryScope, tag: str | None = None
) -> list[RunNote]:
    """Those of the scope that have not expired, newest first."""
    core.require(who, scope.agent, "reader")
    records = await core.primary.records(who.tenant, kind(run.id, backend))
    found = [_note(record.value) for record in records]
    mine = [j for j in found if _within(j, scope, core.clock()) and (tag is None or tag in j.tags)]
    return sorted(mine, key=lambda j: (j.created_at, j.id), reverse=True)


async def remove_note(core: Core, who: Principal, run: Run, backend: str, scope: MemoryScope, id: str) -> bool:
    """Drop one; whether it was there."""
    core.require(who, scope.agent, "writer")
    if not is_uuid(id):
        return False

    def work(tx: Transaction) -> bool:
        record = tx.record(kind(run.id, backend), id)
        if record is None or not _within(_note(record.value), scope, tx.now):
            return False
        tx.drop_record(record.kind, record.key)
        return True

    return await core.transact(who.tenant, work)


def _note(value: dict[str, Any]) -> RunNote:
    return RunNote(**value)


def _within(jotting: RunNote, scope: MemoryScope, now: int) -> bool:
    named = jotting.agent == scope.agent and scope.namespace in (None, jotting.namespace)
    return named and (jotting.expires_at is None or jotting.expires_at > now)
