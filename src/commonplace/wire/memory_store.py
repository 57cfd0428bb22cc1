"""The paper's `MemoryStore` (§3.4): five operations, each a memorywire request and its response, and what it can do.

Whoever's object has these can be attached as a backend. `Memory` and `RemoteMemory` have them, and so a memory over
several stores can itself be a store of another.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from inspect import iscoroutinefunction
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


def why_no_memory_store(store: object) -> str | None:
    """Why it is no `MemoryStore`; None where it is one. Its operations may be plain functions that return something to
    be awaited, which is seen when they are called."""
    if isinstance(store, type):
        return f"{store.__name__} is a class: attach an object of it, such as {store.__name__}(…)"
    if isinstance(store, MemoryStore):
        return None
    names = ("remember", "recall", "forget", "merge", "expire", "health", "capabilities")
    missing = [name for name in names if not hasattr(type(store), name) and name not in getattr(store, "__dict__", ())]
    plain = [name for name in names[:-1] if name not in missing and not iscoroutinefunction(getattr(store, name))]
    said = [f"it lacks {', '.join(missing)}"] if missing else []
    said += [f"its {', '.join(plain)} {'is' if len(plain) == 1 else 'are'} not async"] if plain else []
    return f"{type(store).__name__} is no MemoryStore: {' and '.join(said)}"
