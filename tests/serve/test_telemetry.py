"""Traces: one span a request, joined to the caller's, without anything that was said."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from commonplace.serve import telemetry
from commonplace.wire.errors import ValidationError


def test_without_a_setting_nothing_is_loaded() -> None:
    tracer, end = telemetry.open_tracer("", "sqlite")
    assert tracer is telemetry.no_tracing
    with tracer("recall", {}) as ended:
        ended(200)
    end()


def test_without_the_extra_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ValidationError, match=r"commonplace-memory\[otel\]"):
        telemetry.open_tracer("otlp", "sqlite")


def test_a_span_has_a_name_a_status_and_its_parent() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept = memory.InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    span = telemetry.spans(provider, "sqlite")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with span("recall", {"traceparent": parent}) as ended:
        ended(503)
    (made,) = kept.get_finished_spans()
    assert made.name == "recall"
    assert dict(made.attributes) == {"commonplace.store": "sqlite", "http.response.status_code": 503}
    assert f"{made.context.trace_id:032x}" == parent.split("-")[1]
    provider.shutdown()
