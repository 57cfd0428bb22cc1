"""One JSON-RPC message from bytes, or what is wrong with it in a code every transport gives alike."""

from __future__ import annotations

import math
import re
from typing import Any

from commonplace.serve.json_rpc import INVALID_REQUEST, MAX_ID_CHARS, PARSE_ERROR, JsonRpcError
from commonplace.serve.mcp.tools import Document
from commonplace.wire import strict_json
from commonplace.wire.record import MIN_SECRET_CHARS

#: Forms that no secret has, so that nothing must be loaded to know: methods and versions of MCP, and UUIDs.
_PLAIN = re.compile(r"[a-z]+(/[A-Za-z_]+)+|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_plain(given: Any) -> bool:
    """Whether a method or an id may be repeated to whoever sent it without a look at what is a secret."""
    text = str(given)
    return len(text) < MIN_SECRET_CHARS or _PLAIN.fullmatch(text) is not None


def decode(data: bytes) -> Document:
    """A request, a notification or a response, in the shape it must have; raises JsonRpcError."""
    try:
        message = strict_json.decode(data)
    except strict_json.InvalidJson as wrong:
        # Clients show this beside their own parser's errors, so it is the parser's sentence where there is one.
        ours = isinstance(wrong.__cause__, (UnicodeDecodeError, RecursionError))
        detail = str(wrong).replace(":", ",") if ours else str(wrong.__cause__)[:120]
        raise JsonRpcError(PARSE_ERROR, f"Parse error: {detail}") from None
    if isinstance(message, list):
        raise JsonRpcError(INVALID_REQUEST, "batches are not supported: send one message at a time")
    if not isinstance(message, dict):
        raise JsonRpcError(INVALID_REQUEST, "a message is an object {jsonrpc, id, method, params}")
    if isinstance(id := message.get("id"), str) and len(id) > MAX_ID_CHARS:
        raise JsonRpcError(INVALID_REQUEST, f"id has {len(id):,} characters; at most {MAX_ID_CHARS:,} are repeated")
    if not is_answer(message):
        _check(message)
    return message


def is_answer(message: Document) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _check(message: Document) -> None:
    method, id = message.get("method"), message.get("id")
    known = (isinstance(id, (str, int)) and not isinstance(id, bool)) or (isinstance(id, float) and math.isfinite(id))
    named = id if known and is_plain(id) else None
    if message.get("jsonrpc") != "2.0":
        raise JsonRpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=named)
    if not isinstance(method, str) or not method:
        raise JsonRpcError(INVALID_REQUEST, "method must be a name such as tools/call", id=named)
    if "id" in message and not known:
        raise JsonRpcError(INVALID_REQUEST, "id must be text or a number")
