"""The methods of a memory for code that is not async: each waits for its answer, on an event loop of its own thread."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Concatenate, ParamSpec, Self

from commonplace.interface import MemoryInterface
from commonplace.interface.base import T
from commonplace.wire.errors import Unavailable

P = ParamSpec("P")


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingMemory, P], T]:
    """A method of a memory as one that waits for the answer; checkers and editors see the same parameters."""

    @functools.wraps(method)
    def call(self: BlockingMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._memory, method.__name__)(*args, **kwargs)
        return self.run(work)

    return call


class BlockingMemory:
    """What `SyncMemory` and `SyncRemoteMemory` share. Safe to use from several threads."""

    def __init__(self, memory: MemoryInterface) -> None:
        self._memory = memory
        self.agent_id = memory.agent_id
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="commonplace-sdk", daemon=True)
        self._thread.start()

    @property
    def async_memory(self) -> MemoryInterface:
        """The memory behind it: what its methods give is for `run` and `submit`, and for no other loop."""
        return self._memory

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something that has no method here."""
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin something that has no method here; whoever has a loop of their own can go on meanwhile."""
        if self._loop.is_closed():
            work.close()
            raise Unavailable(f"this {type(self).__name__} is closed; make another one")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Write what is behind, close what is open and end the thread; nothing can be called afterwards."""
        if not self._loop.is_closed():
            self.run(self._memory.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    remember = blocking(MemoryInterface.remember)
    remember_batch = blocking(MemoryInterface.remember_batch)
    recall = blocking(MemoryInterface.recall)
    forget = blocking(MemoryInterface.forget)
    merge = blocking(MemoryInterface.merge)
    expire = blocking(MemoryInterface.expire)

    preview_forget = would_forget = blocking(MemoryInterface.preview_forget)
    preview_merge = would_merge = blocking(MemoryInterface.preview_merge)
    preview_expire = would_expire = blocking(MemoryInterface.preview_expire)

    get = blocking(MemoryInterface.get)
    list = blocking(MemoryInterface.list)
    update = blocking(MemoryInterface.update)
    history = blocking(MemoryInterface.history)
    undo = blocking(MemoryInterface.undo)
    lifecycle_runs = blocking(MemoryInterface.lifecycle_runs)

    session = MemoryInterface.session

    procedure_show = blocking(MemoryInterface.procedure_show)
    procedure_fire = blocking(MemoryInterface.procedure_fire)
    procedure_reset = blocking(MemoryInterface.procedure_reset)
    procedure_draw = blocking(MemoryInterface.procedure_draw)

    graph_assert = blocking(MemoryInterface.graph_assert)
    graph_query = blocking(MemoryInterface.graph_query)
    graph_history = blocking(MemoryInterface.graph_history)
    graph_path = blocking(MemoryInterface.graph_path)
    graph_retract = blocking(MemoryInterface.graph_retract)
    graph_erase = blocking(MemoryInterface.graph_erase)
    preview_graph_erase = would_graph_erase = blocking(MemoryInterface.preview_graph_erase)
    neighbors = blocking(MemoryInterface.neighbors)

    reviews = blocking(MemoryInterface.reviews)
    review = blocking(MemoryInterface.review)
    approve = blocking(MemoryInterface.approve)
    reject = blocking(MemoryInterface.reject)
    edit_review = blocking(MemoryInterface.edit_review)
    decide_many = blocking(MemoryInterface.decide_many)

    policies = blocking(MemoryInterface.policies)
    set_policies = blocking(MemoryInterface.set_policies)
    try_policies = blocking(MemoryInterface.try_policies)
    learned_policies = blocking(MemoryInterface.learned_policies)
    revoke_learned = blocking(MemoryInterface.revoke_learned)

    audit = blocking(MemoryInterface.audit)
    verify_audit = blocking(MemoryInterface.verify_audit)
    audit_head = blocking(MemoryInterface.audit_head)
    audit_proof = blocking(MemoryInterface.audit_proof)
    audit_consistency = blocking(MemoryInterface.audit_consistency)
    audit_key = blocking(MemoryInterface.audit_key)

    recover = blocking(MemoryInterface.recover)

    status = blocking(MemoryInterface.status)
    health = blocking(MemoryInterface.health)
    stores = blocking(MemoryInterface.stores)
    resync = blocking(MemoryInterface.resync)
    discard_deliveries = blocking(MemoryInterface.discard_deliveries)
    flush = blocking(MemoryInterface.flush)
    doctor = blocking(MemoryInterface.doctor)
    backup = blocking(MemoryInterface.backup)
    compact = blocking(MemoryInterface.compact)
    reindex = blocking(MemoryInterface.reindex)
