"""An event loop whose time passes only when nothing else is to be done, and then at once: no waiting for timeouts."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_MOMENT = 0.02  # for threads that are at work to answer, before time goes on


class _Selector(selectors.DefaultSelector):
    passed = 0.0
    stands_still = False

    def select(self, timeout: float | None = None) -> Any:
        if self.stands_still:
            return super().select(timeout)
        ready = super().select(_MOMENT if timeout is None or timeout > 0 else timeout)
        if not ready and timeout is not None and timeout > 0:
            self.passed += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = _Selector()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.passed


@contextmanager
def standing_still() -> Iterator[None]:
    """No time goes by, however long a thread takes: on a busy machine it may have no turn for longer than a moment, and
    every timeout would be over before it has done anything. Does nothing to a loop that does not jump."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, JumpingLoop):
        yield
        return
    loop.clock.stands_still = True
    try:
        yield
    finally:
        loop.clock.stands_still = False


async def pass_seconds(seconds: float) -> None:
    """Let so much of a jumping loop's time go by, in which its other tasks have their turns."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
