"""OpenTelemetry traces, when they are asked for: one span a request, its name, its status and nothing it said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from commonplace.wire.errors import ValidationError

#: (operation, request headers) → a context in which the request is answered; what it yields takes the status.
Tracer = Callable[[str, Mapping[str, str]], AbstractContextManager[Callable[[int], None]]]


def silent(operation: str, headers: Mapping[str, str]) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda status: None)


def tracer(kind: str, store: str) -> tuple[Tracer, Callable[[], None]]:
    """The tracer for a setting, and what to call at the end so that nothing is left unsent."""
    if not kind:
        return silent, lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ValidationError("traces need the otel extra: pip install 'commonplace[otel]'", field="traces") from None
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
