"""Recalls, for which someone waits, go before background jobs, for which nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

GIVE_WAY_SECONDS = 0.015  # a hundred steps must still be done in two seconds


class RecallPriority:
    """Of one engine. Jobs that took one step after the other would take half of the interpreter from every recall
    meanwhile; as they give way before each step, a recall meets one of them at most."""

    def __init__(self) -> None:
        self._answering = 0
        self._nobody_waits = asyncio.Event()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Someone waits for an answer meanwhile."""
        self._answering += 1
        self._nobody_waits.clear()
        try:
            yield
        finally:
            self._answering -= 1
            if not self._answering:
                self._nobody_waits.set()

    async def give_way(self) -> None:
        """Until nobody waits, but not for long: where recalls never end, jobs must."""
        if self._answering:
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVE_WAY_SECONDS):
                    await self._nobody_waits.wait()
