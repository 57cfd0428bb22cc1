"""Half of a store is known by what a migration has noted in it."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration_marks import MIGRATION, PROGRESS, SOURCE, check_target, require_whole
from commonplace.stores.base import Entry, Record
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import Subject
from commonplace.wire.errors import Conflict, Unavailable, UnusableStore
from commonplace.wire.record import Memory

NUMBER = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"


def note(subject: Subject, tenant: str, key: str) -> Any:
    return subject.store.transact(tenant, lambda tx: tx.put_record(Record(MIGRATION, key, {"seq": 0, "begins": {}})))


def test_an_empty_one_is_whole_and_may_be_filled(subject: Subject, run: Any) -> None:
    run(require_whole(subject.store))
    assert run(check_target(subject.store, InMemory())) is False


def test_one_that_holds_something_is_whole_and_not_filled(subject: Subject, run: Any) -> None:
    run(subject.remember("mine"))
    run(require_whole(subject.store))
    with pytest.raises(Conflict, match="the target is not empty"):
        run(check_target(subject.store, InMemory()))


def test_one_that_is_half_filled_goes_on_and_is_nothing_else(subject: Subject, run: Any) -> None:
    run(subject.remember("copied"))
    run(note(subject, SYSTEM, SOURCE))
    assert run(check_target(subject.store, InMemory())) is True
    with pytest.raises(UnusableStore, match="has not come to its end"):
        run(require_whole(subject.store))


@pytest.mark.parametrize("operation", ["put", "delete"])
def test_one_that_is_half_filled_takes_no_copies(subject: Subject, run: Any, operation: str) -> None:
    """Its ledger comes last, by which a store that is somebody's own is known otherwise."""
    copy = PrimaryCopy(subject.store)
    memory = Memory(id=NUMBER, tenant="local", agent_id="agent", type="semantic", content="a copy")
    work = {"put": lambda: copy.put([Entry(memory, None, b"")]), "delete": lambda: copy.delete("local", [NUMBER])}
    run(note(subject, SYSTEM, SOURCE))
    with pytest.raises(Unavailable, match="name an empty one for copies"):
        run(work[operation]())
    assert run(subject.store.get("local", [NUMBER])) == []
    run(subject.store.transact(SYSTEM, lambda tx: tx.drop_record(MIGRATION, SOURCE)))
    run(work[operation]())


@pytest.mark.parametrize("tenant", [SYSTEM, "local"])
def test_one_that_an_earlier_version_left_goes_on(subject: Subject, run: Any, tenant: str) -> None:
    run(subject.remember("copied"))
    run(note(subject, tenant, PROGRESS))
    assert run(check_target(subject.store, InMemory())) is True
