"""What travels: records, requests, schemas, ids and faults. Imports nothing else of ours.

The messages of the five operations, and `MemoryStore`, can be imported from here.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in the package's own __init__
if TYPE_CHECKING:
    from commonplace.wire.memory_store import MemoryStore as MemoryStore
    from commonplace.wire.models import (
        ExpirePolicy as ExpirePolicy,
        ExpireRequest as ExpireRequest,
        ExpireResponse as ExpireResponse,
        ForgetRequest as ForgetRequest,
        ForgetResponse as ForgetResponse,
        MergeRequest as MergeRequest,
        MergeResponse as MergeResponse,
        RecallHit as RecallHit,
        RecallRequest as RecallRequest,
        RecallResponse as RecallResponse,
        RememberRequest as RememberRequest,
        RememberResponse as RememberResponse,
        StoreError as StoreError,
        StoreOutcome as StoreOutcome,
    )

_OPERATIONS = ("Remember", "Recall", "Forget", "Merge", "Expire")
_MESSAGES = {"ExpirePolicy", "RecallHit", "StoreError", "StoreOutcome"}
_MESSAGES |= {f"{operation}{part}" for operation in _OPERATIONS for part in ("Request", "Response")}


def __getattr__(name: str) -> object:
    # Pydantic is not loaded by whoever only wants a fault or a record.
    if name in _MESSAGES:
        from commonplace.wire import models

        return getattr(models, name)
    if name == "MemoryStore":
        from commonplace.wire.memory_store import MemoryStore

        return MemoryStore
    raise AttributeError(f"module 'commonplace.wire' has no attribute {name!r}")
