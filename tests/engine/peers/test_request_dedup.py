"""Answers given a moment ago: the same for the same question, none once anything behind them has changed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from commonplace.engine.peers import request_dedup
from commonplace.engine.peers.request_dedup import ANSWER, SEEN, RequestDedup, RequestIdReused, request_key
from commonplace.testing.subject import START, WHO, Subject

UNTIL = START + 1000
ASKED = b'{"question": "what is pruning?"}'
UNDER = {"level": 1}
ANSWERED = {"answer": "it is identity"}


@pytest.fixture
def dedup(subject: Subject) -> RequestDedup:
    return subject.engine.peers.dedup


def keep(dedup: RequestDedup, run: Any, response: dict[str, Any] = ANSWERED, **changes: Any) -> dict[str, Any]:
    fields = {"key": "s", "asked": ASKED, "under": UNDER, "until": UNTIL, "versions": {}, **changes}
    given: dict[str, Any] = run(dedup.keep("local", response=response, **fields))
    return given


def find_answer(dedup: RequestDedup, run: Any, **changes: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = run(
        dedup.find_answer(**{"tenant": "local", "key": "s", "asked": ASKED, "under": UNDER, **changes})
    )
    return found


def test_the_same_question_gets_the_same_answer_until_its_time_is_over(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    assert find_answer(dedup, run) is None
    assert keep(dedup, run) == ANSWERED
    assert find_answer(dedup, run) == ANSWERED
    for other in ({"tenant": "acme"}, {"key": "t"}, {"under": {"level": 2}}):
        assert find_answer(dedup, run, **other) is None
    subject.clock.advance(999)
    assert find_answer(dedup, run) == ANSWERED
    subject.clock.advance(1)
    assert find_answer(dedup, run) is None


def test_an_id_used_for_something_else_is_refused(subject: Subject, run: Any, dedup: RequestDedup) -> None:
    keep(dedup, run)
    with pytest.raises(RequestIdReused):
        find_answer(dedup, run, asked=b"another")
    with pytest.raises(RequestIdReused):
        keep(dedup, run, asked=b"another")
    subject.clock.advance(1000)
    assert find_answer(dedup, run, asked=b"another") is None, "it is free again"
    keep(dedup, run, {"answer": "another"}, asked=b"another", until=UNTIL + 5000)
    assert find_answer(dedup, run, asked=b"another") == {"answer": "another"}


def test_of_several_that_asked_at_once_all_get_the_first_answer(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    async def together() -> list[dict[str, Any]]:
        return await asyncio.gather(
            *(dedup.keep("local", "s", ASKED, UNDER, UNTIL, {"answer": n}, {}) for n in range(5))
        )

    given = run(together())
    assert all(answer == given[0] for answer in given)


def test_an_answer_under_one_level_of_trust_is_never_given_under_another(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    keep(dedup, run)
    less = {"answer": "none for you"}
    assert keep(dedup, run, less, under={"level": 0}) == less
    assert find_answer(dedup, run, under={"level": 0}) == less
    assert find_answer(dedup, run) is None


def test_an_answer_stands_only_while_what_it_shows_is_as_it_was(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    def change(id: str) -> None:
        run(subject.update(id, content="changed"))

    def expire(id: str) -> None:
        run(subject.update(id, expires_at=subject.clock() + 1))
        subject.clock.advance(1)

    for n, act in enumerate((change, lambda id: run(subject.forget(id)), expire)):
        id = run(subject.remember(f"memory {n}"))
        keep(dedup, run, key=str(n), versions={id: 1})
        assert find_answer(dedup, run, key=str(n)) == ANSWERED
        act(id)
        assert find_answer(dedup, run, key=str(n)) is None
        fresh = {"answer": "as it is now"}
        assert keep(dedup, run, fresh, key=str(n), versions={id: 2}) == fresh


def test_erasing_a_memory_takes_answers_that_quote_it_along(subject: Subject, run: Any, dedup: RequestDedup) -> None:
    id = run(subject.remember("identity"))
    keep(dedup, run, versions={id: 1})
    run(subject.forget(id, hard_delete=True))
    assert run(subject.store.records("local", ANSWER)) == []
    assert find_answer(dedup, run) is None
    with pytest.raises(RequestIdReused):
        find_answer(dedup, run, asked=b"another")


def test_an_answer_about_what_has_changed_meanwhile_is_given_but_not_kept(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    id = run(subject.remember("identity"))
    run(subject.update(id, content="changed"))
    assert keep(dedup, run, versions={id: 1}) == ANSWERED
    assert run(subject.store.records("local", ANSWER)) == []


def test_without_versions_only_the_question_is_remembered(subject: Subject, run: Any, dedup: RequestDedup) -> None:
    assert keep(dedup, run, versions=None) == ANSWERED
    assert find_answer(dedup, run) is None
    with pytest.raises(RequestIdReused):
        find_answer(dedup, run, asked=b"another")


def test_what_is_remembered_of_a_question_is_a_salted_hash(subject: Subject, run: Any, dedup: RequestDedup) -> None:
    for name in ("s", "t"):
        keep(dedup, run, key=name)
    one, other = (record.value for record in run(subject.store.records("local", SEEN)))
    assert one["hash"] != other["hash"]
    assert "pruning" not in json.dumps([one, other])


def test_what_is_over_is_dropped_now_and_then(
    subject: Subject, run: Any, dedup: RequestDedup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_dedup, "_AT_ONCE", 2)
    for n in range(5):
        keep(dedup, run, key=str(n))
    assert len(run(subject.store.records("local", SEEN))) == 5
    subject.clock.advance(60_000)
    keep(dedup, run, key="late", until=subject.clock() + 1000)
    for kind in (SEEN, ANSWER):
        assert [record.key for record in run(subject.store.records("local", kind))] == ["late"]


def test_of_too_many_those_that_end_soonest_are_forgotten_first(
    subject: Subject, run: Any, dedup: RequestDedup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_dedup, "MAX_SEEN", 2)
    for n in range(4):
        keep(dedup, run, key=str(n), until=START + 10**6 + n)
    subject.clock.advance(60_000)
    keep(dedup, run, key="4", until=START + 10**6 + 4)
    assert {record.key for record in run(subject.store.records("local", SEEN))} == {"3", "4"}


def test_a_request_key_is_of_all_its_parts_in_order() -> None:
    assert request_key("a", "b") == request_key("a", "b")
    parts: list[tuple[object, ...]] = [("a", "b"), ("b", "a"), ("ab",), ("a", ["b"]), ()]
    assert len({request_key(*each) for each in parts}) == 5


def test_an_answer_is_not_given_again_once_a_rule_about_reading_was_made(
    subject: Subject, run: Any, dedup: RequestDedup
) -> None:
    keep(dedup, run)
    writing = {"name": "w", "when": {"content": "x"}, "action": "review"}
    run(subject.engine.policies.replace(WHO, [writing]))
    assert find_answer(dedup, run) == ANSWERED, "what is about writing changes nothing"
    reading = {"name": "r", "when": {"operation": ["recall"], "content": "identity"}, "action": "reject"}
    run(subject.engine.policies.replace(WHO, [writing, reading]))
    assert find_answer(dedup, run) is None
    assert keep(dedup, run, {"answer": "nothing"}) == {"answer": "nothing"}
    assert find_answer(dedup, run) == {"answer": "nothing"}
    run(subject.engine.policies.replace(WHO, []))
    assert find_answer(dedup, run) is None
