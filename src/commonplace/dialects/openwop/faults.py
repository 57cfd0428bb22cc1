"""What goes wrong, in OpenWOP's flat envelope."""

from __future__ import annotations

from typing import Any

from commonplace.wire.errors import Fault

#: The one table from our faults to the statuses OpenWOP answers with.
STATUS = {
    "validation_error": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
    "secret_leakage": 422,
    "rate_limited": 429,
    "unavailable": 503,
}


def envelope(fault: Fault) -> dict[str, Any]:
    document: dict[str, Any] = {"error": fault.code, "message": fault.message}
    if fault.details:
        document["details"] = fault.details
    return document
