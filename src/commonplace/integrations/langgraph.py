"""LangGraph's long-term memory: a `BaseStore` whose items are memories.

    from commonplace.integrations.langgraph import CommonplaceStore

An item is one memory of the agent: its value is kept as metadata, and its text is what recall finds it by. What other
protocols wrote is no item, but items are found through every other protocol. Needs langgraph 1 or newer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from commonplace.integrations.access import AnyMemory, MemoryAccess, PendingReview, require_done
from commonplace.integrations.framework import framework
from commonplace.wire.errors import Fault, NotFound

with framework("langgraph", "1.0", extra="langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        NamespacePath,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
    )

KIND = "langgraph_item"
_MINUTE_MS = 60_000
_MAX_HITS = 1_000  # of one recall
_ORDERED = {"$gt": "__gt__", "$gte": "__ge__", "$lt": "__lt__", "$lte": "__le__"}


class CommonplaceStore(BaseStore):
    """Over a `SyncMemory` or `SyncRemoteMemory`; with a `Memory` or `RemoteMemory` only the async methods work. Without
    one, over the default data folder.

    `index` says which fields of a value are its text, as for LangGraph's own stores ("$" is all of it). A ttl is in
    minutes. Items are those of `user_id`, and without one those of no person.
    """

    supports_ttl = True
    __slots__ = ("_access", "_fields", "_writing")

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        index: list[str] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        self._access = MemoryAccess(memory, _error, agent_id, user_id)
        self._fields = index or ["$"]
        self._writing = asyncio.Lock()  # two writers of one key must not both find it missing

    def close(self) -> None:
        self._access.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._access.wait(self._perform_all(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._access.run(self._perform_all(list(ops)))

    async def _perform_all(self, ops: list[Op]) -> list[Result]:
        return [await self._perform(op) for op in ops]

    async def _perform(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = await self._find(op.namespace, op.key)
                return _item(found) if found is not None and _is_item(found["metadata"]) else None
            case PutOp():
                async with self._writing:
                    await self._put(op)
                return None
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)
        raise ValueError(f"CommonplaceStore knows no operation {type(op).__name__}")

    async def _find(self, namespace: tuple[str, ...], key: str) -> dict[str, Any] | None:
        return await self._access.find_own({"langgraph.place": _place(namespace, key)})

    async def _put(self, op: PutOp) -> None:
        memory, known = self._access.memory, await self._find(op.namespace, op.key)
        if op.value is None:
            # All of that key: one that waited for a person while another was put is there beside it.
            async for each in self._access.list_own({"langgraph.place": _place(op.namespace, op.key)}):
                await self._forget(each, "deleted from the LangGraph store")
            return
        kept: dict[str, Any] = {
            "kind": KIND,
            "langgraph": {
                "place": _place(op.namespace, op.key),
                "within": [_path(op.namespace[:depth]) for depth in range(len(op.namespace) + 1)],
                "namespace": list(op.namespace),
                "key": op.key,
                "indexed": op.index is not False,
                "value": dict(op.value),
            },
        }
        text = _text(op.value, self._fields if op.index in (None, False) else op.index) or op.key
        ends = None if op.ttl is None else int(datetime.now(UTC).timestamp() * 1000 + op.ttl * _MINUTE_MS)
        if known is not None:
            # In place, its expiry, too: were it forgotten first, a put that is refused would have taken it away.
            expiry = {"remove_expiry": True} if ends is None else {"expires_at": ends}
            try:
                changed = await memory.update(
                    known["id"], content=text, metadata=kept, agent_id=self._access.agent_id, **expiry
                )
            except NotFound:  # it has expired, or another process has deleted it, since it was looked for
                if await self._find(op.namespace, op.key) is not None:
                    raise
            else:
                require_done(changed)
                return
        kept["langgraph"]["creation"] = str(uuid4())  # of two with the same value, too, one is the creator
        draft = {"content": text, "metadata": kept, "expires_at": ends, "source": "langgraph", **self._access.scope}
        made = await self._access.create_once(
            _place(op.namespace, op.key), draft, lambda: self._find(op.namespace, op.key)
        )
        if made is None:  # another process was quicker: now there is something to change
            await self._put(op)
            return
        require_done(made)

    async def _forget(self, known: dict[str, Any], reason: str) -> None:
        gone = await self._access.memory.forget(known["id"], reason=reason, agent_id=self._access.agent_id)
        require_done(gone)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        within: dict[str, Any] = {"langgraph.within": {"$contains": _path(op.namespace_prefix)}}
        last = op.offset + op.limit
        if not op.query:
            items = self._access.list_own(within)
            found = [memory async for memory in items if _matches(memory["metadata"], op.filter)]
            return [_search_item(memory, None) for memory in found[op.offset : last]]
        hits = await self._access.memory.recall(
            op.query, k=_MAX_HITS if op.filter else min(last, _MAX_HITS),
            filter=self._access.own({**within, "langgraph.indexed": True}), min_score=0, **self._access.scope,
        )  # fmt: skip
        ranked = [hit for hit in hits if _matches(hit.metadata, op.filter)][op.offset : last]
        whole = [await self._access.memory.get(hit.id, agent_id=self._access.agent_id) for hit in ranked]
        scores = [hit.relevance if hit.relevance is not None else hit.score for hit in ranked]
        return [_search_item(memory, score) for memory, score in zip(whole, scores, strict=True)]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        items = self._access.list_own({"langgraph.place": {"$exists": True}})
        kept = [memory["metadata"] async for memory in items]
        every = {tuple(each["langgraph"]["namespace"]) for each in kept if _is_item(each)}
        chosen = [name for name in every if all(_leads(each, name) for each in op.match_conditions or ())]
        cut = {name[: op.max_depth] for name in chosen} if op.max_depth is not None else set(chosen)
        return sorted(cut)[op.offset : op.offset + op.limit]


def _error(refusal: Fault | PendingReview) -> ValueError:
    # As LangGraph's stores say that something cannot be put; it has no other exception for them.
    return ValueError(str(refusal))


def _path(names: tuple[str, ...] | list[str]) -> str:
    """One text for a namespace, which no other has."""
    return json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))


def _place(namespace: tuple[str, ...], key: str) -> str:
    return _path([*namespace, key])


def _text(value: Mapping[str, Any], fields: list[str]) -> str:
    found = [text for field in fields for text in get_text_at_path(dict(value), field)]
    return "\n".join(text for text in found if text)


def _is_item(metadata: Mapping[str, Any] | None) -> bool:
    """Others may give a memory half of what an item has, which must not keep the store from being read."""
    kept = (metadata or {}).get("langgraph")
    if not isinstance(kept, dict) or not isinstance(kept.get("value"), dict) or not isinstance(kept.get("key"), str):
        return False
    names = kept.get("namespace")
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _item(memory: dict[str, Any]) -> Item:
    return Item(**_parts(memory))


def _search_item(memory: dict[str, Any], score: float | None) -> SearchItem:
    return SearchItem(**_parts(memory), score=score)


def _parts(memory: dict[str, Any]) -> dict[str, Any]:
    kept = memory["metadata"]["langgraph"]
    return {
        "namespace": tuple(kept["namespace"]), "key": kept["key"], "value": kept["value"],
        "created_at": _time(memory["created_at"]), "updated_at": _time(memory["updated_at"]),
    }  # fmt: skip


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _leads(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path: NamespacePath = condition.path
    if len(namespace) < len(path):
        return False
    beside = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", name) for wanted, name in zip(path, beside, strict=True))


def _matches(metadata: Mapping[str, Any] | None, filter: dict[str, Any] | None) -> bool:
    if not _is_item(metadata):
        return False
    value = (metadata or {})["langgraph"]["value"]
    return all(_holds(value.get(key), wanted) for key, wanted in (filter or {}).items())


def _holds(value: Any, wanted: Any) -> bool:
    """As LangGraph's own stores filter: equality, nested documents, and $eq $ne $gt $gte $lt $lte."""
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    if not any(key.startswith("$") for key in wanted):
        return isinstance(value, dict) and all(_holds(value.get(key), inner) for key, inner in wanted.items())
    return all(_compares(value, name, inner) for name, inner in wanted.items())


def _compares(value: Any, operator: str, wanted: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool((value == wanted) is (operator == "$eq"))
    if operator not in _ORDERED:
        raise ValueError(f"unsupported operator {operator}; there are $eq, $ne, {', '.join(_ORDERED)}")
    try:
        return getattr(float(value), _ORDERED[operator])(float(wanted)) is True
    except (TypeError, ValueError):
        return False
