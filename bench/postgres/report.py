"""What was measured, and what follows from it, as the tables of docs/scaling.md. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.postgres.server_processes import SHARE

#: Of the question that the page answers: a thousand agents of a million memories each.
_AGENTS, _EACH = 1000, 1_000_000
_CORES = 16
_NAMES = {"1": "one agent", "100": "100 agents"}


def tables(found: dict[str, Any]) -> str:
    said = f"*Measured* with `{found['command']}` on {found['machine']}:"
    return "\n\n".join([said, _stores(found), _servers(found), _limited(found), extrapolated(found)])


def _stores(found: dict[str, Any]) -> str:
    rows: list[tuple[str, Callable[[dict[str, float]], str]]] = [
        ("question, median and 95 %", lambda f: f"{f['p50_ms']:g} ms, {f['p95_ms']:g} ms"),
        ("processor time of a question", lambda f: f"{f['processor_ms']:g} ms"),
        ("recall@10 of the true nearest", lambda f: f"{f['recall@10']:.3f}"),
        ("a write, in batches of 500; its processor time",
         lambda f: f"{f['write_ms']:g} ms; {f['write_processor_ms']:g} ms"),
        ("on disk, a memory", lambda f: f"{f['bytes'] / 1000:.1f} kB"),
    ]  # fmt: skip
    lines = [f"| {found['memories']:,} memories | embedded | PostgreSQL |", "|---|---|---|"]
    for agents, by_store in found["stores"].items():
        for name, shown in rows:
            cells = [shown(by_store[kind]) for kind in ("embedded", "postgresql")]
            lines.append(f"| {_NAMES[agents]}: {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _servers(found: dict[str, Any]) -> str:
    by_count = found["servers"]
    lines = [f"| server processes on one database (100 agents) | {' | '.join(by_count)} |"]
    lines.append("|---|" + "---|" * len(by_count))
    for verb in ("recall", "remember"):
        for name, shown in (
            (f"`{verb}` a second, all together", "{per_second:g}"),
            (f"`{verb}`, median and 95 %", "{p50_ms:g} ms, {p95_ms:g} ms"),
            (f"`{verb}`: processor time of its server and of the database", "{server_ms:g} ms, {database_ms:g} ms"),
            (f"`{verb}`: how busy the machine's cores were meanwhile", "{busy:.0%}"),
        ):
            cells = [shown.format(**each[verb]) for each in by_count.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    kept = [f"{each['updates']['kept']} of {each['updates']['acknowledged']}" for each in by_count.values()]
    lines.append(f"| updates of one memory by eight clients: kept of acknowledged | {' | '.join(kept)} |")
    return "\n".join(lines)


def _limited(found: dict[str, Any]) -> str:
    if "limited" not in found:
        return f"Servers with a part of a core each could not be measured there: {found['not_limited']}."
    by_count = found["limited"]
    lines = [f"| servers that may use {SHARE:.0%} of a core each | {' | '.join(by_count)} |"]
    lines.append("|---|" + "---|" * len(by_count))
    for name, shown in (
        ("`recall` a second, all together", "{per_second:g}"),
        ("`recall`, median and 95 %", "{p50_ms:g} ms, {p95_ms:g} ms"),
        ("periods in which a server had used up its part", "{held_back:.0%}"),
        ("how busy the machine's cores were meanwhile", "{busy:.0%}"),
    ):
        lines.append(f"| {name} | {' | '.join(shown.format(**each) for each in by_count.values())} |")
    return "\n".join(lines)


def extrapolated(found: dict[str, Any]) -> str:
    """Worked out from the figures above, each as if it grew with the number of memories, or not at all."""
    one, many = (found["stores"][agents]["postgresql"] for agents in ("1", "100"))
    servers = found["servers"]["1"]
    memories = _AGENTS * _EACH
    per_core = 1000 / (servers["recall"]["server_ms"] + servers["recall"]["database_ms"])
    rows = [
        ("disk", f"{one['bytes'] * memories / 1e12:.1f} TB", f"{one['bytes'] / 1000:.1f} kB a memory, with its graph"),
        ("writing it, one after the other", f"{one['write_ms'] * memories / 86_400e3:,.0f} days",
         f"{one['write_ms']:g} ms a memory of a large agent; tenants write side by side"),
        ("writing it, in processor time", f"{one['write_processor_ms'] * memories / 86_400e3 / _CORES:,.1f} days of "
         f"{_CORES} cores", f"{one['write_processor_ms']:g} ms a memory"),
        (f"recalls a second on {_CORES} cores, agents of 1,000", f"{per_core * _CORES:,.0f}",
         f"{1000 / per_core:.1f} ms of processor time for each, servers and database together"),
        ("a question of one agent, by words", f"{one['processor_ms'] * _EACH / found['memories']:,.0f} ms at worst",
         f"{one['processor_ms']:g} ms at {found['memories']:,}; common words are what grows, a graph hardly does"),
        ("a question of an agent of 1,000", f"{many['p50_ms']:g} ms", "other agents cost it nothing"),
    ]  # fmt: skip
    lines = ["*Extrapolated* to a thousand agents of a million memories each:", ""]
    lines += ["| | extrapolated | from |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {value} | {why} |" for what, value, why in rows)])
