"""What the server counts, for Prometheus. No label ever names a tenant, an agent, a user or a memory."""

from __future__ import annotations

from typing import Any

from commonplace.engine import Engine

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self, engine: Engine) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._engine = engine
        self.registry = CollectorRegistry()
        store = engine.store_name
        self._requests = Counter(
            "commonplace_requests", "Requests answered.", ("operation", "store", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "commonplace_request_seconds", "From the first byte to the last.", ("operation", "store"),
            buckets=_BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge("commonplace_requests_in_flight", "Requests being answered.", registry=self.registry)
        self._queue = Gauge("commonplace_queue_depth", "What waits.", ("queue",), registry=self.registry)
        self._index = Gauge("commonplace_index_bytes", "Search index on disk.", ("store",), registry=self.registry)
        self._size = Gauge("commonplace_store_bytes", "Everything on disk.", ("store",), registry=self.registry)
        self._store = store
        self._counters: dict[tuple[str, int], Any] = {}
        self._timers: dict[str, Any] = {}

    def answered(self, operation: str, status: int, seconds: float) -> None:
        counter = self._counters.get((operation, status))
        if counter is None:
            counter = self._counters[operation, status] = self._requests.labels(operation, self._store, str(status))
        timer = self._timers.get(operation)
        if timer is None:
            timer = self._timers[operation] = self._seconds.labels(operation, self._store)
        counter.inc()
        timer.observe(seconds)

    async def page(self) -> bytes:
        from prometheus_client import generate_latest

        for queue, depth in self._engine.queues().items():
            self._queue.labels(queue).set(depth)
        if (sizes := await self._engine.sizes()) is not None:
            self._size.labels(self._store).set(sizes["size_bytes"])
            self._index.labels(self._store).set(sizes["index"]["bytes"])
        text: bytes = generate_latest(self.registry)
        return text
