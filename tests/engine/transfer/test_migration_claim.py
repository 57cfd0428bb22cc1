"""Two migrations into one target at the same time: one comes to its end, and the other changes nothing any more."""

from __future__ import annotations

from typing import Any

import pytest
from filled_store import fill_store

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft
from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.migration_claim import Claim
from commonplace.engine.transfer.migration_marks import MIGRATION, OWNER, require_whole
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Conflict, UnusableStore

STEPS = ("_copy_versions", "_copy_statements", "_copy_records", "_copy_ledger", "_differing", "_is_as_planned", "_end")


def migration(source: Subject, target: Subject) -> Migration:
    return Migration(WHO, source.store, target.store, HashingEmbedder())


@pytest.mark.parametrize("step", STEPS)
def test_what_is_written_after_the_end_of_the_other_stays(
    step: str, subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    slow, kept = migration(subject, other), []
    real = getattr(slow, step)

    async def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(slow, step, real)
        await migration(subject, other).run()
        kept.append(await other.remember("written since"))
        await other.engine.graph.assert_fact(WHO, "agent", subject="Bob", predicate="likes", object="tea")
        return await real(*args)

    monkeypatch.setattr(slow, step, overtaken)
    with pytest.raises(Conflict, match="another process"):
        wait(slow.run())
    assert wait(other.get(kept[0])).content == "written since"
    assert [triple.object for triple in wait(other.engine.graph.query(WHO, "agent", "Bob"))] == ["tea"]
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_the_one_that_began_last_goes_on(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    first, last, done = migration(subject, other), migration(subject, other), []
    real, wanted = last._claim.transact, first._claim.transact

    async def overtake(*args: Any) -> Any:
        monkeypatch.setattr(first._claim, "transact", wanted)
        done.append(await last.run())
        return await wanted(*args)

    async def look_in(*args: Any) -> Any:
        monkeypatch.setattr(last._claim, "transact", real)
        with pytest.raises(Conflict, match="another process"):
            await wanted(*args)
        return await real(*args)

    monkeypatch.setattr(first._claim, "transact", overtake)
    monkeypatch.setattr(last._claim, "transact", look_in)
    with pytest.raises(Conflict, match="run this again: it compares both stores"):
        wait(first.run())
    assert done[0]["counts"]["memory"] == 6
    assert wait(migration(subject, other).run())["already_there"]


def test_one_that_came_to_its_end_just_before_is_not_begun_anew(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    late = migration(subject, other)
    real = late._claim.begin

    async def begin(*args: Any) -> Any:
        await migration(subject, other).run()
        return await real(*args)

    monkeypatch.setattr(late._claim, "begin", begin)
    with pytest.raises(Conflict, match="another process"):
        wait(late.run())
    wait(require_whole(other.store))
    assert wait(migration(subject, other).run())["already_there"]


@pytest.mark.parametrize("step", STEPS)
def test_who_had_the_target_open_before_it_began_writes_nothing_there(
    step: str, subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    move, engine, tried = migration(subject, other), other.engine, []
    wait(
        engine._core.transact("local", lambda tx: None)
    )  # such as a look by a job, after which it is as empty as before
    real = getattr(move, step)

    async def meanwhile(*args: Any) -> Any:
        draft = Draft("agent", "semantic", "written meanwhile")
        for write in (
            lambda: engine.remember(WHO, draft),
            lambda: engine.graph.assert_fact(WHO, "agent", subject="Bob", predicate="likes", object="tea"),
            lambda: engine.policies.replace(WHO, [{"name": "p", "when": {"kind": ["note"]}, "action": "allow"}]),
        ):
            with pytest.raises(UnusableStore, match="has not come to its end"):
                await write()
            tried.append(step)
        return await real(*args)

    monkeypatch.setattr(move, step, meanwhile)
    wait(move.run())
    assert len(tried) >= 3
    assert wait(migration(subject, other).run())["already_there"]
    assert wait(other.get(wait(other.remember("written since")))).content == "written since"


@pytest.mark.parametrize("step", STEPS)
def test_who_had_the_target_open_before_it_began_reads_nothing_there(
    step: str, subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = run(subject.remember("Bob has a secret"))
    run(fill_store(subject))
    run(subject.forget(forgotten))
    other, wait = target
    move, tried = migration(subject, other), []
    real = getattr(move, step)
    assert wait(other.list()) == []

    async def meanwhile(*args: Any) -> Any:
        for read in (lambda: other.list(), lambda: other.recall("secret")):
            with pytest.raises(UnusableStore, match="has not come to its end"):
                await read()
            tried.append(step)
        return await real(*args)

    monkeypatch.setattr(move, step, meanwhile)
    wait(move.run())
    assert len(tried) >= 2
    assert [memory.id for memory in wait(other.list())] == [memory.id for memory in run(subject.list())]


def test_nothing_is_written_or_read_in_a_tenant_that_it_had_ended_before_it_was_killed(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run would make the tenant what it is at the source."""
    run(fill_store(subject))
    other, wait = target
    move = migration(subject, other)
    real = move._end

    async def killed(plans: Any) -> None:
        await real([plan for plan in plans if plan.tenant != SYSTEM])
        raise RuntimeError("killed")

    monkeypatch.setattr(move, "_end", killed)
    with pytest.raises(RuntimeError, match="killed"):
        wait(move.run())
    assert wait(other.store.record("local", MIGRATION, OWNER)) is None
    rules = [{"name": "p", "when": {"kind": ["note"]}, "action": "allow"}]
    for use in (
        lambda: other.remember("written since"),
        lambda: other.engine.policies.replace(WHO, rules),
        lambda: other.list(),
    ):
        with pytest.raises(UnusableStore, match="has not come to its end"):
            wait(use())
    wait(migration(subject, other).run())
    assert wait(other.get(wait(other.remember("written since")))).content == "written since"


def test_no_write_comes_between_its_beginning_and_the_first_copy(
    subject: Subject, run: Any, target: tuple[Subject, Any]
) -> None:
    run(fill_store(subject))
    other, wait = target
    move = migration(subject, other)
    wait(move._claim.begin(run(move._ledger_beginnings())))
    with pytest.raises(UnusableStore, match="has not come to its end"):
        wait(other.remember("under way"))
    wait(move.run())
    assert wait(migration(subject, other).run())["already_there"]


def test_what_was_written_since_the_target_was_looked_at_stays(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    late, kept = migration(subject, other), []
    real = late._claim.begin

    async def begin(*args: Any) -> Any:
        kept.append(await other.remember("written just before"))
        return await real(*args)

    monkeypatch.setattr(late._claim, "begin", begin)
    with pytest.raises(Conflict, match="another process"):
        wait(late.run())
    wait(require_whole(other.store))
    assert wait(other.get(kept[0])).content == "written just before"
    assert wait(other.get(wait(other.remember("written since")))).content == "written since"


@pytest.mark.parametrize("step", ["take", "transact"])
def test_what_was_written_just_before_it_began_stays_though_it_was_killed_at_once(
    step: str, subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has seen that it is not the only one, or before it has gone."""
    run(fill_store(subject))
    other, wait = target
    late, kept = migration(subject, other), []
    real = late._claim.begin

    async def begin(*args: Any) -> Any:
        kept.append(await other.remember("written just before"))
        monkeypatch.setattr(late._claim, step, killed)
        return await real(*args)

    async def killed(*args: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(late._claim, "begin", begin)
    with pytest.raises(RuntimeError, match="killed"):
        wait(late.run())
    with pytest.raises(Conflict, match="another process"):
        wait(migration(subject, other).run())
    wait(require_whole(other.store))
    assert wait(other.get(kept[0])).content == "written just before"
    assert wait(other.get(wait(other.remember("written since")))).content == "written since"


def test_one_that_was_killed_as_it_began_goes_on(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(fill_store(subject))
    other, wait = target
    first = migration(subject, other)

    async def killed(*args: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(first._claim, "take", killed)
    with pytest.raises(RuntimeError, match="killed"):
        wait(first.run())
    assert wait(migration(subject, other).run())["resumed"]
    assert wait(migration(subject, other).run())["already_there"]


def test_nothing_of_a_claim_is_left(subject: Subject, run: Any, target: tuple[Subject, Any]) -> None:
    run(fill_store(subject))
    other, wait = target
    wait(migration(subject, other).run())
    for tenant in ("", *wait(other.store.tenants())):
        assert wait(other.store.records(tenant, MIGRATION)) == []


def test_one_that_was_overtaken_leaves_no_mark_though_it_is_killed(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as on a machine that slept meanwhile. Nobody would take the mark away, and nothing be written there."""
    run(fill_store(subject))
    other, wait = target
    slow = Claim(other.store)
    wait(slow.begin({}))
    wait(migration(subject, other).run())

    async def killed(*args: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(slow, "transact", killed)
    with pytest.raises(Conflict, match="another process"):
        wait(slow.take("local"))
    assert wait(other.get(wait(other.remember("written since")))).content == "written since"


def test_one_that_was_overtaken_takes_no_further_tenant(target: tuple[Subject, Any]) -> None:
    other, wait = target
    first, last = Claim(other.store), Claim(other.store)
    wait(first.begin({}))
    wait(first.take("local"))
    wait(last.begin({}))
    with pytest.raises(Conflict, match="another process"):
        wait(first.take("other"))
    assert wait(other.store.record("other", MIGRATION, OWNER)) is None
    wait(last.take("other"))
    wait(last.transact("other", lambda tx: None))
    wait(last.take("local"))
    with pytest.raises(Conflict, match="another process"):
        wait(first.transact("local", lambda tx: None))
