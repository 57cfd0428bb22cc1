"""What an operator sees: JSON lines on stderr, Prometheus metrics and OpenTelemetry spans; never what was said.

No metric's label ever names a tenant, an agent, a user or a memory. Every backend is loaded when it is first used.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from commonplace.__about__ import install_command
from commonplace.serve.latency_window import LatencyWindow
from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.engine import Engine

# logs

access = logging.getLogger("commonplace.access")
log = logging.getLogger("commonplace.serve")


class JsonLineFormatter(logging.Formatter):
    """An exception is logged as its type and where it came from: its text may quote a memory."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": moment.replace("+00:00", "Z"), "level": record.levelname.lower()}
        fields = getattr(record, "fields", None)
        if fields is not None:
            line |= fields
        else:
            line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            line |= error_location(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def error_location(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    lines = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"exception": type(error).__name__, "where": lines}


def log_bug(operation: str, error: Exception, **fields: str) -> None:
    """An exception that is our own fault: its kind and its place, never its text, which may quote a memory."""
    log.error("bug", extra={"fields": {"event": "bug", **fields, "operation": operation, **error_location(error)}})


def configure_logs(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLineFormatter())
    for name in ("commonplace", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel("WARNING")  # its start and stop are told in our own words


# metrics

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self, engine: Engine) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._engine = engine
        self._window = LatencyWindow()
        self.registry = CollectorRegistry()
        store = engine.store_name
        to: Any = {"registry": self.registry}
        requests = Counter("commonplace_requests", "Requests answered.", ("operation", "store", "status"), **to)
        described, labels = "From the first byte to the last.", ("operation", "store")
        seconds = Histogram("commonplace_request_seconds", described, labels, buckets=_BUCKETS, **to)
        self.in_flight = Gauge("commonplace_requests_in_flight", "Requests being answered.", **to)
        self._queue = Gauge("commonplace_queue_depth", "What waits.", ("queue",), **to)
        self._index = Gauge("commonplace_index_bytes", "Search index on disk.", ("store",), **to)
        self._size = Gauge("commonplace_store_bytes", "Everything on disk.", ("store",), **to)
        self._store = store
        # A series is looked up once: the client's own look-up takes a lock and makes a tuple at every request.
        self._counter = cache(lambda operation, status: requests.labels(operation, store, str(status)))
        self._timer = cache(lambda operation: seconds.labels(operation, store))

    def answered(self, operation: str, status: int, seconds: float) -> None:
        self._counter(operation, status).inc()
        self._timer(operation).observe(seconds)
        self._window.add(operation, seconds)

    def latencies(self) -> Mapping[str, Sequence[tuple[int, int, float, float]]]:
        """Of the last hour, minute by minute."""
        return self._window.series()

    async def page(self) -> bytes:
        from prometheus_client import generate_latest

        for queue, depth in self._engine.queues().items():
            self._queue.labels(queue).set(depth)
        if (sizes := await self._engine.sizes()) is not None:
            self._size.labels(self._store).set(sizes["size_bytes"])
            self._index.labels(self._store).set(sizes["index"]["bytes"])
        text: bytes = generate_latest(self.registry)
        return text


# traces: one span a request, with its name and its status

#: (operation, request headers) → a context in which the request is answered; what it yields takes the status.
Tracer = Callable[[str, Mapping[str, str]], AbstractContextManager[Callable[[int], None]]]


def no_tracing(operation: str, headers: Mapping[str, str]) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda status: None)


def open_tracer(kind: str, store: str) -> tuple[Tracer, Callable[[], None]]:
    """The tracer for a setting, and what to call at the end so that nothing is left unsent."""
    if not kind:
        return no_tracing, lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ValidationError(f"traces need the otel extra: {install_command('otel')}", field="traces") from None
    provider = TracerProvider(resource=Resource.create({"service.name": "commonplace"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # its address: OTEL_EXPORTER_OTLP_ENDPOINT
    return spans(provider, store), provider.shutdown


def spans(provider: Any, store: str) -> Tracer:
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind, Status, StatusCode

    maker = provider.get_tracer("commonplace")

    @contextmanager
    def span(operation: str, headers: Mapping[str, str]) -> Iterator[Callable[[int], None]]:
        context = extract(dict(headers))
        with maker.start_as_current_span(
            operation, context=context, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as current:
            current.set_attribute("commonplace.store", store)

            def ended(status: int) -> None:
                current.set_attribute("http.response.status_code", status)
                if status >= 500:
                    current.set_status(Status(StatusCode.ERROR))

            yield ended

    return span
