"""What goes wrong, in AMP's envelope."""

from __future__ import annotations

from typing import Any

from commonplace.wire.errors import Fault

#: The one table from our faults to the statuses AMP answers with.
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


def envelope(fault: Fault) -> dict[str, Any]:
    return {"success": False, "error": {"code": fault.code, "message": fault.message}}
