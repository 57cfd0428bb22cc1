"""One request and its answer as bytes: bodies read within their limit, JSON decoded and encoded, replies sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from commonplace.serve.routes import ByteStream, MalformedBody, NdjsonLines, Reply
from commonplace.wire import strict_json
from commonplace.wire.errors import PayloadTooLarge, Unavailable
from commonplace.wire.models import Message, RememberResponse, dump

T = TypeVar("T")
#: A body up to this many times the limit is read to its end, unkept: a client that is still sending reads no answer.
_DRAINED_LIMITS = 16
CLIENT_GONE = 499  # what access logs call it; nobody is left to receive it
_LINES_AT_ONCE = 64
_BYTES_AT_ONCE = 64 * 1024


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
    chunks: list[bytes] = []
    await _receive_body(headers, receive, limit, limit * _DRAINED_LIMITS, chunks.append, chunks.clear)
    return b"".join(chunks)


@asynccontextmanager
async def spooled_body(headers: Headers, receive: Receive, limit: int, folder: Path) -> AsyncIterator[BinaryIO]:
    """The same, in a file in `folder` that nobody else can open and that is gone once it is closed, or the process is:
    where there are such files it never has a name."""
    import tempfile

    with ExitStack() as closed:
        try:
            file = closed.enter_context(tempfile.TemporaryFile(dir=folder, prefix="import-"))
            await _receive_body(headers, receive, limit, limit * 2, file.write, lambda: file.truncate(0))
            file.flush()
        except OSError as error:
            raise Unavailable(f"the body could not be kept on disk: {error.strerror}") from error
        yield cast(BinaryIO, file)


async def _receive_body(
    headers: Headers, receive: Receive, limit: int, drained: int, keep: Callable[[bytes], Any],
    discard: Callable[[], Any],
) -> None:  # fmt: skip
    """Up to `drained` bytes are read for the sake of a client that would not read a refusal before it has sent them."""
    fault = PayloadTooLarge(f"the body may have at most {limit:,} bytes", limit=limit)
    declared = headers.get("content-length", "")
    length = int(declared) if declared.isdigit() else 0
    if length > drained or (length > limit and "expect" in headers):
        raise fault
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= limit:
            keep(chunk)
        else:
            discard()
        if size > drained:
            raise fault
        if not message.get("more_body", False):
            break
    if size > limit:
        raise fault


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
    document, headers = reply.document, _headers(reply)
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


async def send_stream(scope: Scope, receive: Receive, send: Send, reply: Reply) -> None:
    """Raises what making it raises, and ClientDisconnect when nobody takes it; the answer has no end then, which HTTP
    tells its reader."""
    stream: ByteStream = reply.document
    await _start(send, reply.status, _headers(reply))
    if scope["method"] == "HEAD":
        await stream.rest.aclose()
        await send({"type": "http.response.body", "body": b""})
    else:
        await while_connected(_send_parts(send, stream), receive)


async def _send_parts(send: Send, stream: ByteStream) -> None:
    pending = bytearray(stream.first)
    async with aclosing(stream.rest):
        async for part in stream.rest:
            pending += part
            if len(pending) >= _BYTES_AT_ONCE:
                await send({"type": "http.response.body", "body": bytes(pending), "more_body": True})
                pending.clear()
    await send({"type": "http.response.body", "body": bytes(pending)})


def _headers(reply: Reply) -> dict[str, str]:
    return {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **reply.headers}


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
