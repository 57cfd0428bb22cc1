"""Retention promises: when something is to be gone, who inherits the promise, and that no change outlasts it."""

from __future__ import annotations

from typing import Any

import pytest

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
