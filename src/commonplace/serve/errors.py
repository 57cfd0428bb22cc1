"""Faults as HTTP answers: the one table of statuses, and what HTTP wants said in headers whatever the protocol."""

from __future__ import annotations

from collections.abc import Iterable

from commonplace.serve.routes import Protocol, Reply
from commonplace.wire.errors import Fault, ValidationError

STATUS = {
    "validation_error": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "secret_leakage": 422,
    "rate_limited": 429,
    "not_implemented": 501,
    "unavailable": 503,
}


class MalformedBody(ValidationError):
    """The body is not JSON at all."""


def error_reply(
    protocols: Iterable[Protocol], path: str, fault: Fault, status: int | None = None, **headers: str
) -> Reply:
    """In the words of the protocol that owns the path, which need not be one of its routes; `status` where HTTP has a
    better one than the fault."""
    owners = [p for p in protocols if path == p.prefix or path.startswith(f"{p.prefix}/")]
    error = max(owners, key=lambda p: len(p.prefix)).error if owners else Fault.to_wire
    return Reply(error(fault), status or STATUS[fault.code], {**_headers(fault), **headers})


def _headers(fault: Fault) -> dict[str, str]:
    match fault.code:
        case "unauthenticated":
            return {"WWW-Authenticate": 'Bearer realm="commonplace"'}
        case "rate_limited":
            return {"Retry-After": str(fault.details.get("retry_after", 1))}
        case "payload_too_large":
            return {"Connection": "close"}  # what is left of the body is not read
    return {}
