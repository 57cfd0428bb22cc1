"""One JSON-RPC message from bytes, or what is wrong with it in a code every transport gives alike."""

from __future__ import annotations

import math

from commonplace.serve.json_rpc import INVALID_REQUEST, PARSE_ERROR, JsonRpcError
from commonplace.serve.mcp.tools import Document
from commonplace.wire import strict_json


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
    if not is_answer(message):
        _check(message)
    return message


def is_answer(message: Document) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _check(message: Document) -> None:
    method, id = message.get("method"), message.get("id")
    known = (isinstance(id, (str, int)) and not isinstance(id, bool)) or (isinstance(id, float) and math.isfinite(id))
    named = id if known else None
    if message.get("jsonrpc") != "2.0":
        raise JsonRpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', id=named)
    if not isinstance(method, str) or not method:
        raise JsonRpcError(INVALID_REQUEST, "method must be a name such as tools/call", id=named)
    if "id" in message and not known:
        raise JsonRpcError(INVALID_REQUEST, "id must be text or a number")
