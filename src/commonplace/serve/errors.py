"""Faults as HTTP answers: the one table of statuses, and the shape of error that every transport of ours uses."""

from __future__ import annotations

from commonplace.serve.routes import Reply
from commonplace.wire.errors import Fault

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


def error_reply(fault: Fault) -> Reply:
    return Reply(fault.to_wire(), STATUS[fault.code])


def with_headers(reply: Reply, fault: Fault) -> Reply:
    """What HTTP wants said in headers, whichever protocol's error it is."""
    if fault.code == "unauthenticated":
        reply.headers.setdefault("WWW-Authenticate", 'Bearer realm="commonplace"')
    elif fault.code == "rate_limited":
        reply.headers.setdefault("Retry-After", str(fault.details.get("retry_after", 1)))
    elif fault.code == "payload_too_large":
        reply.headers.setdefault("Connection", "close")  # what is left of the body is not read
    return reply
