"""A memory as its copy in a `MemoryStore`: how it is given, known again, asked for and read there. Pure."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from commonplace.stores.base import Reach
from commonplace.stores.documents import OUR_FIELDS, OUR_ID, OUR_TENANT, is_id, to_document, to_memory
from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import LIST_COLUMNS, MAX_CONDITIONS, Condition
from commonplace.wire.models import RecallHit, RememberRequest
from commonplace.wire.record import Memory

_KEYS = 4  # a copy that was erased there so often is written without one
_ELSEWHERE = frozenset({"content", "metadata"})


def remember_request(memory: Memory, key: str | None = None) -> RememberRequest:
    given = RememberRequest(
        agent_id=memory.agent_id,
        type=memory.type,
        content=memory.content,
        user_id=memory.user_id,
        metadata=to_metadata(memory),
        confidence=memory.confidence,
        source=memory.source,
        expires_at=memory.expires_at,
    )
    return given if key is None else given.model_copy(update={"idempotency_key": key})


def idempotency_keys(memory: Memory) -> list[str]:
    """The same for the same version, to be tried one after the other. As a UUID: a tenant's name may be longer than a
    key."""
    version = uuid5(NAMESPACE_URL, f"commonplace:{memory.tenant}:{memory.id}:{memory.seq}")
    return [f"{version}:{n}" for n in range(_KEYS)]


def to_metadata(memory: Memory) -> dict[str, Any]:
    own = to_document(memory, without=_ELSEWHERE, defaults=True)
    return {**memory.metadata, OUR_ID: memory.id, OUR_TENANT: memory.tenant, OUR_FIELDS: own}


def memory_of(content: Any, metadata: dict[str, Any], store: str) -> Memory:
    own = metadata.get(OUR_FIELDS)
    rest = {name: value for name, value in metadata.items() if name not in (OUR_ID, OUR_TENANT, OUR_FIELDS, "kind")}
    if isinstance(own, dict) and "kind" in own and metadata.get("kind") is not None:
        rest |= {"kind": metadata["kind"]} if metadata["kind"] != own["kind"] else {}
    document = {**own, "content": content, "metadata": rest} if isinstance(own, dict) else None
    return to_memory(document, store)


def filter_of(reach: Reach) -> tuple[dict[str, Any], bool]:
    """What of a reach the filter language can say of our fields there, and whether that is all of it; `Reach.admits`
    sees to the rest."""
    wanted: dict[str, Any] = {OUR_TENANT: reach.tenant}
    is_all = len(reach.where) < MAX_CONDITIONS  # of which the tenant is one
    for condition in reach.where[: MAX_CONDITIONS - 1]:
        operators = wanted.setdefault(_key(condition), {}) if _is_sayable(condition) else None
        # It has each operator once for a field: of `types` beside a filter by type it is told one.
        if operators is None or operators.setdefault(f"${condition.op}", condition.value) != condition.value:
            is_all = False
    return wanted, is_all


def is_copy(hit: RecallHit, memory: Memory) -> bool:
    return hit.type == memory.type and hit.content == memory.content and hit.metadata == to_metadata(memory)


def listed_hit(memory: Any) -> RecallHit:
    try:
        wanted = {name: memory[name] for name in ("id", "type", "content")}
        return RecallHit(**wanted, score=0.0, metadata=memory.get("metadata"))
    except (TypeError, AttributeError, KeyError, ValueError):
        raise Unavailable("it lists something that is no memory") from None


def our_id(hit: RecallHit) -> str | None:
    id = (hit.metadata or {}).get(OUR_ID)
    return id if is_id(id) else None


def _is_sayable(condition: Condition) -> bool:
    path, op = condition.path, condition.op
    # The text is not among our fields there, because it is the copy's own.
    if op == "any" or path[0] in ("privacy", "content"):
        return False
    # An empty list exists there, and here it does not; what a copy is known by is no metadata of the memory.
    is_about_list = path[0] in LIST_COLUMNS and op == "exists"
    is_about_keys = path[0] == "metadata" and path[1] in (OUR_ID, OUR_TENANT, OUR_FIELDS)
    return not is_about_list and not is_about_keys


def _key(condition: Condition) -> str:
    path = condition.path
    return ".".join(path) if path[0] == "metadata" else ".".join(("metadata", OUR_FIELDS, *path))
