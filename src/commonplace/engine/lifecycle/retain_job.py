"""The job `retain`: what was promised to be gone is erased when it is due, also where it only waits for approval."""

from __future__ import annotations

from dataclasses import dataclass

from commonplace.engine.core import Core
from commonplace.engine.lifecycle.run_log import RunLog
from commonplace.engine.memory import expire
from commonplace.wire.record import Principal


@dataclass(slots=True)
class RetainJob:
    core: Core
    every: int = 60_000
    name: str = "retain"

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        """`late_ms` is how long the first of them had been due: the deadline is met within a minute of a running
        server; `overdue` is what is due and still there."""
        due = await expire.overdue(self.core, who)
        late = 0 if due.since is None else self.core.clock() - due.since
        if dry_run:
            return {"erased": 0, "overdue": len(due), "late_ms": late}
        erased = await expire.sweep(self.core, who) if due or due.needs_noting else 0
        left = len(await expire.overdue(self.core, who)) if due else 0
        return {"erased": erased, "overdue": left, "late_ms": late}
