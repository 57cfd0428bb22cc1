"""What the headers of a POST say about the MCP message in it, and the refusal where they say something else. Pure.

Proxies route by these headers without reading the body, so a header that differs from the body must not be believed
by one and ignored by the other.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from starlette.datastructures import Headers

from commonplace.serve.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, JsonRpcError
from commonplace.serve.mcp.handler import UNSUPPORTED_VERSION
from commonplace.serve.mcp.tools import Document
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS, META_CAPABILITIES, META_VERSION

HEADER_MISMATCH = -32020
_VERSION, _METHOD, _NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
_DEFAULT_VERSION = "2025-03-26"  # of a message that names none, as every version since says
#: Which parameter the name in the header is.
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED, _ENCODED_END = "=?base64?", "?="
#: Errors that a stateless version gives a status of their own; all others come with 200.
_STATUSES = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_VERSION), 400),
    METHOD_NOT_FOUND: 404,
}


def accepts_json(headers: Headers) -> bool:
    accepted = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "").split(",")}
    return not accepted.isdisjoint(("application/json", "application/*", "*/*"))


def is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def handshake_version(headers: Headers) -> str | None:
    """The version a message is in if it has a handshake; None for one that says everything itself."""
    version = _value(headers, _VERSION) if _VERSION in headers else _DEFAULT_VERSION
    return version if version in HANDSHAKE_VERSIONS else None


def stateless_version(headers: Headers) -> str:
    return _value(headers, _VERSION) or ""


def check_stateless(headers: Headers, message: Document) -> None:
    """Raises JsonRpcError where the headers of a request differ from its body."""
    if repeated := next((name for name in (_VERSION, _METHOD, _NAME) if len(headers.getlist(name)) > 1), None):
        raise _mismatch(f"the header {repeated} is there more than once")
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or META_VERSION not in meta or META_CAPABILITIES not in meta:
        raise JsonRpcError(INVALID_PARAMS, f"params._meta needs {META_VERSION} and {META_CAPABILITIES}")
    if _value(headers, _VERSION) != meta[META_VERSION]:
        raise _mismatch(f"the header {_VERSION} differs from {META_VERSION} in params._meta")
    if _value(headers, _METHOD) != message["method"]:
        raise _mismatch(f"the header {_METHOD} differs from the method")
    key = _NAMED_BY.get(message["method"])
    named = params.get(key) if key and isinstance(params, dict) else None
    if named is not None and _decoded(_value(headers, _NAME)) != named:
        raise _mismatch(f"the header {_NAME} differs from params.{key}")


def status_of(error: JsonRpcError) -> int:
    return _STATUSES.get(error.code, 200)


def _value(headers: Headers, name: str) -> str | None:
    """White space around a value is no part of it (RFC 9110)."""
    return value.strip(" \t") if (value := headers.get(name)) is not None else None


def _decoded(value: str | None) -> Any:
    """What no header can hold as it is comes in base64; nothing for one that is broken, which no name equals."""
    if value is None or not (value.startswith(_ENCODED) and value.endswith(_ENCODED_END)):
        return value
    coded = value.removeprefix(_ENCODED).removesuffix(_ENCODED_END)
    try:
        data = base64.b64decode(coded, validate=True)
        return data.decode("utf-8") if base64.b64encode(data).decode() == coded else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _mismatch(sentence: str) -> JsonRpcError:
    return JsonRpcError(HEADER_MISMATCH, sentence)
