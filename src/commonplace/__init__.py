"""Commonplace: one memory for every agent."""

from __future__ import annotations

from commonplace.__about__ import __version__

TYPE_CHECKING = False  # checkers and editors take it for true; importing it from typing would double the cost of this
if TYPE_CHECKING:
    from commonplace.procedure import Procedure
    from commonplace.remote import RemoteMemory, SyncRemoteMemory
    from commonplace.sdk import Memory, SyncMemory
    from commonplace.wire.memory_store import MemoryStore

__all__ = ["Memory", "MemoryStore", "Procedure", "RemoteMemory", "SyncMemory", "SyncRemoteMemory", "__version__"]


def __getattr__(name: str) -> object:
    # The SDK pulls in the engine; `import commonplace` alone must stay cheap.
    if name in ("Memory", "SyncMemory"):
        from commonplace import sdk

        return getattr(sdk, name)
    if name in ("RemoteMemory", "SyncRemoteMemory"):
        from commonplace import remote

        return getattr(remote, name)
    if name == "Procedure":
        from commonplace.procedure import Procedure

        return Procedure
    if name == "MemoryStore":
        from commonplace.wire.memory_store import MemoryStore

        return MemoryStore
    raise AttributeError(f"module 'commonplace' has no attribute {name!r}")
