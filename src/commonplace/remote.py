"""Memory on a server: `RemoteMemory` has the methods of `Memory` and needs only an address and a token."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import socket
import ssl
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from commonplace.wire import errors
from commonplace.wire.errors import Fault, Unavailable, ValidationError
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

DEFAULT_URL = "http://127.0.0.1:8420"
_FAULTS: dict[str, type[Fault]] = {
    kind.code: kind
    for kind in (
        errors.ValidationError, errors.Unauthenticated, errors.Forbidden, errors.NotFound, errors.Conflict,
        errors.PayloadTooLarge, errors.SecretLeakage, errors.RateLimited, errors.Unavailable,
    )
}  # fmt: skip
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
        self._line = Line(url, token or os.environ.get("COMMONPLACE_TOKEN"), timeout, connections)

    # the five operations

    async def remember(self, content: str, *, type: str = "semantic", **fields: Any) -> RememberResponse:
        return await self._post(RememberResponse, "remember", {"content": content, "type": type, **fields})

    async def remember_batch(self, items: Sequence[str | dict[str, Any]]) -> list[RememberResponse | Fault]:
        wholes = [{"content": item} if isinstance(item, str) else dict(item) for item in items]
        body = {"items": [self._request({"type": "semantic", **whole}) for whole in wholes]}
        answer = await self._line.call("POST", "/v0/remember/batch", body)
        return [
            _fault(result) if "error" in result else parse(RememberResponse, result) for result in answer["results"]
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
        return await self._line.call("PATCH", f"/v0/memories/{_segment(id)}", self._request(fields))

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
        decided = await self._line.call("POST", f"/v0/reviews/{_segment(review_id)}", _given(decision))
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
        self._line.close()

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
        return parse(answer, await self._line.call("POST", f"/v0/{operation}", self._request(fields)))

    async def _change(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._line.call("POST", f"/v0/{path}", self._request(fields))

    async def _preview(self, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        return await self._line.call("POST", f"/v0/preview/{operation}", self._request(fields))

    async def _read(self, path: str, **query: Any) -> dict[str, Any]:
        asked = urlencode(_given(query))
        return await self._line.call("GET", f"/v0/{path}?{asked}" if asked else f"/v0/{path}")


class Line:
    """A few kept connections, each used by one thread at a time. Not more than `most_bytes` of an answer are read."""

    def __init__(
        self, url: str, token: str | None, timeout: float, connections: int, most_bytes: int | None = None
    ) -> None:
        wrong = ValidationError(f"{url!r} is not a server's address; write for example {DEFAULT_URL}", field="url")
        try:
            parts = urlsplit(url)
            self._port = parts.port
        except ValueError:  # a port or an address that cannot be one
            raise wrong from None
        plain = url.isprintable() and " " not in url and parts.path.isascii()
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise wrong
        if token and not (token.isascii() and token.isprintable() and " " not in token):
            raise ValidationError("the token holds a character that no token has; copy it again", field="token")
        self._host, self._base = parts.hostname, parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._timeout = timeout
        self._most_bytes = most_bytes
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="commonplace-remote")
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    async def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        loop = asyncio.get_running_loop()
        status, answer = await loop.run_in_executor(self._pool, self._exchange, method, self._base + path, data)
        try:
            document = json.loads(answer)
        except (ValueError, RecursionError):
            raise Unavailable(f"{self._host} answered {status} with something that is not JSON") from None
        if status >= 400:
            raise _fault(document)
        found: dict[str, Any] = document
        return found

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        connection = self._take()
        try:
            connection.request(method, path, data, self._headers)
            response = connection.getresponse()
            answer = response.read(None if self._most_bytes is None else self._most_bytes + 1)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            why = getattr(error, "strerror", None) or type(error).__name__
            raise Unavailable(f"{self._host} could not be reached: {why}") from error
        if self._most_bytes is not None and len(answer) > self._most_bytes:
            connection.close()
            raise Unavailable(f"{self._host} answered with more than {self._most_bytes:,} bytes")
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return response.status, answer

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                # Readable before anything was asked means the server has hung up: a request sent now would be lost.
                if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                    return connection
                connection.close()
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=ssl.create_default_context()
            )
        return _Prompt(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._idle:
            connection.close()
        self._idle.clear()


class _Prompt(http.client.HTTPConnection):
    """Headers and body leave at once: waiting to fill a packet would cost tens of milliseconds a call."""

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _fault(document: Any) -> Fault:
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        return Unavailable("the server answered with an error of an unknown shape")
    kind = _FAULTS.get(str(error.get("code", "")), Unavailable)
    fault = kind(str(error.get("message", "the server gave no reason")))
    if isinstance(error.get("details"), dict):
        fault.details = error["details"]
    return fault


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _segment(text: str) -> str:
    return quote(text, safe="")


def _listed(ids: Sequence[str] | str | None) -> Any:
    if ids is None:
        return None
    return [ids] if isinstance(ids, str) else list(ids)
