"""Which memories were replaced, as time passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.engine.types import Query
from commonplace.testing.subject import DAY_MS, WHO, Subject

Over = tuple[Subject, Callable[[Any], Any]]


def test_what_has_expired_replaces_nothing(over: Over) -> None:
    subject, run = over
    old, older = run(subject.remember("Bob lives in Rome")), run(subject.remember("Bob works nights"))
    lasting = run(subject.remember("Bob lives in Oslo", supersedes=[old]))
    passing = run(subject.remember("Bob works days", supersedes=[older], expires_at=subject.clock() + DAY_MS))

    def replaced(now: int | None) -> dict[str, str]:
        return dict(run(subject.store.context("local", ["agent"], now)).replaced)

    start = subject.clock()
    assert replaced(start) == {old: lasting, older: passing}
    assert replaced(start + DAY_MS) == {old: lasting}
    assert replaced(start + DAY_MS - 1) == {old: lasting, older: passing}
    assert replaced(None) == {old: lasting, older: passing}
    later = run(subject.remember("Bob works days again", supersedes=[older], expires_at=start + 2 * DAY_MS))
    assert replaced(start + DAY_MS) == {old: lasting, older: later}
    assert replaced(start + 2 * DAY_MS) == {old: lasting}
    run(subject.update(later, expires_at=None))
    assert replaced(start + 9 * DAY_MS) == {old: lasting, older: later}


def test_recall_shows_what_is_no_longer_replaced_as_it_did_before(over: Over) -> None:
    subject, run = over
    old = run(subject.remember("Bob works nights at the bakery"))
    run(subject.remember("Bob works days at the bakery", supersedes=[old], expires_at=subject.clock() + DAY_MS))

    def replacement() -> float:
        found = run(subject.engine.recall(WHO, Query(("agent",), "when does Bob work at the bakery?", explain=True)))
        (hit,) = [h for h in found.hits if h.memory.id == old]
        return float((hit.explain or {})["features"].get("replaced", 0.0))

    assert replacement() > 0
    subject.clock.advance(DAY_MS)
    assert replacement() == 0
