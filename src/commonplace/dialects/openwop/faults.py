"""What goes wrong, in OpenWOP's flat envelope."""

from __future__ import annotations

from typing import Any

from commonplace.wire.errors import Fault


def envelope(fault: Fault) -> dict[str, Any]:
    document: dict[str, Any] = {"error": fault.code, "message": fault.message}
    if fault.details:
        document["details"] = fault.details
    return document
