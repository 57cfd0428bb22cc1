"""Looking after a store: status, doctor, backup, compact, reindex."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from commonplace.embedders.base import Embedder
from commonplace.embedders.cache import CachedEmbedder
from commonplace.engine.core import BACKUP, IDEMPOTENCY, RANK, REVIEW, SYSTEM, Core, require_operator
from commonplace.engine.governance.decisions import as_of_now, may_see
from commonplace.engine.governance.review_events import CURSOR, WEBHOOK
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.ledger.ledger import Ledger
from commonplace.engine.memory import expire
from commonplace.engine.memory.passages import passages
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.runs.runs import Runs
from commonplace.engine.upkeep import clock_leap
from commonplace.stores.base import FileUpkeep, Finding, Progress, Record, Reindexable, Transaction
from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS

KEEP_IDEMPOTENCY_MS = 7 * DAY_MS
_AT_ONCE = 64  # memories embedded and stored together while reindexing


class Upkeep:
    def __init__(self, core: Core, log: RecallLog, ledger: Ledger, runs: Runs, reviews: Reviews) -> None:
        self._core = core
        self._log = log
        self._ledger = ledger
        self._runs = runs
        self._reviews = reviews

    def _files(self, who: Principal) -> FileUpkeep:
        require_operator(who, "maintain the store")
        if not isinstance(self._core.primary, FileUpkeep):
            raise Unavailable(f"the store {self._core.primary.name} has no files to maintain")
        return self._core.primary

    async def status(self, who: Principal) -> dict[str, Any]:
        core = self._core
        waiting = len(self._log.unwritten(who.tenant))  # counted and not written: a status needs no write lock
        usable = {a: n for a, n in (await core.primary.agents(who.tenant)).items() if who.may_use(a)}
        agents = {a: n for a, n in usable.items() if core.redactor.is_name(a)}
        hidden = {"hidden_agents": len(usable) - len(agents)} if len(agents) < len(usable) else {}
        info = await core.primary.embedder()
        staged = await core.primary.records(who.tenant, REVIEW)
        found: dict[str, Any] = {
            "agents": agents,
            "memories": sum(agents.values()),
            "embedder": (
                {"name": info.name, "dimension": info.dimension, "generation": info.generation} if info else None
            ),
            "without_vectors": 0,
            "note": core.note,
            "pending_reviews": sum(
                as_of_now(core, r.value, core.clock())["status"] == "pending" and may_see(who, r.value) for r in staged
            ),
            "audit_entries": (await core.primary.audit_head(who.tenant))[0] + waiting,
            "redaction": {"mode": core.redactor.mode, "registered": len(core.redactor.secrets), **hidden},
        }
        if RANK[who.role] >= RANK["reviewer"] and (told := await core.primary.record(who.tenant, WEBHOOK, CURSOR)):
            found["webhook"] = {n: v for n, v in told.value.items() if n in ("error", "attempts", "failing_since")}
        if isinstance(core.primary, FileUpkeep):
            found |= await core.primary.sizes()
        if info is not None and isinstance(core.primary, Reindexable):
            lacking = found["without_vectors"] = await core.primary.count_without_vectors(info.generation)
            if lacking and found["note"] is None:
                waits = (
                    "1 memory waits for its vectors and is"
                    if lacking == 1
                    else (f"{lacking} memories wait for their vectors and are")
                )
                found["note"] = (
                    f"{waits} found by keywords until then; a running server makes them, or `commonplace reindex`"
                )
        return found

    async def doctor(self, who: Principal, repair: bool = True, progress: Progress | None = None) -> list[Finding]:
        """Check everything; what can be derived again is repaired."""
        await self._log.flush()
        findings = await self._files(who).examine(repair, progress)
        try:
            tenants = await self._core.primary.tenants()
        except Fault as fault:
            return [*findings, Finding("tenants", False, f"could not be checked: {fault.message}")]
        for tenant in tenants:
            findings.append(await self._examine_ledger(tenant))
            try:
                findings.append(await clock_leap.examine(self._core, replace(who, tenant=tenant), repair))
            except Fault as fault:
                findings.append(Finding(f"time of {tenant}", False, f"could not be checked: {fault.message}"))
        return findings

    async def _examine_ledger(self, tenant: str) -> Finding:
        check = f"audit of {tenant}"
        try:
            verified = await self._ledger.verify_tenant(tenant)
        except Fault as fault:
            return Finding(check, False, f"could not be checked: {fault.message}")
        entry = "" if verified.first_bad is None else f"entry {verified.first_bad}: "
        detail = "ok" if verified.problem is None else f"{entry}{verified.problem}"
        return Finding(check, verified.problem is None, detail)

    async def backup(self, who: Principal, target: str | Path, progress: Progress | None = None) -> dict[str, Any]:
        """A consistent copy of the store in one file, while others read and write."""
        await self._log.flush()
        store = self._files(who)
        path = Path(target).expanduser().absolute()
        if path.is_dir():
            example = path / "commonplace-backup.db"
            raise ValidationError(f"{path} is a folder; name the file to write, such as {example}")
        if not path.parent.exists():  # a copy in a folder that a slip of the finger made would not be found again
            raise ValidationError(f"there is no folder {path.parent}; make it first: mkdir -p {path.parent}")

        def note(tx: Transaction) -> Record | None:
            earlier = tx.record(BACKUP, str(path))
            tx.put_record(Record(BACKUP, str(path), {"path": str(path), "at": tx.now}))
            return earlier

        def undo(tx: Transaction) -> None:
            if earlier is not None:
                tx.put_record(earlier)
            else:
                tx.drop_record(BACKUP, str(path))

        # So that an erasure can say where its content lives on: before there is any, and again when it is there,
        # because a compaction meanwhile drops the notes of files it does not find.
        earlier = await self._core.transact(SYSTEM, note)
        try:
            size = await store.backup(path, progress)
        except BaseException:
            await self._core.transact(SYSTEM, undo)
            raise
        await self._core.transact(SYSTEM, note)
        return {"path": str(path), "bytes": size}

    async def compact(self, who: Principal, progress: Progress | None = None) -> dict[str, Any]:
        """Give back unused space; afterwards no erased byte is left in the files."""
        await self._log.flush()
        store = self._files(who)
        before = (await store.sizes())["size_bytes"]
        for tenant in await self._core.primary.tenants():
            await self._runs.sweep(tenant)  # so that what idle runs noted is gone from the files, too
            await self._drop_old_keys(tenant)
            await self._reviews.sweep(replace(who, tenant=tenant))
            await expire.sweep(self._core, replace(who, tenant=tenant))
        for record in await self._core.primary.records(SYSTEM, BACKUP):
            if not os.path.exists(record.value["path"]):
                await self._core.transact(SYSTEM, partial(_drop, kind=BACKUP, keys=[record.key]))
        purged = await store.compact(progress)
        return {"before_bytes": before, "after_bytes": (await store.sizes())["size_bytes"], "erased_purged": purged}

    async def _drop_old_keys(self, tenant: str) -> None:
        old = self._core.clock() - KEEP_IDEMPOTENCY_MS
        kept = await self._core.primary.records(tenant, IDEMPOTENCY)
        if keys := [r.key for r in kept if r.value.get("at", 0) < old]:
            await self._core.transact(tenant, partial(_drop, kind=IDEMPOTENCY, keys=keys))

    async def reindex(self, who: Principal, embedder: Embedder, progress: Progress | None = None) -> dict[str, Any]:
        """Embed everything anew beside what is there, then switch. Stopped halfway, it goes on from where it was."""
        require_operator(who, "maintain the store")
        store = self._core.primary
        if not isinstance(store, Reindexable):
            raise Unavailable(f"the store {store.name} cannot keep the vectors of another embedder beside its own")
        maker = CachedEmbedder(embedder, entries=0)
        try:
            await maker.embed_async(["a first text, so that a missing model is found before anything is begun"])
            generation, resumed = await store.begin_generation(embedder.name, embedder.dimension)
            total, done = await store.count_without_vectors(generation), 0
            while not await store.switch_generation(generation):
                after = 0
                while batch := await store.without_vectors(generation, after, _AT_ONCE):
                    after = batch[-1][0]
                    parts = [passages(memory) for _, memory in batch]
                    vectors = await maker.embed_async([text for texts in parts for text in texts])
                    filled, start = [], 0
                    for (number, _), texts in zip(batch, parts, strict=True):
                        filled.append((number, vectors[start : start + len(texts)]))
                        start += len(texts)
                    await store.fill_vectors(generation, filled)
                    done += len(batch)
                    if progress is not None:
                        progress(done, max(total, done))
        finally:
            maker.close()
        await self._core.use_embedder(embedder)
        if isinstance(store, FileUpkeep):
            await store.warm()
        return {"embedder": embedder.name, "reindexed": done, "resumed": resumed, "generation": generation}


def _drop(tx: Transaction, *, kind: str, keys: list[str]) -> None:
    for key in keys:
        tx.drop_record(kind, key)
