"""What is done to the source between a migration that was stopped and the next, or while one runs, is carried, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from filled_store import fill_store
from store_kinds import STORE

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Decision, Draft, Engine
from commonplace.engine.core import SYSTEM
from commonplace.engine.lifecycle.scheduler import LEASE, LIFECYCLE
from commonplace.engine.transfer import migration as module
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.migration_claim import Claim
from commonplace.engine.transfer.migration_marks import MIGRATION, check_target
from commonplace.engine.transfer.store_digest import digest, plan_tenants
from commonplace.stores.base import Entry, Record
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Conflict, Unavailable, UnusableStore
from commonplace.wire.record import EVERY_STATUS, Principal, replace_fields

Change = Callable[[Subject], Awaitable[Any]]

#: Every kind is moved from and moved to; what one does meanwhile does not depend on the other.
MOVES = [(STORE, STORE)] if STORE else [("memory", "sqlite"), ("sqlite", "memory")]
#: After how many steps of the target, and before how many of the source, something is done. A database takes ten times
#: as long for a step: there one of each, for every change.
STOPPED_AFTER = (16,) if STORE else (2, 6, 11, 16)
CHANGED_AFTER = (6,) if STORE else (2, 6, 11)
CHANGED_BEFORE_READ = ((16, 5),) if STORE else ((0, 2), (0, 4), (0, 5), (0, 6), (16, 1), (16, 5))
pytestmark = pytest.mark.parametrize(("over", "target"), MOVES, indirect=True)


async def first(s: Subject) -> str:
    return (await s.get("a1")).id


async def update_what_was_recalled(s: Subject) -> None:
    await s.update(await first(s), content="Alice outgrew it")


async def update_everything(s: Subject) -> None:
    for memory in sorted(await s.list(), key=lambda memory: memory.id):  # as they are read
        await s.update(memory.id, content=f"{memory.content}, again")


async def erase_and_write(s: Subject) -> None:
    await s.forget("a1", hard_delete=True)
    await s.remember("written meanwhile")


async def recall_again(s: Subject) -> None:
    await s.recall("peanuts")
    await s.engine.flush()


async def erase_what_was_staged(s: Subject) -> None:
    (review,) = await s.engine.reviews.list(WHO)
    await s.engine.reviews.decide(WHO, review["id"], Decision(False))


async def approve(s: Subject) -> None:
    (review,) = await s.engine.reviews.list(WHO)
    await s.engine.reviews.decide(WHO, review["id"], Decision(True))


async def erase_statements(s: Subject) -> None:
    await s.engine.graph.erase(WHO, "mute", "Oslo")


async def drop_every_record_of_a_kind(s: Subject) -> None:
    await s.store.transact("local", lambda tx: tx.drop_record("palace", "agent"))


async def renew_the_lease(s: Subject) -> None:
    await s.store.transact(SYSTEM, lambda tx: tx.put_record(Record(LIFECYCLE, LEASE, {"until": s.clock()})))


CHANGES: dict[str, Change] = {
    "a new memory": lambda s: s.remember("written meanwhile"),
    "a new agent": lambda s: s.remember("written meanwhile", agent="carol"),
    "a new tenant": lambda s: s.engine.remember(Principal("x", tenant="third"), Draft("a", "semantic", "theirs")),
    "an update of what was recalled": update_what_was_recalled,
    "an update of everything": update_everything,
    "a recall": recall_again,
    "a memory demoted": lambda s: s.expire("demote", older_than_days=1, confidence_below=2),
    "a memory archived": lambda s: s.expire("archive", older_than_days=1, confidence_below=2),
    "a memory forgotten": lambda s: s.forget("a1"),
    "a memory erased": lambda s: s.forget("a1", hard_delete=True),
    "a memory erased and one written": erase_and_write,
    "an agent's only memory erased": lambda s: _erase_all(s, "bob"),
    "everything erased": lambda s: _erase_all(s, "agent"),
    "a merge": lambda s: _merge(s),
    "another statement": lambda s: s.engine.graph.assert_fact(
        WHO, "mute", subject="Oslo", predicate="is_in", object="Scandinavia"
    ),
    "statements erased": erase_statements,
    "a review rejected": erase_what_was_staged,
    "a review approved": approve,
    "a palace described": lambda s: s.engine.palaces.set_identity(WHO, "agent", "I help Bob."),
    "a kind of records gone": drop_every_record_of_a_kind,
    "a token made": lambda s: s.engine.tokens.create(WHO),
    "a lease renewed": renew_the_lease,
}


async def _erase_all(s: Subject, agent: str) -> None:
    ids = [memory.id for memory in await s.list(agent, statuses=EVERY_STATUS)]
    await s.forget(*ids, agent=agent, hard_delete=True)


async def _merge(s: Subject) -> None:
    await s.merge(await first(s), await s.remember("Alice must not eat peanuts"))


@pytest.fixture
def filled(subject: Subject, run: Any) -> Subject:
    run(subject.engine.tokens.create(WHO))  # of the installation: entries of the ledger without a sequence
    run(fill_store(subject))
    subject.clock.advance(3 * 86_400_000)
    return subject


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)


def migration(filled: Subject, other: Subject) -> Migration:
    return Migration(WHO, filled.store, other.store, HashingEmbedder())


async def require_same(filled: Subject, other: Subject) -> None:
    plans = [plan async for plan in plan_tenants(filled.store)]
    assert [plan.tenant for plan in plans] == [plan.tenant async for plan in plan_tenants(other.store)]
    for plan in plans:
        assert await digest(other.store, plan) == await digest(filled.store, plan)
        assert MIGRATION not in await other.store.record_kinds(plan.tenant)
        assert await other.store.sequence(plan.tenant) >= plan.sequence
    assert (await other.engine.ledger.verify(WHO)).problem is None


def interrupt(other: Subject, wait: Any, work: Any, calls_before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it until that many units of work are done; more than there are is the whole of it. Those that take the
    target do not count: each run begins with them."""
    real, calls, taking = other.store.transact, [0], [False]

    def uncounted(verb: str) -> Any:
        real_verb = getattr(Claim, verb)

        async def take(claim: Claim, of: Any) -> None:
            taking[0], before = True, taking[0]  # the one takes by the other
            await real_verb(claim, of)
            taking[0] = before

        return take

    async def failing(tenant: str, unit: Any) -> Any:
        calls[0] += not taking[0]
        if calls[0] > calls_before:
            raise KeyboardInterrupt
        return await real(tenant, unit)

    with monkeypatch.context() as patch:
        patch.setattr(other.store, "transact", failing, raising=False)
        for verb in ("begin", "take"):
            patch.setattr(Claim, verb, uncounted(verb))
        with pytest.raises(KeyboardInterrupt):
            wait(work)


@pytest.mark.parametrize("calls_before", STOPPED_AFTER)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_done_since_it_was_stopped(
    filled: Subject, run: Any, target: tuple[Subject, Any], change: str, calls_before: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    other, wait = target
    interrupt(other, wait, migration(filled, other).run(), calls_before, monkeypatch)
    run(CHANGES[change](filled))
    done = wait(migration(filled, other).run())
    assert done["resumed"]
    wait(require_same(filled, other))


def test_of_what_was_erased_since_that_goes_first_whose_other_id_was_given_away(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    older = run(subject.remember("an older one"))
    subject.clock.advance(5)
    named = run(subject.remember("Alice drinks tea", aliases=["tea"]))
    interrupt(other, wait, migration(subject, other).run(), 3, monkeypatch)
    assert sum(wait(other.store.agents("local")).values()) == 2
    run(subject.forget(named, hard_delete=True))
    run(subject.remember("Bob drinks tea", aliases=["tea"]))
    run(subject.forget(older, hard_delete=True))
    assert wait(migration(subject, other).run())["resumed"]
    wait(require_same(subject, other))


@pytest.mark.parametrize("after_calls", CHANGED_AFTER)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_done_while_it_runs(
    filled: Subject, target: tuple[Subject, Any], change: str, after_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    real, calls = other.store.transact, [0]

    async def interrupted(tenant: str, unit: Any) -> Any:
        calls[0] += 1
        if calls[0] == after_calls:
            await CHANGES[change](filled)
        return await real(tenant, unit)

    with monkeypatch.context() as patch:
        patch.setattr(other.store, "transact", interrupted, raising=False)
        done = wait(migration(filled, other).run())
    assert calls[0] >= after_calls
    assert not done["resumed"]
    wait(require_same(filled, other))


@pytest.mark.parametrize(("stopped_after", "before_call"), CHANGED_BEFORE_READ)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_done_while_the_plan_is_read(
    filled: Subject, target: tuple[Subject, Any], change: str, stopped_after: int, before_call: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Some memories were looked at by then, and others not: what is carried must have no gap."""
    other, wait = target
    if stopped_after:
        interrupt(other, wait, migration(filled, other).run(), stopped_after, monkeypatch)
    calls = [0]

    def counted(real: Any) -> Any:
        async def read(*args: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] == before_call:
                await CHANGES[change](filled)
            return await real(*args, **options)

        return read

    with monkeypatch.context() as patch:
        for verb in ("scan", "history"):
            patch.setattr(filled.store, verb, counted(getattr(filled.store, verb)), raising=False)
        wait(migration(filled, other).run())
    wait(require_same(filled, other))


def test_stopped_at_every_unit_of_work_it_goes_on(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also among the last, when one tenant is done and the next is not."""
    other, wait = target
    stops = 0
    while True:
        try:
            interrupt(other, wait, migration(filled, other).run(), 1, monkeypatch)
        except pytest.fail.Exception:  # it came to its end
            break
        stops += 1
    assert stops > 10
    wait(require_same(filled, other))


def test_a_source_that_is_written_to_all_the_time(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    real = other.store.transact

    async def written(tenant: str, unit: Any) -> Any:
        await filled.remember("one more")
        return await real(tenant, unit)

    with monkeypatch.context() as patch:
        patch.setattr(other.store, "transact", written, raising=False)
        with pytest.raises(Unavailable, match="stop what writes to it, and run this again"):
            wait(migration(filled, other).run())
    assert wait(migration(filled, other).run())["resumed"]
    wait(require_same(filled, other))


def test_another_source_does_not_go_on_with_it(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    interrupt(other, wait, migration(filled, other).run(), 5, monkeypatch)
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (stranger, go):
        go(stranger.remember("of somebody else"))
        with pytest.raises(Conflict, match="part of another store"):
            wait(migration(stranger, other).run())
    wait(migration(filled, other).run())
    wait(require_same(filled, other))


def test_half_of_a_store_is_not_opened_as_one(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    for _ in range(5):
        interrupt(other, wait, migration(filled, other).run(), 1, monkeypatch)
        with pytest.raises(UnusableStore, match="a migration into it has not come to its end"):
            wait(Engine.open(other.store, HashingEmbedder(), clock=other.clock))
    wait(migration(filled, other).run())
    wait(wait(Engine.open(other.store, HashingEmbedder(), clock=other.clock)).close())


def test_half_of_a_store_is_not_moved_on(
    filled: Subject, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, wait = target
    interrupt(other, wait, migration(filled, other).run(), 5, monkeypatch)
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (third, go):
        with pytest.raises(UnusableStore, match="a migration into it has not come to its end"):
            go(migration(other, third).run())
        assert go(check_target(third.store, other.store)) is False  # nothing was begun there


def test_what_is_written_into_a_half_filled_target_is_noticed(
    filled: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as by an earlier version, which did not look whether a migration is filling what it had open."""
    other, wait = target
    interrupt(other, wait, migration(filled, other).run(), 3, monkeypatch)
    theirs = replace_fields(run(filled.get("a1")), id=mint_id(filled.clock()), tenant="stranger", aliases=[])
    wait(other.store.transact("stranger", lambda tx: tx.put(Entry(theirs, None, b""))))
    with pytest.raises(Conflict, match="the target holds"):
        wait(migration(filled, other).run())
