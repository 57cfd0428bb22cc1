"""The job `audit`: every tenant's ledger in a file of its own, in the folder the settings name."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tampering import rewrite_ledger

from commonplace.config import AuditConfig
from commonplace.engine.core import Settings
from commonplace.engine.engine import Engine
from commonplace.engine.types import Draft
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.record import Principal


def test_every_tenants_ledger_is_exported_when_it_is_due(tmp_path: Path, clock: FakeClock) -> None:
    async def scenario() -> None:
        settings = Settings(folder=tmp_path, audit=AuditConfig("kept/elsewhere", 30))
        store = InMemory(clock)
        engine = await Engine.open(store, clock=clock, settings=settings)
        for tenant in ("local", "acme"):
            await engine.remember(Principal(tenant=tenant), Draft("agent", "semantic", "x"))
        assert (await engine.lifecycle.run(WHO, "audit", dry_run=True)).counts == {"exported": 0}
        folder = tmp_path / "kept" / "elsewhere"
        assert not folder.exists()
        reports = [report for report in await engine.lifecycle.tick() if report.job == "audit"]
        assert [(report.counts, report.error) for report in reports] == [({"exported": 1}, None)] * 2
        assert sorted(path.name for path in folder.iterdir()) == ["acme.jsonl", "local.jsonl"]
        clock.advance(29 * 60_000)
        assert "audit" not in [report.job for report in await engine.lifecycle.tick()]
        clock.advance(60_000)
        assert "audit" in [report.job for report in await engine.lifecycle.tick()]
        assert "audit_export" not in await engine.upkeep.status(WHO)
        rewrite_ledger(store, "local", ())  # as if someone had cut it off
        assert "was cut off" in str((await engine.lifecycle.run(WHO, "audit")).error)
        assert "was cut off" in (await engine.upkeep.status(WHO))["audit_export"]["error"]
        shown = await engine.upkeep.status(Principal("alice", "local", role="reader"))
        assert shown["audit_export"]["error"] == "it failed", "which names a file of the operator's"
        await engine.close()

    asyncio.run(scenario())


def test_without_a_folder_there_is_no_such_job(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock)
        assert "audit" not in [job["job"] for job in await engine.lifecycle.status(WHO)]
        await engine.close()

    asyncio.run(scenario())
