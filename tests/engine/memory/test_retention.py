"""Retention promises: when something is to be gone, who inherits the promise, and that no change outlasts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.memory.retention import inherit_retention, promised_end
from commonplace.testing.subject import START, Subject
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

KEPT = {"privacy": {"retain": 30}}
END = START + 30 * DAY_MS


@pytest.mark.parametrize(("retain", "expires_at", "end"), [
    (None, None, None), (None, 7, 7), (1, None, DAY_MS), (1, 7, 7), (1, DAY_MS + 1, DAY_MS), (2**53, None, 2**53 - 1),
])  # fmt: skip
def test_the_promise_is_the_latest_end(retain: int | None, expires_at: int | None, end: int | None) -> None:
    assert promised_end({} if retain is None else {"retain": retain}, 0, expires_at) == end


def test_the_strictest_promise_binds() -> None:
    def memory(id: str, retain: int | None, expires_at: int | None) -> Memory:
        privacy = {} if retain is None else {"retain": retain, "user_consent_id": id}
        return Memory(id, "t", "a", "semantic", id, privacy=privacy, expires_at=expires_at)

    plain, brief, strict, lax = memory("p", None, None), memory("b", None, 3), memory("s", 9, 5), memory("l", 2, 8)
    held = inherit_retention(plain, [lax, plain, strict, brief])
    assert (held.expires_at, held.privacy) == (5, {"retain": 9, "user_consent_id": "s"})
    assert inherit_retention(lax, [lax, strict]).privacy == {"retain": 9, "user_consent_id": "l"}
    assert inherit_retention(brief, [strict]).expires_at == 3
    assert inherit_retention(brief, [plain]) is brief


@pytest.mark.parametrize("later", [None, END + 1])
def test_an_update_does_not_outlast_the_promise(subject: Subject, run: Any, later: int | None) -> None:
    id = run(subject.remember("Bob's address", **KEPT))
    assert run(subject.update(id, expires_at=later)).expires_at == END
    assert run(subject.update(id, expires_at=END - 1)).expires_at == END - 1


def test_the_longest_promise_to_retain_fits(subject: Subject, run: Any) -> None:
    id = run(subject.remember("kept nearly for ever", privacy={"retain": 2**53 - 1}))
    assert run(subject.get(id)).expires_at == 2**53 - 1
    soon = run(subject.remember("kept a day", privacy={"retain": 1}))
    assert run(subject.get(soon)).expires_at == subject.clock() + DAY_MS
    run(subject.forget(soon))
    assert run(subject.store.get("local", [soon])) == []


memories = st.builds(
    lambda id, retain, expires_at: Memory(
        id, "t", "a", "semantic", id, privacy={} if retain is None else {"retain": retain}, expires_at=expires_at
    ),
    st.sampled_from("abcd"),
    st.none() | st.integers(1, 99),
    st.none() | st.integers(1, 99),
)


@given(memories, st.lists(memories, max_size=5))
def test_nothing_outlasts_a_promise_of_what_it_holds(memory: Memory, sources: list[Memory]) -> None:
    held = inherit_retention(memory, sources)
    promised = [m for m in sources if "retain" in m.privacy]
    ends = [m.expires_at for m in (memory, *promised) if m.expires_at is not None]
    assert held.expires_at == min(ends, default=None)
    assert ("retain" in held.privacy) == bool(promised or "retain" in memory.privacy)
    assert inherit_retention(held, sources) == held


@given(st.integers(0, 2**53 - 1), st.none() | st.integers(0, 2**60), st.none() | st.integers(0, 2**53 - 1))
def test_an_end_is_never_after_what_was_said(since: int, retain: int | None, expires_at: int | None) -> None:
    end = promised_end({} if retain is None else {"retain": retain}, since, expires_at)
    assert (end is None) == (retain is None and expires_at is None)
    if end is not None:
        assert end <= 2**53 - 1
        assert expires_at is None or end <= expires_at


def test_with_whom_something_is_shared_is_nobody_elses_promise() -> None:
    shared = Memory("s", "t", "a", "semantic", "s", privacy={"retain": 3, "share_with": ["*"], "basis": "consent"})
    plain = Memory("p", "t", "a", "semantic", "p", privacy={"share_with": ["bob"]})
    assert inherit_retention(plain, [shared]).privacy == {"retain": 3, "share_with": ["bob"], "basis": "consent"}
    private = Memory("q", "t", "a", "semantic", "q")
    assert inherit_retention(private, [shared]).privacy == {"retain": 3, "basis": "consent"}
