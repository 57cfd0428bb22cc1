"""Everything of one store in another: the same numbers, times, words, ledger; also after it was stopped halfway."""

from __future__ import annotations

from typing import Any

import pytest
from filled_store import fill_store

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Forget
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.store_digest import digest, plan_tenants
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden
from commonplace.wire.record import Principal


@pytest.fixture
def filled(subject: Subject, run: Any) -> Subject:
    run(fill_store(subject))
    return subject


def migration(filled: Subject, other: Subject, who: Principal = WHO) -> Migration:
    return Migration(who, filled.store, other.store, HashingEmbedder())


async def digests(subject: Subject, plans: list[Any]) -> list[dict[str, str]]:
    return [await digest(subject.store, plan) for plan in plans]


async def planned(subject: Subject) -> list[Any]:
    return [plan async for plan in plan_tenants(subject.store)]


def test_both_stores_hold_the_same(filled: Subject, run: Any, target: tuple[Subject, Any]) -> None:
    other, wait = target
    done = wait(migration(filled, other).run())
    plans = run(planned(filled))
    assert wait(digests(other, plans)) == run(digests(filled, plans))
    assert done["counts"]["memory"] == 6
    assert done["counts"]["statement"] == 1
    assert not done["resumed"]
    for tenant in ("local", "other"):
        assert wait(other.store.audit_head(tenant)) == run(filled.store.audit_head(tenant))
        assert wait(other.store.sequence(tenant)) >= run(filled.store.sequence(tenant))


def test_the_ledger_speaks_the_truth_about_every_row(filled: Subject, target: tuple[Subject, Any]) -> None:
    other, wait = target
    wait(migration(filled, other).run())
    assert wait(other.engine.ledger.verify(WHO)).problem is None
    wait(other.remember("written here since"))
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_the_past_reads_the_same(filled: Subject, run: Any, target: tuple[Subject, Any]) -> None:
    other, wait = target
    wait(migration(filled, other).run())
    first = run(filled.get("a1"))
    for at in range(first.created_at, first.created_at + 30):
        mine = run(filled.engine.get(WHO, "agent", "a1", as_of=at)).content
        assert wait(other.engine.get(WHO, "agent", "a1", as_of=at)).content == mine
        texts = [m.content for m in run(filled.recall("alice", as_of=at, k=20))]
        assert sorted(m.content for m in wait(other.recall("alice", as_of=at, k=20))) == sorted(texts)


@pytest.mark.parametrize("stopped", [False, True])
def test_the_past_reads_the_same_where_a_clock_was_set_back(
    subject: Subject, run: Any, target: tuple[Subject, Any], stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the source, for the last time after a first run was stopped."""
    other, wait = target
    times: list[int] = []

    def write(*steps: int) -> None:
        for step in steps:
            subject.clock.advance(step)
            times.append(subject.clock.now)
            run(subject.remember(f"note {len(times)}"))

    write(1000, 1000, 1000, 30 * DAY_MS, *[1000] * 10, -30 * DAY_MS, 1000, 1000, 1000)
    if stopped:
        write(60 * DAY_MS, *[1000] * 10)
        move = migration(subject, other)

        async def stop(plans: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(move, "_end", stop)
        with pytest.raises(KeyboardInterrupt):
            wait(move.run())
        write(-60 * DAY_MS, 1000, 1000)
    wait(migration(subject, other).run())
    read = [wait(other.store.sequence("local", at)) for at in times]
    assert read == [run(subject.store.sequence("local", at)) for at in times]


def test_it_is_found_reviewed_and_undone_there(filled: Subject, target: tuple[Subject, Any]) -> None:
    other, wait = target
    wait(migration(filled, other).run())
    assert wait(other.recall("peanuts cashews"))[0].recalls == 3
    assert len(wait(other.engine.reviews.list(WHO))) == 1
    assert wait(other.engine.palaces.get(WHO, "agent")).identity == "I help Alice."
    assert [t.object for t in wait(other.engine.graph.query(WHO, "mute", "Oslo"))] == ["Norway"]


def test_what_was_erased_is_not_there(filled: Subject, target: tuple[Subject, Any]) -> None:
    other, wait = target
    wait(migration(filled, other).run())
    found = wait(other.engine.list(WHO, ("agent",), limit=1000)).memories
    assert not [m for m in found if "erased" in m.content or m.content == "-"]
    assert wait(other.store.agent_names("local")) == ["agent", "bob"]


@pytest.mark.parametrize("erased", [1, 2, 250, 251, 252, 501])
def test_the_places_of_what_was_erased_are_taken_and_the_doctor_is_content(
    subject: Subject, run: Any, target: tuple[Subject, Any], erased: int
) -> None:
    """However many: a memory that was written and erased took two places."""
    other, wait = target
    ids = run(subject.remember_all([Draft("agent", "semantic", f"gone {n}") for n in range(erased)]))
    for start in range(0, erased, 100):
        run(subject.engine.forget(WHO, Forget("agent", ids[start : start + 100], hard_delete=True)))
    run(subject.remember("it stays"))
    wait(migration(subject, other).run())
    assert wait(other.store.sequence("local")) == run(subject.store.sequence("local"))
    if isinstance(other.store, SqliteStore):
        assert [found for found in wait(other.engine.upkeep.doctor(WHO, repair=False)) if not found.ok] == []


@pytest.mark.parametrize("stop_after", range(1, 10))
def test_stopped_anywhere_it_goes_on(
    filled: Subject, run: Any, target: tuple[Subject, Any], stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commonplace.engine.transfer import migration as module

    monkeypatch.setattr(module, "_BATCH", 2)
    other, wait = target
    real, calls = other.store.transact, []

    async def failing(tenant: str, work: Any) -> Any:
        calls.append(tenant)
        if len(calls) > stop_after:
            raise KeyboardInterrupt
        return await real(tenant, work)

    with monkeypatch.context() as patch:
        patch.setattr(other.store, "transact", failing, raising=False)
        with pytest.raises(KeyboardInterrupt):
            wait(migration(filled, other).run())
    wait(migration(filled, other).run())
    plans = run(planned(filled))
    assert wait(digests(other, plans)) == run(digests(filled, plans))
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_a_target_that_is_not_empty_is_refused(filled: Subject, target: tuple[Subject, Any]) -> None:
    other, wait = target
    wait(other.remember("mine"))
    with pytest.raises(Conflict, match="the target is not empty"):
        wait(migration(filled, other).run())
    assert [m.content for m in wait(other.list())] == ["mine"]


def test_a_copy_that_differs_is_noticed(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    real = other.store.transact

    async def altering(tenant: str, work: Any) -> Any:
        def altered(tx: Any) -> Any:
            result = work(tx)
            if tx.get(wait_id) is not None and tx.get(wait_id).demotion == 1.0:
                tx.demote([wait_id], 0.5)
            return result

        return await real(tenant, altered)

    wait_id = wait(filled.store.find_alias("local", ["agent"], "a1"))[0].id
    monkeypatch.setattr(other.store, "transact", altering, raising=False)
    with pytest.raises(Conflict, match="the memories of local differ"):
        wait(migration(filled, other).run())


def test_only_the_operator_moves_a_store(filled: Subject, target: tuple[Subject, Any]) -> None:
    for who in (Principal("w", role="writer"), Principal("a", tenant="other"), Principal("b", agents=("x",))):
        with pytest.raises(Forbidden):
            migration(filled, target[0], who)


def test_progress_ends_at_its_total(filled: Subject, target: tuple[Subject, Any]) -> None:
    other, wait = target
    told: list[tuple[int, int]] = []
    wait(migration(filled, other).run(lambda done, total: told.append((done, total))))
    assert told[-1][0] == told[-1][1] > 0
    assert [done for done, _ in told] == sorted(done for done, _ in told)


# again after it has come to its end: whoever was stopped before that was said repeats the command


def test_again_after_its_end_it_compares_and_says_so(filled: Subject, run: Any, target: tuple[Subject, Any]) -> None:
    other, wait = target
    first = wait(migration(filled, other).run())
    before = wait(digests(other, run(planned(filled))))
    again = wait(migration(filled, other).run())
    assert (first["already_there"], again["already_there"]) == (False, True)
    assert {name: again[name] for name in ("counts", "tenants")} == {
        name: first[name] for name in ("counts", "tenants")
    }
    assert wait(digests(other, run(planned(filled)))) == before


@pytest.mark.parametrize("changed", ["the target", "the source", "a row of the target"])
def test_again_where_one_of_both_was_used_since(
    filled: Subject, run: Any, target: tuple[Subject, Any], changed: str
) -> None:
    other, wait = target
    wait(migration(filled, other).run())
    if changed == "the target":
        wait(other.remember("new there"))
    elif changed == "the source":
        run(filled.remember("new here"))
    else:
        (memory, *_) = wait(other.list())
        wait(other.store.transact("local", lambda tx: tx.demote([memory.id], 0.25)))
    said = {
        "the target": "has everything of this store, and more since",
        "the source": "the target is not empty",
        "a row of the target": "one of both has been used since",
    }
    sequence = wait(other.store.sequence("local"))
    with pytest.raises(Conflict, match=said[changed]):
        wait(migration(filled, other).run())
    assert wait(other.store.sequence("local")) == sequence
