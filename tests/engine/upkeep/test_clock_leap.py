"""One write under a clock far ahead: it does not date what follows, it is told, and it can be mended."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from commonplace.engine.types import Draft
from commonplace.engine.upkeep import clock_leap
from commonplace.stores.graph import LEAP_MS, commit_time
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, START, WHO, FakeClock, Subject, open_subject
from commonplace.wire.record import Principal

YEARS = 74 * 365 * DAY_MS


@pytest.mark.parametrize(
    ("clock", "last", "expected"),
    [
        (5, 0, 5),
        (5, 5, 5),
        (0, LEAP_MS, LEAP_MS),
        (0, LEAP_MS + 1, 0),
        (9, LEAP_MS + 9, LEAP_MS + 9),
        (START, START + YEARS, START),
    ],
)
def test_time_never_goes_back_but_from_a_leap(clock: int, last: int, expected: int) -> None:
    assert commit_time(clock, last) == expected


def leap(subject: Subject, run: Any) -> tuple[str, str, str]:
    """The ids of what was written before, under a clock far ahead, and after."""
    for n in range(4):
        run(subject.remember(f"earlier fact {n}"))
    before = run(subject.remember("a fact"))
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="likes", object="tea"))
    subject.clock.advance(YEARS)
    wrong = run(subject.remember("a fact of the future"))
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="Bob", predicate="likes", object="milk"))
    subject.clock.advance(1000 - YEARS)
    return before, wrong, run(subject.remember("another fact"))


def test_a_write_under_a_clock_far_ahead_does_not_date_what_follows(subject: Subject, run: Any) -> None:
    _, wrong, after = leap(subject, run)
    assert run(subject.get(wrong)).created_at == START + YEARS
    assert run(subject.get(after)).created_at == START + 1000
    subject.clock.advance(-1000)
    assert run(subject.get(run(subject.remember("set back")))).created_at == START + 1000, "a little is no leap"


def test_an_instant_still_means_one_state(subject: Subject, run: Any) -> None:
    before, _, _ = leap(subject, run)

    def at(ms: int) -> list[str]:
        return sorted(m.content for m in run(subject.list(as_of=ms)) if "earlier" not in m.content)

    assert at(START - 1) == []
    assert at(START) == ["a fact"]
    assert at(START + 999) == ["a fact"]
    assert at(START + 1000) == ["a fact", "a fact of the future", "another fact"]
    assert at(START + YEARS) == ["a fact", "a fact of the future", "another fact"]
    assert run(subject.get(before, as_of=START)).content == "a fact"
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_statements_of_now_are_those_of_the_clock(subject: Subject, run: Any) -> None:
    leap(subject, run)
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="likes", object="cocoa"))
    (found,) = run(subject.engine.graph.query(WHO, "agent", "Alice"))
    assert (found.object, found.valid_from) == ("cocoa", START + 1000)


@pytest.fixture
def files(tmp_path: Path, clock: FakeClock) -> Any:
    with open_subject(SqliteStore(tmp_path / "commonplace.db", clock), clock) as pair:
        yield pair


def finding(subject: Subject, run: Any, **options: Any) -> Any:
    (found,) = [f for f in run(subject.engine.upkeep.doctor(WHO, **options)) if f.check == "time of local"]
    return found


def test_a_doctor_finds_and_mends_it(files: Any) -> None:
    subject, run = files
    _, wrong, _ = leap(subject, run)
    told = finding(subject, run, repair=False)
    assert not told.ok
    assert "1 memory and 1 statement are dated up to" in told.detail
    assert "`commonplace doctor` dates them anew" in told.detail
    mended = finding(subject, run)
    assert (mended.ok, mended.repaired) == (True, True)
    assert finding(subject, run, repair=False).detail == "ok"
    memory = run(subject.get(wrong))
    assert (memory.created_at, memory.version) == (START + 1000, 2)
    (stated,) = run(subject.engine.graph.query(WHO, "agent", "Bob"))
    assert stated.valid_from == START + 1000
    assert run(subject.engine.ledger.verify(WHO)).problem is None, "every change has its entry"
    assert all(f.ok for f in run(subject.engine.upkeep.doctor(WHO, repair=False)))


def test_a_last_write_ahead_is_found_before_anything_follows_it(files: Any) -> None:
    subject, run = files
    for n in range(4):
        run(subject.remember(f"fact {n}"))
    subject.clock.advance(YEARS)
    run(subject.recall("fact"))
    run(subject.engine.flush())
    subject.clock.advance(-YEARS)
    assert not finding(subject, run, repair=False).ok
    assert finding(subject, run).repaired
    assert finding(subject, run, repair=False).ok


def test_a_clock_that_stands_alone_mends_nothing(files: Any) -> None:
    subject, run = files
    ids = [run(subject.remember(f"fact {n}")) for n in range(3)]
    subject.clock.advance(-YEARS // 2)
    told = finding(subject, run)
    assert not told.ok
    assert "set this machine's clock" in told.detail
    assert [run(subject.get(id)).created_at for id in ids] == [START] * 3


def test_a_time_that_someone_gave_is_left_alone(files: Any) -> None:
    subject, run = files
    run(subject.engine.graph.assert_fact(
        WHO, "agent", subject="Alice", predicate="retires", object="yes", valid_from=START + YEARS))  # fmt: skip
    run(subject.remember("a fact", event_time=START + YEARS, expires_at=START + YEARS))
    assert finding(subject, run, repair=False).detail == "ok"


def test_each_tenant_has_a_time_of_its_own(files: Any) -> None:
    subject, run = files
    other = Principal("bob", "acme")
    for n in range(3):
        run(subject.engine.remember(other, Draft("agent", "semantic", f"fact {n}")))
    subject.clock.advance(YEARS)
    run(subject.engine.remember(other, Draft("agent", "semantic", "theirs")))
    subject.clock.advance(-YEARS)
    run(subject.remember("ours"))
    checks = {f.check: f for f in run(subject.engine.upkeep.doctor(WHO, repair=False))}
    assert (checks["time of local"].ok, checks["time of acme"].ok) == (True, False)
    assert clock_leap.REPAIR not in {e.operation for e in run(subject.engine.ledger.entries(other))}


def test_whoever_writes_after_it_is_told(files: Any, caplog: pytest.LogCaptureFixture) -> None:
    subject, run = files
    with caplog.at_level(logging.WARNING, "commonplace.sqlite"):
        leap(subject, run)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "time goes on by the clock; `commonplace doctor` finds and repairs" in said
