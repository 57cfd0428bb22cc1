"""An event loop whose time passes only when nothing else is to be done, and then at once: no waiting for timeouts."""

from __future__ import annotations

import asyncio
import selectors
from contextlib import suppress
from typing import Any

_MOMENT = 0.02  # for threads that are at work to answer, before time goes on


class _Selector(selectors.DefaultSelector):
    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(_MOMENT if timeout is None or timeout > 0 else timeout)
        if not ready and timeout is not None and timeout > 0:
            self.passed += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.passed


async def pass_seconds(seconds: float) -> None:
    """Let so much of a jumping loop's time go by, in which its other tasks have their turns."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
