"""One request and its answer as bytes: bodies read within their limit, JSON decoded and encoded, replies sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from commonplace.serve.routes import MalformedBody, NdjsonLines, Reply
from commonplace.wire import strict_json
from commonplace.wire.errors import PayloadTooLarge
from commonplace.wire.models import Message, RememberResponse, dump

T = TypeVar("T")
#: A body up to this many times the limit is read to its end, unkept: a client that is still sending reads no answer.
_DRAINED_LIMITS = 16
CLIENT_GONE = 499  # what access logs call it; nobody is left to receive it
_LINES_AT_ONCE = 64


def decode_body(body: bytes) -> Any:
    """The JSON document, or None when there is no body."""
    if not body:
        return None
    try:
        return strict_json.decode(body)
    except strict_json.InvalidJson as wrong:
        place = f" at line {wrong.line}, column {wrong.column}" if wrong.line else ""
        raise MalformedBody(f"the body is {wrong}{place}") from None


def encode(document: Any) -> bytes:
    if isinstance(document, Message):
        if not isinstance(document, RememberResponse):
            return document.__pydantic_serializer__.to_json(document, exclude_none=True)
        document = dump(document)  # which alone says a null
    return strict_json.encode(document)


async def read_body(headers: Headers, receive: Receive, limit: int) -> bytes:
    """At most `limit` bytes; more is refused, as soon as it is known, without being kept."""
    fault = PayloadTooLarge(f"the body may have at most {limit:,} bytes", limit=limit)
    declared = headers.get("content-length", "")
    length = int(declared) if declared.isdigit() else 0
    if length > limit * _DRAINED_LIMITS or (length > limit and "expect" in headers):
        raise fault
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
        if size > limit * _DRAINED_LIMITS:
            raise fault
        if not message.get("more_body", False):
            break
    if size > limit:
        raise fault
    return b"".join(chunks)


async def disconnected(receive: Receive) -> None:
    """Until the client has left; for when its body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(work: Awaitable[T], receive: Receive) -> T:
    """The result, unless the client leaves before: then the work is cancelled and ClientDisconnect raised."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def send_reply(scope: Scope, send: Send, reply: Reply) -> None:
    document = reply.document
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **reply.headers}
    if isinstance(document, NdjsonLines):
        headers.setdefault("Content-Type", "application/x-ndjson")
        await _start(send, reply.status, headers)
        pending: list[bytes] = []
        for line in document.documents:
            pending.append(encode(line) + b"\n")
            if len(pending) == _LINES_AT_ONCE:
                await send({"type": "http.response.body", "body": b"".join(pending), "more_body": True})
                pending.clear()
        await send({"type": "http.response.body", "body": b"".join(pending)})
        return
    if document is None:
        body = b""
    elif isinstance(document, bytes):
        body = document
    else:
        body = encode(document)
        headers.setdefault("Content-Type", "application/json")
    if reply.status != 204:
        headers["Content-Length"] = str(len(body))
    await _start(send, reply.status, headers)
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
