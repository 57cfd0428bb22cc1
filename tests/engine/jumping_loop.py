"""An event loop whose time passes only when nothing else is to be done, and then at once: no waiting for timeouts."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from commonplace.stores.worker_threads import WorkerThreads

_MOMENT = 0.02  # for threads to answer, before time goes on


class _Selector(selectors.DefaultSelector):
    passed = 0.0
    stands_still = False

    def __init__(self) -> None:
        super().__init__()
        self._at_work = 0  # how much of what this loop has given to threads of stores is under way
        self._lock = threading.Lock()

    def add_work(self, more: int) -> None:
        with self._lock:
            self._at_work += more

    def select(self, timeout: float | None = None) -> Any:
        if self.stands_still:
            return super().select(timeout)
        # Asked before: what ends in that moment has its answer on its way. A database may take longer than a moment.
        is_at_work = self._at_work > 0
        ready = super().select(_MOMENT if timeout is None or timeout > 0 else timeout)
        if not ready and timeout is not None and timeout > 0 and not is_at_work:
            self.passed += timeout
        return ready


def _watch_threads() -> None:
    """Have every store's threads tell a jumping loop what they do for it."""
    give = WorkerThreads._give

    def watched(threads: WorkerThreads, given: Any) -> None:
        try:
            clock = getattr(asyncio.get_running_loop(), "clock", None)
        except RuntimeError:  # a thread asks for it
            clock = None
        if not isinstance(clock, _Selector):
            return give(threads, given)
        loop, future, work = given

        def counted() -> None:
            try:
                work()
            finally:
                clock.add_work(-1)

        if future is None:
            give(threads, (loop, future, counted))
        else:  # whose caller may go, and then nothing is done
            give(threads, given)
            future.add_done_callback(lambda _: clock.add_work(-1))
        clock.add_work(1)

    WorkerThreads._give = watched  # type: ignore[method-assign]


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


_watch_threads()
