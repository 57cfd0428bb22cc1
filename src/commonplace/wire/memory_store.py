"""The paper's `MemoryStore` (§3.4): five operations, each a memorywire request and its response, and what it can do.

Whoever's object has these can be attached as a backend. `Memory` and `RemoteMemory` have them, and so a memory over
several stores can itself be a store of another.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Protocol, runtime_checkable

from commonplace.wire.models import (
    ExpireRequest,
    ExpireResponse,
    ForgetRequest,
    ForgetResponse,
    MergeRequest,
    MergeResponse,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
)


@runtime_checkable
class MemoryStore(Protocol):
    async def remember(self, request: RememberRequest, /) -> RememberResponse: ...

    async def recall(self, request: RecallRequest, /) -> RecallResponse: ...

    async def forget(self, request: ForgetRequest, /) -> ForgetResponse: ...

    async def merge(self, request: MergeRequest, /) -> MergeResponse: ...

    async def expire(self, request: ExpireRequest, /) -> ExpireResponse: ...

    async def health(self) -> dict[str, Any]:
        """At least {"status": "ok" | "degraded" | "down"}."""

    @property
    def capabilities(self) -> AbstractSet[str]:
        """Some of `semantic episodic procedural emotional vector fts graph recall_tracking governance`. Asking must
        neither block nor fail."""
