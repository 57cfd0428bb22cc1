"""What `/.well-known/openwop` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.config import RedactionConfig
from commonplace.dialects.openwop.entries import MAX_ENTRY_BYTES
from commonplace.engine import BACKENDS
from commonplace.wire.errors import ValidationError

LONG_TERM = ("longTerm", "long-term")  # the RFC's spelling, and that of its public scenarios


def backends(redaction: RedactionConfig) -> list[str]:
    """Long-term memory is only offered while secrets are kept out of it."""
    return [*BACKENDS, *(LONG_TERM if redaction.mode != "off" else ())]


def document(redaction: RedactionConfig, fixtures: Sequence[str] = ()) -> dict[str, Any]:
    said: dict[str, Any] = {
        "agents": {"supported": True, "memoryBackends": backends(redaction)},
        "memory": {"supported": True, "maxEntrySizeBytes": MAX_ENTRY_BYTES, "ttlSupported": True},
    }
    return {**said, "capabilities": said, **({"fixtures": list(fixtures)} if fixtures else {})}


def check_offered(redaction: RedactionConfig, backend: str) -> None:
    if backend not in (offered := backends(redaction)):
        sentence = (
            "longTerm memory is not offered while redaction is off; the operator turns it on with mode = \"redact\" or "
            "\"reject\" in the table [redaction]"
        )  # fmt: skip
        raise ValidationError(sentence, field="backend", memoryBackends=offered)
