"""Histories of the store that is moved, each read once where it can be held: its versions are asked for batch by batch,
and a memory that changed thousands of times would be read as a whole for every one of them."""

from __future__ import annotations

from commonplace.stores.base import Primary
from commonplace.wire.record import Memory

_HELD_CHARS = 64_000_000
_VERSION_CHARS = 1_000  # of all of a version but its text

Versions = dict[int, Memory]


class SourceHistories:
    def __init__(self, source: Primary) -> None:
        self._source = source
        self._held: dict[tuple[str, str], Versions] = {}  # the one that was last asked for is last
        self._chars = 0

    async def of(self, tenant: str, id: str) -> Versions:
        """By number; as it was when it was first asked for."""
        held = self._held.pop((tenant, id), None)
        if held is None:
            held = {memory.version: memory for memory in await self._source.history(tenant, id)}
            self._chars += _chars(held)
        self._held[tenant, id] = held
        while self._chars > _HELD_CHARS and len(self._held) > 1:
            self._chars -= _chars(self._held.pop(next(iter(self._held))))
        return held


def _chars(versions: Versions) -> int:
    return sum(len(memory.content) + _VERSION_CHARS for memory in versions.values())
