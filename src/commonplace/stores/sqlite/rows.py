"""Rows to memories and back."""

from __future__ import annotations

import json
from typing import Any

import apsw

from commonplace.stores.sqlite.schema import VERSION_COLUMNS
from commonplace.wire.record import Memory

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_LOADS = json.loads

#: What is read of a version to make a Memory: everything but the derived columns.
READ_COLUMNS = tuple(c for c in VERSION_COLUMNS if c not in ("vid", "terms", "scope_id"))


def select(table: str, extra: str = "") -> str:
    """SELECT … FROM for whole memories out of `memories` or `versions`; `extra` columns come last."""
    columns = ", ".join(f"m.{c}" for c in READ_COLUMNS)
    return (
        f"SELECT {columns}, s.agent_id, t.name, r.recalls, r.last_recalled_at{', ' if extra else ''}{extra} "
        f"FROM {table} m JOIN scopes s ON s.id = m.scope_id JOIN tenants t ON t.id = s.tenant_id "
        "LEFT JOIN recalls r ON r.mid = m.mid "
    )


def one(db: apsw.Connection, sql: str, values: Any = ()) -> Any:
    """The row of a statement that always has one."""
    row = db.execute(sql, values).fetchone()
    assert row is not None
    return row


def to_memory(row: tuple[Any, ...]) -> Memory:
    (
        id, seq, version, status, type, kind, content, user_id, project, title, entity_name, tags, metadata,
        confidence, importance, source, provenance, privacy, created_at, updated_at, expires_at, event_time,
        demotion, session_id, speaker, supersedes, merged_into, aliases, content_hash, salt,
        agent_id, tenant, recalls, last_recalled_at,
    ) = row[:34]  # fmt: skip
    return Memory(
        id=id, tenant=tenant, agent_id=agent_id, type=type, content=content, kind=kind, user_id=user_id,
        project=project, title=title, entity_name=entity_name, tags=_LOADS(tags) if tags else [],
        metadata=_LOADS(metadata) if metadata else {}, confidence=confidence, importance=importance, source=source,
        provenance=_LOADS(provenance) if provenance else {}, privacy=_LOADS(privacy) if privacy else {},
        created_at=created_at, updated_at=updated_at, expires_at=expires_at, event_time=event_time, status=status,
        demotion=demotion, session_id=session_id, speaker=speaker,
        supersedes=_LOADS(supersedes) if supersedes else [], merged_into=merged_into,
        aliases=_LOADS(aliases) if aliases else [], seq=seq, version=version, content_hash=content_hash, salt=salt,
        recalls=recalls or 0, last_recalled_at=last_recalled_at,
    )  # fmt: skip


def to_row(m: Memory, terms: bytes, vid: int, scope_id: int) -> tuple[Any, ...]:
    """In the order of VERSION_COLUMNS."""
    return (
        vid, scope_id, m.id, m.seq, m.version, m.status, m.type, m.kind, m.content, m.user_id, m.project, m.title,
        m.entity_name, _JSON(m.tags) if m.tags else None, _JSON(m.metadata) if m.metadata else None, m.confidence,
        m.importance, m.source, _JSON(m.provenance) if m.provenance else None,
        _JSON(m.privacy) if m.privacy else None, m.created_at, m.updated_at, m.expires_at, m.event_time, m.demotion,
        m.session_id, m.speaker, _JSON(m.supersedes) if m.supersedes else None, m.merged_into,
        _JSON(m.aliases) if m.aliases else None, m.content_hash, m.salt, terms,
    )  # fmt: skip
