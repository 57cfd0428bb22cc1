"""Threads that do for an event loop what blocks: it knows nothing of what they do."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from commonplace.wire.errors import Unavailable

T = TypeVar("T")
_Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThreads:
    """Threads that work for event loops, begun when none is free, up to `most`. An executor does the same with a second
    future, its lock and a chain of callbacks for each piece of work, which took as long as a small read."""

    def __init__(self, most: int, name: str) -> None:
        self.most = most
        self._name = name
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._free = 0  # threads that nothing was given to yet; counted by whoever gives, so that no work waits for one
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            if self._closed:
                raise Unavailable("this store is closed")
            if self._free:
                self._free -= 1
            elif len(self._threads) < self.most:
                name = f"{self._name}_{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()
            self._work.put((loop, future, work))
        return await future

    def close(self) -> None:
        """Finish what was asked."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (given := self._work.get()) is not None:
            loop, future, work = given
            result, error = None, None
            if not future.cancelled():
                try:
                    result = work()
                except BaseException as raised:  # whatever it is, its caller waits for it
                    error = raised
            with self._lock:  # before it is answered: whoever asks one thing after the other needs one thread
                self._free += 1
            with suppress(RuntimeError):  # that loop is gone, and with it whoever waited
                loop.call_soon_threadsafe(_answer, future, result, error)
            del given, future, work, result, error  # nothing that was read stays until the next one comes


def _answer(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
