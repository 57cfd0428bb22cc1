"""The job `audit`: what the ledger has gained is appended to its export, with a signed head over all of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commonplace.engine.core import Core
from commonplace.engine.ledger.export import export, file_name
from commonplace.engine.ledger.tree_heads import TreeHeads
from commonplace.engine.lifecycle.run_log import RunLog
from commonplace.wire.record import Principal

AUDIT_JOB = "audit"


@dataclass(slots=True)
class AuditJob:
    core: Core
    heads: TreeHeads
    folder: Path
    every: int
    name: str = AUDIT_JOB

    async def run(
        self, who: Principal, *, dry_run: bool, asked: bool = True, log: RunLog | None = None
    ) -> dict[str, int]:
        if dry_run:
            return {"exported": 0}
        return {"exported": await export(self.core, self.heads, who.tenant, self.folder / file_name(who.tenant))}
