"""Memory on a server: `RemoteMemory` has the methods of `Memory` and needs only an address and a token."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from commonplace.wire.errors import Fault, Unavailable, fault_of
from commonplace.wire.http_client import DEFAULT_URL, JsonClient
from commonplace.wire.models import (
    ExpireResponse,
    ForgetResponse,
    MergeResponse,
    Message,
    RecallResponse,
    RememberResponse,
)
from commonplace.wire.validate import parse

M = TypeVar("M", bound=Message)

_DECIDED_TWICE = ("approved", "reviewer", "reviewed_at", "reason")  # also under `decision`
_HERE = "run `commonplace {command}` where the data is: a server does not do this for others"


class RemoteMemory:
    """One agent's memory, kept by a server.

    >>> async with RemoteMemory("http://127.0.0.1:8420", token, agent_id="assistant") as memory:
    ...     await memory.remember("Alice is allergic to peanuts", user_id="alice")
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        agent_id: str | None = None,
        *,
        timeout: float = 60.0,
        connections: int = 8,
    ) -> None:
        self.agent_id = agent_id or os.environ.get("COMMONPLACE_AGENT") or "default"
        self._client = JsonClient(url, token or os.environ.get("COMMONPLACE_TOKEN"), timeout, connections)

    # the five operations

    async def remember(self, content: str, *, type: str = "semantic", **fields: Any) -> RememberResponse:
        return await self._post(RememberResponse, "remember", {"content": content, "type": type, **fields})

    async def remember_batch(self, items: Sequence[str | dict[str, Any]]) -> list[RememberResponse | Fault]:
        wholes = [{"content": item} if isinstance(item, str) else dict(item) for item in items]
        body = {"items": [self._request({"type": "semantic", **whole}) for whole in wholes]}
        answer = await self._client.call("POST", "/v0/remember/batch", body)
        return [
            fault_of(result) if "error" in result else parse(RememberResponse, result) for result in answer["results"]
        ]

    async def recall(self, query: str, *, k: int = 5, **fields: Any) -> RecallResponse:
        return await self._post(RecallResponse, "recall", {"query": query, "k": k, **fields})

    async def forget(self, ids: Sequence[str] | str | None = None, **fields: Any) -> ForgetResponse:
        return await self._post(ForgetResponse, "forget", {"ids": _listed(ids), **fields})

    async def merge(self, canonical: str, duplicates: Sequence[str], **fields: Any) -> MergeResponse:
        return await self._post(
            MergeResponse, "merge", {"canonical": canonical, "duplicates": list(duplicates), **fields}
        )

    async def expire(self, policy: dict[str, Any], *, action: str = "forget", **fields: Any) -> ExpireResponse:
        return await self._post(ExpireResponse, "expire", {"policy": policy, "action": action, **fields})

    # what destructive operations would do

    async def preview_forget(self, ids: Sequence[str] | str | None = None, **fields: Any) -> Any:
        return (await self._preview("forget", {"ids": _listed(ids), **fields}))["memories"]

    async def preview_merge(self, canonical: str, duplicates: Sequence[str], **fields: Any) -> dict[str, Any]:
        return await self._preview("merge", {"canonical": canonical, "duplicates": list(duplicates), **fields})

    async def preview_expire(self, policy: dict[str, Any], **fields: Any) -> Any:
        return (await self._preview("expire", {"policy": policy, **fields}))["memories"]

    # as they were called at first; programs use these names
    would_forget, would_merge, would_expire = preview_forget, preview_merge, preview_expire

    # single memories

    async def get(self, id: str, *, as_of: int | None = None, agent_id: str | None = None) -> dict[str, Any]:
        return await self._read(f"memories/{_segment(id)}", agent_id=agent_id or self.agent_id, as_of=as_of)

    async def list(
        self, *, type: str | None = None, tag: str | None = None, user_id: str | None = None,
        filter: dict[str, Any] | None = None, limit: int = 100, cursor: str | None = None, as_of: int | None = None,
        agent_id: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A page {memories, next_cursor}, newest first."""
        return await self._read(
            "memories", agent_id=agent_id or self.agent_id, type=type, tag=tag, user_id=user_id,
            filter=None if filter is None else json.dumps(filter), limit=limit, cursor=cursor, as_of=as_of,
        )  # fmt: skip

    async def update(self, id: str, **fields: Any) -> dict[str, Any]:
        return await self._client.call("PATCH", f"/v0/memories/{_segment(id)}", self._request(fields))

    async def history(self, id: str, *, agent_id: str | None = None) -> Any:
        return (await self._read(f"memories/{_segment(id)}/history", agent_id=agent_id or self.agent_id))["versions"]

    # reviews

    async def reviews(self, status: str | None = "pending") -> Any:
        return (await self._read("reviews", status=status or "all"))["reviews"]

    async def review(self, review_id: str) -> dict[str, Any]:
        return await self._read(f"reviews/{_segment(review_id)}")

    async def approve(
        self, review_id: str, *, reviewer: str | None = None, reason: str | None = None,
        request: dict[str, Any] | None = None, apply: dict[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        return await self._decide(
            review_id, {"approved": True, "reviewer": reviewer, "reason": reason, "request": request, "apply": apply}
        )

    async def reject(self, review_id: str, *, reviewer: str | None = None, reason: str | None = None) -> dict[str, Any]:
        return await self._decide(review_id, {"approved": False, "reviewer": reviewer, "reason": reason})

    async def _decide(self, review_id: str, decision: dict[str, Any]) -> dict[str, Any]:
        decided = await self._client.call("POST", f"/v0/reviews/{_segment(review_id)}", _given(decision))
        return {name: value for name, value in decided.items() if name not in _DECIDED_TWICE}

    # the knowledge graph

    async def graph_assert(self, subject: str, predicate: str, object: str, **fields: Any) -> dict[str, Any]:
        return await self._change("kg/assert", {"subject": subject, "predicate": predicate, "object": object, **fields})

    async def graph_query(
        self, subject: str, *, predicate: str | None = None, as_of: int | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        whose = agent_id or self.agent_id
        return await self._read("kg", agent_id=whose, subject=subject, predicate=predicate, as_of=as_of)

    async def graph_history(
        self, subject: str, *, predicate: str | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        return await self._read("kg/history", agent_id=agent_id or self.agent_id, subject=subject, predicate=predicate)

    async def graph_path(
        self, start: str, end: str, *, max_hops: int = 3, as_of: int | None = None, agent_id: str | None = None
    ) -> dict[str, Any]:
        whose = agent_id or self.agent_id
        return await self._read("kg/path", agent_id=whose, start=start, end=end, max_hops=max_hops, as_of=as_of)

    async def graph_retract(self, subject: str, predicate: str, **fields: Any) -> dict[str, Any]:
        return await self._change("kg/retract", {"subject": subject, "predicate": predicate, **fields})

    async def graph_erase(self, subject: str, **fields: Any) -> dict[str, Any]:
        return await self._change("kg/erase", {"subject": subject, **fields})

    async def preview_graph_erase(self, subject: str, **fields: Any) -> dict[str, Any]:
        return await self._preview("kg/erase", {"subject": subject, **fields})

    would_graph_erase = preview_graph_erase

    async def neighbors(self, id: str, *, hops: int = 1, agent_id: str | None = None) -> dict[str, Any]:
        return await self._read("kg/neighbors", agent_id=agent_id or self.agent_id, memory_id=id, hops=hops)

    # audit

    async def audit(
        self, *, agent_id: str | None = None, operation: str | None = None, since: int | None = None,
        until: int | None = None, limit: int = 100, cursor: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A page {entries, next_cursor} of the audit trail, oldest first."""
        return await self._read(
            "audit", agent_id=agent_id, operation=operation, since=since, until=until, limit=limit, cursor=cursor
        )

    async def verify_audit(self, progress: Any = None) -> dict[str, Any]:
        return await self._read("audit/verify")

    # upkeep: the server's own business, or that of whoever looks after it

    async def status(self) -> dict[str, Any]:
        return await self._read("status")

    async def health(self) -> dict[str, Any]:
        return await self._read("health")

    async def flush(self) -> None:
        """The server writes what is behind by itself."""

    async def doctor(self, repair: bool = True, progress: Any = None) -> Any:
        raise Unavailable(_HERE.format(command="doctor"))

    async def backup(self, path: Any, progress: Any = None) -> dict[str, Any]:
        raise Unavailable(_HERE.format(command="backup"))

    async def compact(self, progress: Any = None) -> dict[str, Any]:
        raise Unavailable(_HERE.format(command="compact"))

    async def reindex(self, embedder: Any = None, progress: Any = None) -> dict[str, Any]:
        raise Unavailable(_HERE.format(command="reindex"))

    # life

    async def close(self) -> None:
        self._client.close()

    async def __aenter__(self) -> RemoteMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # the wire

    def _request(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"agent_id": self.agent_id, **_given(fields)}

    async def _post(self, answer: type[M], operation: str, fields: dict[str, Any]) -> M:
        return parse(answer, await self._client.call("POST", f"/v0/{operation}", self._request(fields)))

    async def _change(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._client.call("POST", f"/v0/{path}", self._request(fields))

    async def _preview(self, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._client.call("POST", f"/v0/preview/{operation}", self._request(fields))

    async def _read(self, path: str, **query: Any) -> dict[str, Any]:
        asked = urlencode(_given(query))
        return await self._client.call("GET", f"/v0/{path}?{asked}" if asked else f"/v0/{path}")


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _segment(text: str) -> str:
    return quote(text, safe="")


def _listed(ids: Sequence[str] | str | None) -> Any:
    if ids is None:
        return None
    return [ids] if isinstance(ids, str) else list(ids)
