"""*Health*: the store, its index, what waits, how long things take, and what fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.__about__ import __version__
from commonplace.ui.page import Answer, LatencyPoint, PageRequest, PageRoute, TemplatePage

_WIDTH, _HEIGHT, _MINUTES = 120, 24, 60


async def show_health(call: PageRequest) -> Answer:
    engine = call.engine
    found = await engine.upkeep.status(call.who, count_reviews=False)
    latencies = call.latencies()
    now = engine.clock()
    lines: list[dict[str, Any]] = [
        {"operation": name, "requests": sum(point[1] for point in points), "median": points[-1][2],
         "slow": max(point[3] for point in points), "line": sparkline(points, now)}
        for name, points in latencies.items()
        if name != "page_static"
    ]  # fmt: skip
    lines.sort(key=lambda line: (-line["requests"], line["operation"]))
    agents = sorted(found["agents"].items(), key=lambda each: (-each[1], each[0]))
    failed = [job for job in await engine.lifecycle.status(call.who) if job["last_run"] and job["last_run"]["error"]]
    values = {
        "version": __version__, "store": engine.store_name, "capabilities": sorted(engine.capabilities),
        "health": await engine.health(call.who), "status": found,
        "agents": agents[:20], "more_agents": max(len(agents) - 20, 0),
        "queues": engine.queues(), "lines": lines, "failed_jobs": failed,
        "operator": call.who.is_operator,
    }  # fmt: skip
    return TemplatePage("health.html", values)


def sparkline(points: Sequence[LatencyPoint], now: int) -> str:
    """The points of an SVG polyline: the 95th percentile of each minute of the last hour."""
    most = max(point[3] for point in points) or 1.0
    first = now // 60_000 - _MINUTES + 1
    places: list[Any] = []
    for at, _, _, slow in points:
        x = (at // 60_000 - first) * _WIDTH / (_MINUTES - 1)
        places.append(f"{x:.1f},{_HEIGHT - 2 - (slow / most) * (_HEIGHT - 4):.1f}")
    if len(places) == 1:  # a line needs two ends
        x, _, y = places[0].partition(",")
        places.append(f"{float(x) + 2:.1f},{y}")
    return " ".join(places)


ROUTES = (PageRoute("GET", "health", show_health, "page_health"),)
