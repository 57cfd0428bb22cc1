"""Memory on a server: `RemoteMemory` has the methods of `Memory` and needs only an address and a token.

`SyncRemoteMemory` is the same for code that is not async.
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote, urlencode

from commonplace.blocking import BlockingMemory
from commonplace.interface import MemoryInterface
from commonplace.interface.base import Document, Documents, T, check_ids
from commonplace.wire.errors import Fault, fault_of
from commonplace.wire.http_client import DEFAULT_URL, JsonClient
from commonplace.wire.models import Message, RememberResponse
from commonplace.wire.record import CAPABILITIES
from commonplace.wire.validate import parse

#: The routes under /v0 of operations that are not POST /v0/{operation}.
_ROUTES = {
    "preview_forget": "POST preview/forget",
    "preview_merge": "POST preview/merge",
    "preview_expire": "POST preview/expire",
    "get": "GET memories/{id}",
    "list": "GET memories",
    "update": "PATCH memories/{id}",
    "history": "GET memories/{id}/history",
    "procedure_show": "GET procedures/{id}",
    "procedure_draw": "GET procedures/{id}/draw",
    "procedure_fire": "POST procedures/{id}/fire",
    "procedure_reset": "POST procedures/{id}/reset",
    "lifecycle_runs": "GET lifecycle/runs",
    "kg_assert": "POST kg/assert",
    "kg_query": "GET kg",
    "kg_history": "GET kg/history",
    "kg_path": "GET kg/path",
    "kg_retract": "POST kg/retract",
    "kg_erase": "POST kg/erase",
    "preview_kg_erase": "POST preview/kg/erase",
    "kg_neighbors": "GET kg/neighbors",
    "reviews": "GET reviews",
    "review": "GET reviews/{id}",
    "decide": "POST reviews/{id}",
    "edit_review": "PATCH reviews/{id}",
    "decide_many": "POST reviews",
    "policies": "GET policies",
    "set_policies": "PUT policies",
    "try_policies": "POST policies/dry-run",
    "learned_policies": "GET policies/learned",
    "revoke_learned": "DELETE policies/learned/{id}",
    "audit": "GET audit",
    "verify_audit": "GET audit/verify",
    "audit_head": "GET audit/head",
    "audit_proof": "GET audit/proof",
    "audit_consistency": "GET audit/consistency",
    "audit_key": "GET audit/key",
    "status": "GET status",
    "stores": "GET stores",
    "health": "GET health",
}
#: The field of an answer that holds the list a method gives.
_LISTS = {"preview_forget": "memories", "preview_expire": "memories", "history": "versions", "reviews": "reviews",
          "decide_many": "results", "learned_policies": "learned", "lifecycle_runs": "runs",
          "stores": "stores"}  # fmt: skip
_DECIDED_TWICE = ("approved", "reviewer", "reviewed_at", "reason", "identity")  # also under `decision`


class RemoteMemory(MemoryInterface):
    """One agent's memory, kept by a server.

    Args:
        url: The server's address.
        token: Where the server asks for one; `COMMONPLACE_TOKEN` where nothing is said.
        agent_id: Whose memory; `COMMONPLACE_AGENT` or `default` where nothing is said.
        timeout: Seconds to wait for an answer.
        connections: How many calls may be under way at once.

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
        check_ids(agent_id=agent_id)
        self.agent_id = agent_id or os.environ.get("COMMONPLACE_AGENT") or "default"
        self._client = JsonClient(url, token or os.environ.get("COMMONPLACE_TOKEN"), timeout, connections)
        self._capabilities = CAPABILITIES

    @property
    def capabilities(self) -> frozenset[str]:
        """Those of the server, once `health` was asked; before that, all that its protocol has."""
        return self._capabilities

    async def health(self) -> Document:
        found = await super().health()
        self._capabilities = CAPABILITIES.intersection(found.get("capabilities", ()))
        return found

    async def close(self) -> None:
        """Close the connections; calls that are under way are waited for, and none can be made afterwards."""
        await self._client.finish()

    async def __aenter__(self) -> RemoteMemory:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _call(self, answer: type[T], operation: str, request: Document) -> T:
        document = await self._send(operation, request)
        found: Any = document[_LISTS[operation]] if operation in _LISTS else document
        return parse(answer, found) if isinstance(answer, type) and issubclass(answer, Message) else found

    async def _remember_batch(self, requests: Documents) -> list[RememberResponse | Fault]:
        results = (await self._client.call("POST", "/v0/remember/batch", {"items": requests}))["results"]
        return [fault_of(result) if "error" in result else parse(RememberResponse, result) for result in results]

    async def _decide(self, review_id: str, decision: Document) -> Document:
        decided = await self._send("decide", {"id": review_id, **decision})
        return {name: value for name, value in decided.items() if name not in _DECIDED_TWICE}

    async def _edit_review(self, review_id: str, edit: Document) -> Document:
        return await self._send("edit_review", {"id": review_id, **edit})

    async def _send(self, operation: str, request: Document) -> Document:
        method, path = _ROUTES.get(operation, f"POST {operation}").split()
        if "{id}" in path:
            path = path.format(id=quote(request.pop("id"), safe=""))
        if method not in ("GET", "DELETE"):
            return await self._client.call(method, f"/v0/{path}", request)
        query = urlencode({name: json.dumps(value) if name == "filter" else value for name, value in request.items()})
        return await self._client.call(method, f"/v0/{path}?{query}" if query else f"/v0/{path}")


class SyncRemoteMemory(BlockingMemory):
    """`RemoteMemory` without async: the same parameters and methods, each waiting for its answer. Safe to share between
    threads.

    >>> with SyncRemoteMemory("http://127.0.0.1:8420", token, agent_id="assistant") as memory:
    ...     memory.remember("Alice is allergic to peanuts", user_id="alice")
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
        super().__init__(RemoteMemory(url, token, agent_id, timeout=timeout, connections=connections))
