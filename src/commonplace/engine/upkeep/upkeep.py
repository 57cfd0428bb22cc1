"""Looking after a store: status, doctor, backup, compact, reindex."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.embedders.base import Embedder, LocalModel
from commonplace.embedders.cache import CachedEmbedder
from commonplace.embedders.model_files import NAME as MINILM_NAME
from commonplace.embedders.packaged_files import ENCODER_NAME
from commonplace.engine.checks import RANK, require_operator
from commonplace.engine.core import BACKUP, REVIEW, SYSTEM, Core, memory_vectors
from commonplace.engine.governance.decisions import as_of_now, may_see
from commonplace.engine.governance.review_events import CURSOR, WEBHOOK
from commonplace.engine.governance.reviews import Reviews
from commonplace.engine.ledger.ledger import Ledger
from commonplace.engine.lifecycle.audit_job import AUDIT_JOB
from commonplace.engine.lifecycle.expire_job import drop_old_keys
from commonplace.engine.lifecycle.scheduler import LIFECYCLE
from commonplace.engine.memory import expire
from commonplace.engine.memory.passages import passages
from commonplace.engine.memory.read import count_shown
from commonplace.engine.outbox.shown_problems import shown_problem
from commonplace.engine.outbox.store_names import known_names
from commonplace.engine.outbox.stores import Stores
from commonplace.engine.recall.languages import language
from commonplace.engine.recall.recall_log import RecallLog
from commonplace.engine.runs.runs import Runs
from commonplace.engine.upkeep import clock_leap
from commonplace.stores.base import EmbedderInfo, Reach, Record, Transaction
from commonplace.stores.optional import FileUpkeep, Finding, Progress, Reindexable, SecondVectors
from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.record import Principal

_ENGLISH = (ENCODER_NAME, MINILM_NAME)  # embedders that were trained on English
_LATEST = 200  # memories whose language is looked at
_FOREIGN_ENOUGH = 3  # of those, or questions since the start, in another language than English
_AT_ONCE = 64  # memories embedded and stored together while reindexing


class Upkeep:
    def __init__(
        self, core: Core, log: RecallLog, ledger: Ledger, runs: Runs, reviews: Reviews, stores: Stores
    ) -> None:
        self._core = core
        self._stores = stores
        self._log = log
        self._ledger = ledger
        self._runs = runs
        self._reviews = reviews

    def _files(self, who: Principal) -> FileUpkeep:
        require_operator(who, "maintain the store")
        if not isinstance(self._core.primary, FileUpkeep):
            raise Unavailable(f"the store {self._core.primary.name} has no files to maintain")
        return self._core.primary

    async def status(self, who: Principal, *, count_reviews: bool = True) -> dict[str, Any]:
        """What there is; of thousands of reviews that wait, counting takes longer than all the rest."""
        core = self._core
        waiting = len(self._log.unwritten(who.tenant))  # counted and not written: a status needs no write lock
        usable = {a: n for a, n in (await core.primary.agents(who.tenant)).items() if who.may_use(a)}
        agents = {a: n for a, n in usable.items() if core.redactor.is_name(a)}
        if await core.policies.limit_reading(who):
            agents = {a: await count_shown(core, who, Reach(who.tenant, (a,))) for a in agents}
        hidden = {"hidden_agents": len(usable) - len(agents)} if len(agents) < len(usable) else {}
        info = await core.primary.embedder()
        staged = await core.primary.records(who.tenant, REVIEW) if count_reviews else []
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
        if (owed := await self._log.unwritten_report(who.tenant)) is not None:
            found["unwritten_recalls"] = {**owed, "error": shown_problem(who, owed["error"])}
        exported = await core.primary.record(who.tenant, LIFECYCLE, AUDIT_JOB) if core.settings.audit.export else None
        if exported is not None and exported.value["error"]:
            found["audit_export"] = {"error": shown_problem(who, exported.value["error"]), "at": exported.value["at"]}
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
        found |= await self._second_status(found["note"])
        if core.outbox.replicas or await known_names(core.primary):  # something may wait for one that is left out
            if RANK[who.role] >= RANK["reviewer"]:
                found["stores"] = await self._stores.list(who)  # which also asks each how it is
            found["note"] = "; ".join(filter(None, (found["note"], *self._stores.failing(who)))) or None
        if suggestion := await self._suggest_languages(who, list(agents), info):
            found["suggestion"] = suggestion
        return found

    async def _suggest_languages(self, who: Principal, agents: list[str], info: EmbedderInfo | None) -> str | None:
        """What to do when the latest memories, or questions, are in languages that our embedder does not read."""
        second = self._core.second
        if second.store is None or second.info is not None or info is None or info.name not in _ENGLISH:
            return None
        latest = await self._core.primary.scan(Reach(who.tenant, tuple(agents)), limit=_LATEST)
        foreign = Counter(found for m in latest.memories if (found := language(m.content)) not in (None, "en"))
        if sum(foreign.values()) < _FOREIGN_ENOUGH and second.foreign_questions < _FOREIGN_ENOUGH:
            return None
        which = f" ({', '.join(name for name, _ in foreign.most_common(3) if name)})" if foreign else ""
        return (
            f"memories or questions are in other languages than English{which}: `commonplace model add multilingual` "
            "finds them across languages (45 MB to fetch, once)"
        )

    async def _second_status(self, note: str | None) -> dict[str, Any]:
        """What is said of the second embedder, where there is one: it waits for the first to be in order."""
        second = self._core.second
        if second.store is None or (info := await second.store.second_embedder()) is None:
            return {}
        lacking = await second.store.count_without_second()
        told: dict[str, Any] = {
            "second_embedder": {"name": info.name, "dimension": info.dimension, "ready": info.ready},
            "without_second_vectors": lacking,
        }
        if note is None and second.note:
            told["note"] = second.note
        elif note is None and not info.ready:
            told["note"] = "a second vector is being made for every memory; `commonplace model add` goes on with it"
        return told

    async def doctor(self, who: Principal, repair: bool = True, progress: Progress | None = None) -> list[Finding]:
        """Check everything; what can be derived again is repaired."""
        await self._log.flush()
        findings = await self._files(who).examine(repair, progress)
        findings.append(await self._examine_embedder())
        findings += await self._stores.examine()
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

    async def _examine_embedder(self) -> Finding:
        embedding = self._core.embedding
        if embedding is None:  # by choice, or because the one that made the vectors cannot be opened
            return Finding("embedder", self._core.embedder_info is None, self._core.note or "ok")
        made_by = embedding.embedder
        problems = await asyncio.to_thread(made_by.problems) if isinstance(made_by, LocalModel) else []
        return Finding("embedder", not problems, "; ".join(problems) or "ok")

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
            await drop_old_keys(self._core, tenant)
            await self._reviews.sweep(replace(who, tenant=tenant))
            await expire.sweep(self._core, replace(who, tenant=tenant))
        for record in await self._core.primary.records(SYSTEM, BACKUP):
            if not os.path.exists(record.value["path"]):
                await self._core.transact(SYSTEM, partial(_drop, kind=BACKUP, keys=[record.key]))
        purged = await store.compact(progress)
        return {"before_bytes": before, "after_bytes": (await store.sizes())["size_bytes"], "erased_purged": purged}

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
                    parts = [passages(memory, speakers=maker.reads_speakers) for _, memory in batch]
                    encoded = await maker.encode_async([text for texts in parts for text in texts])
                    filled, start = [], 0
                    for (number, _), texts in zip(batch, parts, strict=True):
                        filled.append((number, *memory_vectors(encoded[start : start + len(texts)])))
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
        await self._core.outbox.requeue_all()
        return {"embedder": embedder.name, "reindexed": done, "resumed": resumed, "generation": generation}

    async def add_second(self, who: Principal, embedder: Embedder, progress: Progress | None = None) -> dict[str, Any]:
        """Give every memory a second vector, by which it is then found as well. Stopped halfway, it goes on from where
        it was; what was found before is found meanwhile."""
        store = self._second_store(who)
        maker = CachedEmbedder(embedder, entries=0)
        try:
            await maker.embed_async(["a first text, so that a missing model is found before anything is begun"])
            before = await store.second_embedder()
            info = await store.begin_second(embedder.name, embedder.dimension)
            total, done = await store.count_without_second(), 0
            while True:
                after = 0
                while batch := await store.without_second(after, _AT_ONCE):
                    after = batch[-1][0]
                    parts = [passages(memory) for _, memory in batch]
                    vectors = await maker.embed_async([text for texts in parts for text in texts])
                    own = np.split(vectors, np.cumsum([len(texts) for texts in parts])[:-1])
                    if info.ready:  # searched already: the segments have to hear of each
                        for (number, memory), made in zip(batch, own, strict=True):
                            await store.add_second(memory, number, info.generation, made)
                    else:
                        numbers = [number for number, _ in batch]
                        await store.fill_second(info.generation, list(zip(numbers, own, strict=True)))
                    done += len(batch)
                    if progress is not None:
                        progress(done, max(total, done))
                if info.ready or await store.finish_second(info.generation):
                    break
        finally:
            maker.close()
        await self._core.second.follow(embedder)
        if isinstance(self._core.primary, FileUpkeep):
            await self._core.primary.warm()
        return {"embedder": info.name, "dimension": info.dimension, "indexed": done, "resumed": info == before}

    async def remove_second(self, who: Principal) -> bool:
        """Take those vectors away again; whether there were any."""
        removed = await self._second_store(who).drop_second()
        await self._core.second.follow()
        return removed

    def _second_store(self, who: Principal) -> SecondVectors:
        require_operator(who, "maintain the store")
        if self._core.second.store is None:
            raise Unavailable(f"the store {self._core.primary.name} cannot keep a second vector for each memory")
        return self._core.second.store


def _drop(tx: Transaction, *, kind: str, keys: list[str]) -> None:
    for key in keys:
        tx.drop_record(kind, key)
