"""A bounded cache around an embedder, and one worker that turns concurrent callers into few batches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b

import numpy as np

from commonplace.embedders.base import Embedder, Unloadable, Vectors
from commonplace.wire.errors import Fault, Unavailable, ValidationError

ENTRIES = 4096
BATCH = 64
IDLE_SECONDS = 600.0

_Vector = Vectors  # one row of them
_Item = tuple[bytes, str]  # a text and its key


class CachedEmbedder:
    """Thread-safe, for callers with and without an event loop; the embedder inside is only ever called by one
    thread at a time.

    What waits while a batch is computed becomes the next batch, so load makes batches larger and a lone
    caller never waits for company. A caller with many texts has one batch in the queue at a time, so that
    others get in between.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        entries: int = ENTRIES,
        batch: int = BATCH,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._entries = entries
        self._batch = batch
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()  # guards the four below; never held while embedding
        self._vectors: OrderedDict[bytes, _Vector] = OrderedDict()
        self._waiting: dict[bytes, Future[_Vector]] = {}
        self._queue: deque[_Item] = deque()
        self._draining = False
        self._embedding = threading.Lock()
        self._loaded = False
        self._dimension: int | None = None
        self._last_used = clock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            with self._embedding:  # some embedders find out by embedding
                self._dimension = self.embedder.dimension
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        keys, found, missing = self._look_up(texts)
        for chunk in missing:
            found |= {key: future.result() for key, future in self._request(chunk).items()}
        return self._rows(keys, found)

    async def embed_async(self, texts: Sequence[str]) -> Vectors:
        keys, found, missing = self._look_up(texts)
        for chunk in missing:
            requested = self._request(chunk)
            vectors = await asyncio.gather(*map(asyncio.wrap_future, requested.values()))
            found |= zip(requested, vectors, strict=True)
        return self._rows(keys, found)

    def discard(self, texts: Sequence[str]) -> None:
        """Drop what is cached of these: erasing a memory must leave nothing derived from it."""
        with self._lock:
            for text in texts:
                self._vectors.pop(_key(text), None)

    def clear(self) -> None:
        with self._lock:
            self._vectors.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._vectors)

    @property
    def waiting(self) -> int:
        """Texts that no batch has taken up yet."""
        return len(self._queue)

    def unload(self) -> None:
        """Give back the model's memory once the batch in hand is done."""
        with self._embedding:
            self._loaded = False
            if isinstance(self.embedder, Unloadable):
                self.embedder.unload()

    def unload_if_idle(self) -> bool:
        """Unload if nothing was embedded for a while; for whoever ticks already to call now and then."""
        with self._lock:
            busy = self._draining or self._clock() - self._last_used < self._idle_seconds
        if busy or not self._loaded:
            return False
        self.unload()
        return True

    def close(self) -> None:
        """Finish what was asked, then stop the worker and give back the model's memory."""
        self._worker.shutdown()
        self.unload()

    def _look_up(self, texts: Sequence[str]) -> tuple[list[bytes], dict[bytes, _Vector], list[list[_Item]]]:
        """The keys of all, the vectors of those that are cached, and the rest in chunks."""
        keys = [_key(text) for text in texts]
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        # Texts of one length together: a batch costs what its longest text costs, times its size.
        items = sorted(missing.items(), key=lambda item: len(item[1]))
        return keys, found, [items[start : start + self._batch] for start in range(0, len(items), self._batch)]

    def _request(self, items: list[_Item]) -> dict[bytes, Future[_Vector]]:
        requested: dict[bytes, Future[_Vector]] = {}
        with self._lock:
            for key, text in items:
                future = self._waiting.get(key)
                if future is None:
                    future = Future()
                    # Callers share it, so one that gives up must not be able to cancel it for the others.
                    future.set_running_or_notify_cancel()
                    if key in self._vectors:
                        future.set_result(self._vectors[key])
                    else:
                        self._waiting[key] = future
                        self._queue.append((key, text))
                requested[key] = future
            start = bool(self._queue) and not self._draining
            self._draining |= start
        if start:
            try:
                self._worker.submit(self._drain)
            except RuntimeError as error:  # closed, or the interpreter is going down
                closed = Unavailable("the embedder has been closed")
                with self._lock:
                    self._draining = False
                    waiting = [*self._queue]
                    self._queue.clear()
                self._fail(waiting, closed)
                raise closed from error
        return requested

    def _drain(self) -> None:
        while True:
            with self._lock:
                self._last_used = self._clock()
                items = [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]
                if not items:
                    self._draining = False
                    return
            items.sort(key=lambda item: len(item[1]))
            self._embed_batch(items)

    def _embed_batch(self, items: list[_Item]) -> None:
        try:
            with self._embedding:
                self._loaded = True
                vectors = self.embedder.embed([text for _, text in items])
            if vectors.ndim != 2 or len(vectors) != len(items):
                raise Unavailable(f"{self.name} answered shape {list(vectors.shape)} for {len(items)} texts")
        except ValidationError as fault:
            # One caller's text is at fault: it must not take down what other callers asked for.
            if len(items) > 1:
                for item in items:
                    self._embed_batch([item])
            else:
                self._fail(items, fault)
        except BaseException as error:  # every waiter must hear of it, or it would wait for ever
            self._fail(items, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._keep(items, vectors)

    def _keep(self, items: list[_Item], vectors: Vectors) -> None:
        rows = [np.array(row, np.float32) for row in vectors]  # own copies: a view would keep the batch alive
        with self._lock:
            futures = [self._waiting.pop(key) for key, _ in items]
            for (key, _), row in zip(items, rows, strict=True):
                row.setflags(write=False)
                self._vectors[key] = row
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._entries:
                self._vectors.popitem(last=False)
        for future, row in zip(futures, rows, strict=True):
            future.set_result(row)

    def _fail(self, items: list[_Item], error: BaseException) -> None:
        with self._lock:
            futures = [self._waiting.pop(key) for key, _ in items]
        fault = error if isinstance(error, Fault) else Unavailable(f"{self.name} failed: {type(error).__name__}")
        fault.__cause__ = None if fault is error else error
        for future in futures:
            future.set_exception(fault)

    def _rows(self, keys: list[bytes], found: dict[bytes, _Vector]) -> Vectors:
        if not keys:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([found[key] for key in keys])


def _key(text: str) -> bytes:
    # A digest, so that the cache's memory does not depend on how long texts are and holds none of them.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
