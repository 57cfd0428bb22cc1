"""What a memory takes: on disk, and of the memory of a process that searches it."""

from __future__ import annotations

from bench.speed import stores
from bench.speed.plan import Plan
from bench.speed.report import Report
from bench.speed.start import fresh

#: Of disk for each memory with its token vectors.
MOST_BYTES = 6500


def run(plan: Plan) -> Report:
    report = Report("Disk and memory, one process that recalls from one agent")
    kinds = {"Rss": "resident", "Pss": "proportional", "Anonymous": "anonymous"}
    for size in plan.sizes:
        store = plan.store(size)
        rows = size + (stores.SMALL_SIZE if size >= stores.WITH_SMALL else 0)
        disk = stores.size_on_disk(store)
        used = fresh(plan, store, "memory")["memory"]
        name = f"{size:,} memories"
        report.add(
            f"{name}: disk per memory", sum(disk.values()) / rows, "B", at_most=MOST_BYTES if size >= 10_000 else None
        )
        report.add(f"{name}: of it, segments", disk["segments"] / rows, "B")
        for kind, words in kinds.items():
            if kind in used:
                report.add(f"{name}: {words} memory", used[kind] / 1e6, "MB")
        report.series[str(size)] = {"disk": disk, "memory": used, "rows": rows}
    report.note("resident memory counts mapped segment files, which the system takes back when others need it;")
    report.note("anonymous memory is what the process cannot do without")
    return report
