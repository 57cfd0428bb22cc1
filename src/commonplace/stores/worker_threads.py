"""Threads that do for an event loop what blocks: it knows nothing of what they do."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from commonplace.wire.errors import Unavailable

T = TypeVar("T")

#: Scans have threads of their own, of which one tenant has one less: the last is for somebody else.
SCAN_THREADS = 3
_Work = tuple[asyncio.AbstractEventLoop | None, "asyncio.Future[Any] | None", Callable[[], Any]]


def usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def join_until(thread: threading.Thread, until: float | None) -> None:
    """Wait for it, until a moment of `time.monotonic`."""
    thread.join(None if until is None else max(until - time.monotonic(), 0.0))


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
        self._give((loop, future, work))
        return await future

    def start(self, work: Callable[[], None]) -> None:
        """Have it done, for nobody in particular: it goes on when the loop that asked is gone."""
        self._give((None, None, work))

    def start_behind(self, work: Callable[[], None]) -> bool:
        """Have it done after what waits for a thread, so that what is long gives way in between; False where nothing
        does, or where this is being closed: then whoever asks goes on."""
        with self._lock:
            # As long as more threads may be begun, what waits was given to one that is free.
            if self._closed or self._work.empty() or len(self._threads) < self.most:
                return False
            self._work.put((None, None, work))  # at the latest by the thread that asks
            return True

    def _give(self, work: _Work) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable("this store is closed")
            if self._free:
                self._free -= 1
            elif len(self._threads) < self.most:
                name = f"{self._name}_{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()
            self._work.put(work)

    def close(self, until: float | None = None) -> bool:
        """Finish what was asked, or as much as is by a moment of `time.monotonic`; whether it is all of it."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            join_until(thread, until)
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (given := self._work.get()) is not None:
            loop, future, work = given
            result, error = None, None
            if future is None or not future.cancelled():
                try:
                    result = work()
                except BaseException as raised:  # whatever it is, its caller waits for it
                    error = raised
            with self._lock:  # before it is answered: whoever asks one thing after the other needs one thread
                self._free += 1
            with suppress(RuntimeError):  # that loop is gone, and with it whoever waited
                if loop is not None and future is not None:
                    loop.call_soon_threadsafe(_answer, future, result, error)
            del given, future, work, result, error  # nothing that was read stays until the next one comes


def _answer(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class ReaderThreads:
    """Threads that read, and others for what may take long."""

    def __init__(self, threads: int) -> None:
        self._threads = WorkerThreads(threads, "commonplace-reader")
        self._scans = WorkerThreads(SCAN_THREADS, "commonplace-scan")
        # By event loop, too: a semaphore belongs to the first that waits on it.
        self._turns: WeakValueDictionary[tuple[int, str], asyncio.Semaphore] = WeakValueDictionary()

    async def run(self, work: Callable[[], T]) -> T:
        return await self._threads.run(work)

    async def run_scan(self, tenant: str, work: Callable[[], T]) -> T:
        """A read that may look at every row of a tenant: others never wait for it, and other tenants' scans only in
        turn, since no tenant has more than its share in the queue."""
        loop = asyncio.get_running_loop()
        turns = self._turns.setdefault((id(loop), tenant), asyncio.Semaphore(SCAN_THREADS - 1))
        async with turns:
            return await self._scans.run(work)

    def close(self, until: float | None = None) -> bool:
        return all([self._threads.close(until), self._scans.close(until)])
