"""Looking after a store: by whom, what a status says, and copies, checks and new vectors while others work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tampering import raw_database

from commonplace.config import RedactionConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.core import BACKUP, IDEMPOTENCY, SYSTEM, Settings
from commonplace.engine.types import Draft, Query
from commonplace.stores.base import Record
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, Unavailable, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS


@pytest.mark.parametrize("who", [
    Principal("a", "local", "reviewer"), Principal("a", "acme", "admin"), Principal("a", "local", "admin", ("ada",)),
])  # fmt: skip
def test_only_the_operator_looks_after_the_store(subject: Subject, run: Any, who: Principal, tmp_path: Path) -> None:
    engine = subject.engine
    for work in (engine.upkeep.doctor(who), engine.upkeep.backup(who, tmp_path / "b.db"), engine.upkeep.compact(who),
                 engine.upkeep.reindex(who, HashingEmbedder())):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)
    assert not (tmp_path / "b.db").exists()


def test_status_counts_the_reviews_its_reader_may_see(subject: Subject, run: Any) -> None:
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "x"), approval={"content": "x"}))
    for who, count in ((WHO, 1), (Principal("a", role="reviewer"), 1), (Principal("a", role="reader"), 0)):
        assert run(subject.engine.upkeep.status(who))["pending_reviews"] == count


def open_engine(mode: str, store: Any = None) -> Engine:
    clock = FakeClock()
    settings = Settings(redaction=RedactionConfig(mode=mode))
    return asyncio.run(Engine.open(store or InMemory(clock), HashingEmbedder(), clock=clock, settings=settings))


def test_status_names_and_counts_the_agents_its_reader_may_use(subject: Subject, run: Any) -> None:
    for agent in ("ada", "bea", "bea"):
        run(subject.remember("x", agent))
    for agents, seen in ((("ada",), {"ada": 1}), (("b*",), {"bea": 2}), (("cid",), {}), (("*",), {"ada": 1, "bea": 2})):
        status = run(subject.engine.upkeep.status(Principal("a", role="reader", agents=agents)))
        assert (status["agents"], status["memories"]) == (seen, sum(seen.values()))


def test_status_says_whether_redaction_is_on(subject: Subject, run: Any) -> None:
    assert run(subject.engine.upkeep.status(WHO))["redaction"] == {"mode": "redact", "registered": 0}
    off = open_engine("off")
    assert asyncio.run(off.upkeep.status(WHO))["redaction"]["mode"] == "off"


def test_a_status_tells_what_is_there(subject: Subject, run: Any) -> None:
    for agent in ("ada", "ada", "bea"):
        run(subject.remember("x", agent))
    run(subject.recall("x", "ada"))
    status = run(subject.engine.upkeep.status(WHO))
    assert (status["agents"], status["memories"]) == ({"ada": 2, "bea": 1}, 3)
    assert status["embedder"] == {"name": "hashing-256", "dimension": 256, "generation": 1}
    assert (status["without_vectors"], status["note"], status["pending_reviews"]) == (0, None, 0)
    assert status["audit_entries"] == 4, "the recall of a moment ago included"
    assert ("size_bytes" in status) is (subject.store.name != "memory")


def test_a_status_without_an_embedder_says_so(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), clock=clock)
        status = await engine.upkeep.status(WHO)
        assert (status["embedder"], status["note"]) == (None, engine.note)
        await engine.close()

    asyncio.run(scenario())


def test_a_store_without_files_looks_after_itself(clock: FakeClock, tmp_path: Path) -> None:
    with open_subject(InMemory(clock), clock) as (subject, run):
        upkeep = subject.engine.upkeep
        for work in (upkeep.doctor(WHO), upkeep.backup(WHO, tmp_path / "b.db"), upkeep.compact(WHO)):
            with pytest.raises(Unavailable, match="the store memory has no files to maintain"):
                run(work)
        with pytest.raises(Unavailable, match="cannot keep the vectors of another embedder beside its own"):
            run(upkeep.reindex(WHO, HashingEmbedder(64)))


@pytest.fixture
def files(tmp_path: Path, clock: FakeClock) -> Any:
    """(subject, run) over a store that has files."""
    with open_subject(SqliteStore(tmp_path / "data" / "commonplace.db", clock), clock) as pair:
        yield pair


def test_a_doctor_checks_the_chain_of_every_tenant(files: Any, tmp_path: Path) -> None:
    subject, run = files
    run(subject.remember("x"))
    run(subject.engine.remember(Principal("eve", "acme"), Draft("agent", "semantic", "x")))
    findings = {finding.check: finding for finding in run(subject.engine.upkeep.doctor(WHO))}
    for tenant in ("local", "acme"):
        assert (findings[f"audit of {tenant}"].ok, findings[f"audit of {tenant}"].detail) == (True, "ok")
    assert all(finding.ok for finding in findings.values())
    with raw_database(tmp_path / "data" / "commonplace.db") as db:
        db.drop_guards()
        db.change("UPDATE audit SET principal = 'nobody' WHERE n = 1 AND principal = 'eve'")
    findings = {finding.check: finding for finding in run(subject.engine.upkeep.doctor(WHO, repair=False))}
    assert findings["audit of local"].ok
    assert (findings["audit of acme"].ok, findings["audit of acme"].detail) == (
        False,
        "entry 1: its header was changed",
    )


def test_a_backup_is_a_whole_store_and_is_noted(files: Any, tmp_path: Path, clock: FakeClock) -> None:
    subject, run = files
    run(subject.remember("the violin"))
    run(subject.recall("violin"))
    target = tmp_path / "backup.db"
    done = run(subject.engine.upkeep.backup(WHO, target))
    assert done == {"path": str(target), "bytes": target.stat().st_size}
    (noted,) = run(subject.store.records(SYSTEM, BACKUP))
    assert noted.value == {"path": str(target), "at": subject.clock()}
    with open_subject(SqliteStore(target, clock), clock) as (copy, run_copy):
        assert [m.content for m in run_copy(copy.recall("violin"))] == ["the violin"]
        assert run_copy(copy.list())[0].recalls == 1
        assert run_copy(copy.engine.ledger.verify(WHO)).first_bad is None


def test_a_backup_makes_no_folder(files: Any, tmp_path: Path) -> None:
    subject, run = files
    with pytest.raises(ValidationError, match=r"there is no folder .*nope; make it first: mkdir -p "):
        run(subject.engine.upkeep.backup(WHO, tmp_path / "nope" / "x.db"))
    assert not (tmp_path / "nope").exists()
    assert run(subject.store.records(SYSTEM, BACKUP)) == []


def test_a_backup_into_a_folder_is_refused_with_a_name_to_use(files: Any, tmp_path: Path) -> None:
    subject, run = files
    with pytest.raises(ValidationError, match=r"name the file to write, such as .*commonplace-backup\.db"):
        run(subject.engine.upkeep.backup(WHO, tmp_path))


@pytest.mark.parametrize("before", [False, True])
def test_a_backup_that_fails_is_noted_no_more_than_before(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    subject, run = files
    target = tmp_path / "backup.db"
    if before:
        run(subject.engine.upkeep.backup(WHO, target))
    noted = run(subject.store.records(SYSTEM, BACKUP))
    subject.clock.advance(10)

    async def fail(*_: Any) -> int:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(subject.store, "backup", fail)
    with pytest.raises(Unavailable, match="the disk is full"):
        run(subject.engine.upkeep.backup(WHO, target))
    assert run(subject.store.records(SYSTEM, BACKUP)) == noted


def test_compacting_tidies_what_is_over(files: Any, tmp_path: Path) -> None:
    subject, run = files
    gone, kept = tmp_path / "gone.db", tmp_path / "kept.db"
    for target in (gone, kept):
        noted = Record(BACKUP, str(target), {"path": str(target), "at": subject.clock()})
        run(subject.store.transact(SYSTEM, lambda tx, noted=noted: tx.put_record(noted)))
    kept.touch()
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "old"), idempotency_key="old"))
    promised = run(subject.remember("promised", privacy={"retain": 1}))
    idle = run(subject.engine.runs.start(WHO))
    subject.clock.advance(7 * DAY_MS + 1)
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "new"), idempotency_key="new"))
    done = run(subject.engine.upkeep.compact(WHO))
    assert set(done) == {"before_bytes", "after_bytes", "erased_purged"}
    assert [record.value["path"] for record in run(subject.store.records(SYSTEM, BACKUP))] == [str(kept)]
    assert [record.key for record in run(subject.store.records("local", IDEMPOTENCY))] == ['["agent", "new"]']
    assert run(subject.store.get("local", [promised])) == []
    assert run(subject.store.records("local", "run")) == []
    assert idle.id not in repr(run(subject.store.records("local", f"run:{idle.id}")))


def test_new_vectors_are_made_beside_the_old_ones_and_then_searched(files: Any) -> None:
    subject, run = files
    for n in range(70):
        run(subject.remember(f"fact {n} about violins"))
    told: list[tuple[int, int]] = []
    done = run(subject.engine.upkeep.reindex(WHO, HashingEmbedder(64), lambda *progress: told.append(progress)))
    assert done == {"embedder": "hashing-64", "reindexed": 70, "resumed": False, "generation": 2}
    assert told == [(64, 70), (70, 70)]
    assert subject.engine.embedder.name == "hashing-64"
    found = run(subject.engine.recall(WHO, Query(("agent",), "violins", explain=True)))
    assert found.explain["dense"] is True
    again = run(subject.engine.upkeep.reindex(WHO, HashingEmbedder(64)))
    assert (again["reindexed"], again["generation"]) == (0, 3), "the same embedder only fills gaps"
    assert run(subject.engine.recall(WHO, Query(("agent",), "violins", explain=True))).explain["dense"] is True


def test_a_missing_model_is_found_before_anything_is_begun(files: Any) -> None:
    class MissingModel(HashingEmbedder):
        def embed(self, texts: Any) -> Any:
            raise Unavailable("the model is missing")

    subject, run = files
    run(subject.remember("x"))
    with pytest.raises(Unavailable, match="the model is missing"):
        run(subject.engine.upkeep.reindex(WHO, MissingModel(64)))
    assert subject.engine.embedder.name == "hashing-256"
    assert run(subject.engine.upkeep.reindex(WHO, HashingEmbedder(64)))["resumed"] is False


def test_a_reindex_that_was_stopped_goes_on_from_where_it_was(files: Any) -> None:
    class FailingEmbedder(HashingEmbedder):
        calls = 0

        def embed(self, texts: Any) -> Any:
            self.calls += 1
            if self.calls == 3:
                raise Unavailable("out of memory")
            return super().embed(texts)

    subject, run = files
    for n in range(70):
        run(subject.remember(f"fact {n}"))
    with pytest.raises(Unavailable, match="out of memory"):
        run(subject.engine.upkeep.reindex(WHO, FailingEmbedder(64)))
    done = run(subject.engine.upkeep.reindex(WHO, HashingEmbedder(64)))
    assert (done["resumed"], done["reindexed"]) == (True, 6)


def test_memories_without_vectors_are_counted_and_said(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("with"))

    async def keep_words_alone() -> None:
        engine = await Engine.open(SqliteStore(path, clock), clock=clock)
        await engine.remember(WHO, Draft("agent", "semantic", "without"))
        await engine.close()

    asyncio.run(keep_words_alone())
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        status = run(subject.engine.upkeep.status(WHO))
        assert status["without_vectors"] == 1
        assert status["note"] == (
            "1 memory waits for its vectors and is found by keywords until then; a running server makes them, or "
            "`commonplace reindex`"
        )
