"""A bounded cache around an embedder, and one worker that turns concurrent callers into few batches."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b

import numpy as np

from commonplace.embedders.base import Embedder, Encoding, Unloadable, Vectors
from commonplace.embedders.text_queue import Lane, PendingText, TextQueue
from commonplace.wire.errors import Fault, RateLimited, Unavailable, ValidationError

ENTRIES = 4096
#: Of token vectors: those of some 1,500 questions. Without them the entries alone bound what is kept.
TOKEN_BYTES = 8 << 20
BATCH = 64
#: Characters computed in one go: what comes first meanwhile waits for no more. A model on the processor gains nothing
#: from larger batches of long texts; an embedder that does says so by its own `slice_chars`.
SLICE_CHARS = 1_000
IDLE_SECONDS = 600.0
_BACKGROUND_NICENESS = 15
_MAX_WAIT_SECONDS = 60

_NO_TOKENS = np.zeros((0, 0), np.float32), np.zeros(0, np.float32), np.zeros(0, np.bool_)
_Item = tuple[bytes, str]  # a text and its key


class _Worker:
    """One thread, and the lanes it serves."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self.draining = False
        self.embedding = threading.Lock()  # held while it embeds
        yields = _yield_processor if lanes == (Lane.BACKGROUND,) else None
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="embedder", initializer=yields)


def _yield_processor() -> None:
    """What nobody waits for gives way to what somebody does; this thread alone, which only Linux can tell apart."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _BACKGROUND_NICENESS)


class CachedEmbedder:
    """Thread-safe, for callers with and without an event loop; the embedder inside is only ever called by one
    thread at a time, or by several if it is `concurrent`: then questions have a thread of their own, and wait for
    nothing that is being written.

    What waits while a batch is computed becomes the next batch, in the order of `text_queue`: load makes batches
    larger and a lone caller never waits for company. A caller with many texts has one slice in the queue at a time, so
    that others of the same tenant get in between, and one that gives up takes back what is not begun. Tenants share
    neither vectors nor turns: nobody learns from the time it takes what another has embedded.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        entries: int = ENTRIES,
        token_bytes: int = TOKEN_BYTES,
        batch: int = BATCH,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._encode: Callable[[list[str]], list[Encoding]] = getattr(embedder, "encode", self._without_tokens)
        self.reads_speakers: bool = getattr(embedder, "reads_speakers", False)
        self._entries = entries
        self._token_bytes = token_bytes
        self._batch = batch
        self._slice_chars: int = getattr(embedder, "slice_chars", SLICE_CHARS)
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()  # guards the five below, and who drains; never held while embedding
        self._cached: OrderedDict[bytes, Encoding] = OrderedDict()
        self._cached_bytes = 0  # of token vectors
        self._waiting: dict[bytes, PendingText] = {}
        self._queue = TextQueue()
        self._seconds_per_text = 0.0  # lately
        self._loaded = False
        self._dimension: int | None = None
        self._last_used = clock()
        #: Slices of one caller that may be in the queue at once: more than can be computed at once gain nothing.
        self._ahead: int = getattr(embedder, "concurrent", 1)
        served: list[tuple[Lane, ...]] = [tuple(Lane)]
        if self._ahead > 1:
            served = [(Lane.QUERY,), (Lane.BACKGROUND,), *[(Lane.WRITE,)] * self._ahead]
        self._workers = [_Worker(lanes) for lanes in served]

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            with self._while_idle():  # some embedders find out by embedding
                self._dimension = self.embedder.dimension
        return self._dimension

    def embed(self, texts: Sequence[str], *, tenant: str = "", lane: Lane = Lane.WRITE) -> Vectors:
        keys, found, missing = self._look_up(texts, tenant)
        for chunk in missing:
            requested = self._request(chunk, tenant, lane)
            try:
                found |= {pending.key: pending.future.result() for pending in requested}
            finally:
                self._abandon(requested)
        return self._rows([found[key] for key in keys])

    async def embed_async(self, texts: Sequence[str], *, tenant: str = "", lane: Lane = Lane.WRITE) -> Vectors:
        return self._rows(await self.encode_async(texts, tenant=tenant, lane=lane))

    async def encode_async(self, texts: Sequence[str], *, tenant: str = "", lane: Lane = Lane.WRITE) -> list[Encoding]:
        """With the vectors of their tokens, of which there are none where the embedder gives none."""
        keys, found, missing = self._look_up(texts, tenant)
        for chunk in missing:
            requested = self._request(chunk, tenant, lane)
            try:
                encoded = await asyncio.gather(*(asyncio.wrap_future(pending.future) for pending in requested))
            finally:
                self._abandon(requested)
            found |= zip((pending.key for pending in requested), encoded, strict=True)
        return [found[key] for key in keys]

    def check_room(self, tenant: str, lane: Lane) -> None:
        """Refuse before anything is accepted, where so much waits already that another would wait too long."""
        with self._lock:
            if not self._queue.is_full(tenant, lane):
                return
            wait = len(self._queue) * self._seconds_per_text
        seconds = min(max(1, round(wait)), _MAX_WAIT_SECONDS)
        raise RateLimited(f"too many texts wait to be embedded; try again in {seconds} s", retry_after=seconds)

    def discard(self, texts: Sequence[str], *, tenant: str = "") -> None:
        """Drop what is cached of these: erasing a memory must leave nothing derived from it."""
        with self._lock:
            for text in texts:
                self._drop(_key(text, tenant))

    def clear(self) -> None:
        with self._lock:
            self._cached.clear()
            self._cached_bytes = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._cached)

    @property
    def waiting(self) -> int:
        """Texts that no batch has taken up yet."""
        return len(self._queue)

    def unload(self) -> None:
        """Give back the model's memory once the batch in hand is done."""
        with self._while_idle():
            self._loaded = False
            if isinstance(self.embedder, Unloadable):
                self.embedder.unload()

    def unload_if_idle(self) -> bool:
        """Unload if nothing was embedded for a while; for whoever ticks already to call now and then."""
        with self._lock:
            draining = any(worker.draining for worker in self._workers)
            busy = draining or self._clock() - self._last_used < self._idle_seconds
        if busy or not self._loaded:
            return False
        self.unload()
        return True

    def close(self) -> None:
        """Finish what was asked, then stop the worker and give back the model's memory."""
        for worker in self._workers:
            worker.pool.shutdown()
        self.unload()

    @contextmanager
    def _while_idle(self) -> Iterator[None]:
        """While nothing is being embedded."""
        with ExitStack() as held:
            for worker in self._workers:
                held.enter_context(worker.embedding)
            yield

    def _look_up(
        self, texts: Sequence[str], tenant: str
    ) -> tuple[list[bytes], dict[bytes, Encoding], list[list[_Item]]]:
        """The keys of all, the encodings of those that are cached, and the rest in slices."""
        keys = [_key(text, tenant) for text in texts]
        with self._lock:
            found = {key: self._cached[key] for key in keys if key in self._cached}
            for key in found:
                self._cached.move_to_end(key)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        # Texts of one length together: a batch costs what its longest text costs, times its size.
        items = sorted(missing.items(), key=lambda item: len(item[1]))
        slices = list(self._slices(items))
        grouped = (slices[i : i + self._ahead] for i in range(0, len(slices), self._ahead))
        return keys, found, [list(itertools.chain(*group)) for group in grouped]

    def _slices(self, items: list[_Item]) -> Iterator[list[_Item]]:
        current: list[_Item] = []
        chars = 0
        for item in items:
            if current and (len(current) == self._batch or chars + len(item[1]) > self._slice_chars):
                yield current
                current, chars = [], 0
            current.append(item)
            chars += len(item[1])
        if current:
            yield current

    def _request(self, items: list[_Item], tenant: str, lane: Lane) -> list[PendingText]:
        requested: list[PendingText] = []
        with self._lock:
            for key, text in items:
                pending = self._waiting.get(key)
                if pending is None:
                    pending = PendingText(key, text, tenant, lane)
                    # Callers share it, so one that gives up must not be able to cancel it for the others.
                    pending.future.set_running_or_notify_cancel()
                    if key in self._cached:
                        pending.future.set_result(self._cached[key])
                    else:
                        self._waiting[key] = pending
                        self._queue.add(pending)
                else:
                    self._queue.promote(pending, lane)
                pending.waiters += 1
                requested.append(pending)
            idle = [w for w in self._workers if not w.draining and self._queue.waiting(w.lanes)]
            for worker in idle:
                worker.draining = True
        for worker in idle:
            try:
                worker.pool.submit(self._drain, worker)
            except RuntimeError as error:  # closed, or the interpreter is going down
                closed = Unavailable("the embedder has been closed")
                with self._lock:
                    worker.draining = False
                    waiting = self._queue.clear()
                self._fail(waiting, closed)
                raise closed from error
        return requested

    def _abandon(self, requested: list[PendingText]) -> None:
        """A caller waits no longer: what nobody else waits for, and no batch has taken up, is not embedded at all."""
        with self._lock:
            for pending in requested:
                pending.waiters -= 1
                if not pending.waiters and self._queue.withdraw(pending):
                    del self._waiting[pending.key]

    def _drain(self, worker: _Worker) -> None:
        while True:
            with self._lock:
                began = self._last_used = self._clock()
                batch = self._queue.take(self._batch, self._slice_chars, worker.lanes)
                if not batch:
                    worker.draining = False
                    return
            batch.sort(key=lambda pending: len(pending.text))
            self._embed_batch(batch, worker)
            took = (self._clock() - began) / len(batch)
            self._seconds_per_text += (took - self._seconds_per_text) / 8

    def _embed_batch(self, batch: list[PendingText], worker: _Worker) -> None:
        try:
            with worker.embedding:
                self._loaded = True
                encoded = self._encode([pending.text for pending in batch])
            if len(encoded) != len(batch):
                raise Unavailable(f"{self.name} answered {len(encoded)} vectors for {len(batch)} texts")
        except ValidationError as fault:
            # One caller's text is at fault: it must not take down what other callers asked for.
            if len(batch) > 1:
                for pending in batch:
                    self._embed_batch([pending], worker)
            else:
                self._fail(batch, fault)
        except BaseException as error:  # every waiter must hear of it, or it would wait for ever
            self._fail(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._keep(batch, encoded)

    def _without_tokens(self, texts: list[str]) -> list[Encoding]:
        vectors = self.embedder.embed(texts)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise Unavailable(f"{self.name} answered shape {list(vectors.shape)} for {len(texts)} texts")
        # Own copies: a view would keep the whole batch alive.
        return [Encoding(np.array(row, np.float32), *_NO_TOKENS) for row in vectors]

    def _keep(self, batch: list[PendingText], encoded: list[Encoding]) -> None:
        with self._lock:
            for pending, each in zip(batch, encoded, strict=True):
                self._waiting.pop(pending.key)
                for array in each:
                    array.setflags(write=False)  # it is shared with whoever asks again
                if pending.lane is not Lane.BACKGROUND:  # which may have been erased since, and is asked for once
                    self._drop(pending.key)
                    self._cached[pending.key] = each
                    self._cached_bytes += each.tokens.nbytes
            while self._cached and (len(self._cached) > self._entries or self._cached_bytes > self._token_bytes):
                self._drop(next(iter(self._cached)))
        for pending, each in zip(batch, encoded, strict=True):
            pending.future.set_result(each)

    def _drop(self, key: bytes) -> None:
        if (dropped := self._cached.pop(key, None)) is not None:
            self._cached_bytes -= dropped.tokens.nbytes

    def _fail(self, batch: list[PendingText], error: BaseException) -> None:
        with self._lock:
            for pending in batch:
                self._waiting.pop(pending.key)
        fault = error if isinstance(error, Fault) else Unavailable(f"{self.name} failed: {type(error).__name__}")
        fault.__cause__ = None if fault is error else error
        for pending in batch:
            pending.future.set_exception(fault)

    def _rows(self, encoded: Sequence[Encoding]) -> Vectors:
        if not encoded:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([each.vector for each in encoded])


def _key(text: str, tenant: str) -> bytes:
    # A digest, so that the cache's memory does not depend on how long texts are and holds none of them.
    own = tenant.encode("utf-8", "surrogatepass")
    return blake2b(b"%d:%b" % (len(own), own) + text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
