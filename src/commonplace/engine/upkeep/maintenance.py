"""Looking after a store: status, doctor, backup, compact, reindex."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from commonplace.embedders.base import Embedder
from commonplace.embedders.cache import CachedEmbedder
from commonplace.engine.core import Core
from commonplace.engine.governance import reviews
from commonplace.engine.ledger.audit import Verifier
from commonplace.engine.memory import expire
from commonplace.engine.memory.forget import BACKUP, REVIEW, SYSTEM
from commonplace.engine.memory.passages import passages
from commonplace.engine.memory.write import IDEMPOTENCY
from commonplace.stores.base import Finding, Maintained, Progress, Record, Transaction
from commonplace.wire.errors import Forbidden, Unavailable, ValidationError
from commonplace.wire.record import LOCAL_TENANT, Principal

KEEP_IDEMPOTENCY_MS = 7 * 86_400_000
_AT_ONCE = 64  # memories embedded and stored together while reindexing
_ENTRIES = 1000


def _maintained(core: Core, who: Principal) -> Maintained:
    if not who.operates:
        raise Forbidden(
            f"{who.name} may not look after the store; only an admin of the tenant {LOCAL_TENANT} who may use every "
            "agent may"
        )
    if not isinstance(core.primary, Maintained):
        raise Unavailable(f"the store {core.primary.name} looks after itself")
    return core.primary


async def status(core: Core, who: Principal) -> dict[str, Any]:
    agents = {a: n for a, n in (await core.primary.agents(who.tenant)).items() if who.may_use(a)}
    info = await core.primary.embedder()
    staged = await core.primary.records(who.tenant, REVIEW)
    head = await core.transact(who.tenant, lambda tx: tx.audit_head())
    found: dict[str, Any] = {
        "agents": agents,
        "memories": sum(agents.values()),
        "embedder": {"name": info.name, "dimension": info.dimension, "generation": info.generation} if info else None,
        "without_vectors": 0,
        "note": core.note,
        "pending_reviews": sum(r.value["status"] == "pending" and reviews.may_see(who, r.value) for r in staged),
        "audit_entries": head[0],
        "redaction": {"mode": core.redactor.mode, "registered": len(core.redactor.secrets)},
    }
    if isinstance(core.primary, Maintained):
        found |= await core.primary.sizes()
        if info is not None:
            found["without_vectors"] = await core.primary.count_without_vectors(info.generation)
            if found["without_vectors"] and found["note"] is None:
                found["note"] = (
                    f"{found['without_vectors']} memories are found by keywords only; `commonplace reindex` embeds them"
                )
    return found


async def verify_audit(core: Core, tenant: str, progress: Progress | None = None) -> Verifier:
    """Walk the whole chain, and check that it ends where the tenant's own count says it does."""
    verifier = Verifier()
    last, head = await core.transact(tenant, lambda tx: tx.audit_head())
    while verifier.first_bad is None and verifier.entries < last:
        batch = await core.primary.audit(tenant, after=verifier.entries, limit=_ENTRIES)
        if not batch:
            break
        verifier.feed(batch)
        if progress is not None:
            progress(verifier.entries, last)
    if verifier.first_bad is None and (verifier.entries < last or (verifier.entries == last and verifier.head != head)):
        verifier.first_bad = verifier.entries + 1
        verifier.problem = (
            f"the chain should end with entry {last}, but entries are missing from {verifier.first_bad} on"
        )
    return verifier


async def doctor(core: Core, who: Principal, repair: bool, progress: Progress | None = None) -> list[Finding]:
    store = _maintained(core, who)
    findings = await store.examine(repair, progress)
    for tenant in await core.primary.tenants():
        verified = await verify_audit(core, tenant)
        bad = verified.first_bad
        detail = "ok" if bad is None else f"entry {bad}: {verified.problem}"
        findings.append(Finding(f"audit of {tenant}", bad is None, detail))
    return findings


async def backup(core: Core, who: Principal, target: str | Path, progress: Progress | None = None) -> dict[str, Any]:
    store = _maintained(core, who)
    path = Path(target).expanduser().absolute()
    if path.is_dir():
        raise ValidationError(f"{path} is a folder; name the file to write, such as {path / 'commonplace-backup.db'}")

    def note(tx: Transaction) -> Record | None:
        earlier = tx.record(BACKUP, str(path))
        tx.put_record(Record(BACKUP, str(path), {"path": str(path), "at": tx.now}))
        return earlier

    # So that an erasure can say where its content lives on: before there is any, and again when it is there, because
    # a compaction meanwhile drops the notes of files it does not find.
    earlier = await core.transact(SYSTEM, note)
    try:
        size = await store.backup(path, progress)
    except BaseException:
        await core.transact(SYSTEM, lambda tx: tx.put_record(earlier) if earlier else tx.drop_record(BACKUP, str(path)))
        raise
    await core.transact(SYSTEM, note)
    return {"path": str(path), "bytes": size}


async def compact(core: Core, who: Principal, progress: Progress | None = None) -> dict[str, Any]:
    store = _maintained(core, who)
    before = (await store.sizes())["size_bytes"]
    for tenant in await core.primary.tenants():
        await _drop_old_keys(core, tenant)
        await expire.sweep(core, replace(who, tenant=tenant))
    for record in await core.primary.records(SYSTEM, BACKUP):
        if not os.path.exists(record.value["path"]):
            await core.transact(SYSTEM, lambda tx, key=record.key: tx.drop_record(BACKUP, key))  # type: ignore[misc]
    purged = await store.compact(progress)
    return {"before_bytes": before, "after_bytes": (await store.sizes())["size_bytes"], "erased_purged": purged}


async def _drop_old_keys(core: Core, tenant: str) -> None:
    old = core.clock() - KEEP_IDEMPOTENCY_MS
    keys = [r.key for r in await core.primary.records(tenant, IDEMPOTENCY) if r.value.get("at", 0) < old]

    def drop(tx: Transaction) -> None:
        for key in keys:
            tx.drop_record(IDEMPOTENCY, key)

    if keys:
        await core.transact(tenant, drop)


async def reindex(core: Core, who: Principal, embedder: Embedder, progress: Progress | None = None) -> dict[str, Any]:
    """Embed everything anew beside what is there, then switch. Stopped halfway, it goes on from where it was."""
    store = _maintained(core, who)
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
    await core.use_embedder(embedder)
    await store.warm()
    return {"embedder": embedder.name, "reindexed": done, "resumed": resumed, "generation": generation}
