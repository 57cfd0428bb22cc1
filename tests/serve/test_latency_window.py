"""The last hour, minute by minute."""

from __future__ import annotations

from commonplace.serve.latency_window import MINUTES, LatencyWindow


def test_each_minute_has_its_count_its_middle_and_its_slow_end() -> None:
    now = [6_000_000.0]
    window = LatencyWindow(lambda: now[0])
    for i in range(100):
        window.add("recall", i / 1000)
    now[0] += 60
    window.add("recall", 0.5)
    window.add("list", 0.1)
    series = window.series()
    assert list(series) == ["list", "recall"]
    assert series["recall"] == [(6_000_000_000, 100, 50.0, 95.0), (6_000_060_000, 1, 500.0, 500.0)]
    now[0] += 60 * (MINUTES - 1)
    assert [point[0] for point in window.series()["recall"]] == [6_000_060_000]
    now[0] += 60
    assert window.series() == {}


def test_a_busy_minute_keeps_a_sample() -> None:
    window = LatencyWindow(lambda: 0.0)
    for _ in range(10_000):
        window.add("recall", 0.001)
    assert window.series()["recall"] == [(0, 10_000, 1.0, 1.0)]
