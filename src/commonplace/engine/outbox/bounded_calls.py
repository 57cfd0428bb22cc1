"""Calls of code that is not ours, which may hang, go on after it was cancelled, cancel itself, or end the program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from commonplace.wire.errors import Unavailable

T = TypeVar("T")
_CANCEL_SECONDS = 0.1  # for it to let go of what it is doing


async def run_with_timeout(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """As asyncio.timeout, for code of others: what does not end when it is cancelled is left to itself, and that it
    cancels itself, or would end the program, is its failure, not ours."""
    task = asyncio.get_running_loop().create_task(_as_failure(work))
    _under_way.add(task)  # asyncio itself holds it only weakly, and nobody else may be there for long
    task.add_done_callback(_retrieve_exception)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        is_late = not task.done()
        if is_late:
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
    if is_late:
        raise TimeoutError
    if task.cancelled():
        raise Unavailable("it failed: cancelled")
    return task.result()


async def _as_failure(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except BaseException as error:
        if _is_failure(error):
            raise _failed(error) from error
        raise


def _is_failure(error: BaseException) -> bool:
    """Whether it is no exception as others know them, and yet none that is meant for us. SystemExit would stop the
    event loop, whoever waits; code in Rust panics with a BaseException, which nobody takes for its failure."""
    return not isinstance(error, Exception | asyncio.CancelledError | KeyboardInterrupt | GeneratorExit)


def _failed(error: BaseException) -> Unavailable:
    return Unavailable(f"it failed: {type(error).__name__}")


_under_way: set[asyncio.Task[Any]] = set()


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    _under_way.discard(task)
    if not task.cancelled():
        task.exception()  # or asyncio would log that nobody asked for it


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """As asyncio.to_thread, in a thread that nobody waits for when the program ends: an open may hang for ever."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
            if _is_failure(raised):
                error = _failed(raised)
            elif isinstance(raised, StopIteration):  # a future does not take it, and whoever waits would wait for ever
                error = RuntimeError("StopIteration")
        with suppress(RuntimeError):  # that loop is gone, and with it whoever waited
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="commonplace-open-store", daemon=True).start()
    return await future
