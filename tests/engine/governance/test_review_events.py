"""What happens to reviews: told in order, once, to whoever may see them, and from where they left off."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from staged_requests import REQUEST

from commonplace.config import GovernanceConfig
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft
from commonplace.testing.subject import DAY_MS, WHO, Subject
from commonplace.wire.record import Principal

YES, NO = Decision(True, "Alice"), Decision(False, "Alice")


def stage(subject: Subject, run: Any, who: Principal = WHO, agent: str = "agent") -> str:
    draft = Draft(agent, "semantic", "zanzibar")
    return str(run(subject.engine.remember(who, draft, approval={**REQUEST, "content": "zanzibar"})).review_id)


def test_everything_that_happens_to_reviews_is_told_in_order(subject: Subject, run: Any) -> None:
    events = subject.engine.review_events
    subject.engine.settings.governance = GovernanceConfig(review_days=1)
    start = run(events.head(WHO))
    first, second, third = (stage(subject, run) for _ in range(3))
    run(subject.remember("not about any review"))
    run(subject.engine.reviews.edit(WHO, first, Draft("agent", "semantic", "x"), {"content": "x"}))
    run(subject.engine.reviews.decide(WHO, first, YES))
    run(subject.engine.reviews.decide(WHO, second, NO))
    subject.clock.advance(DAY_MS)
    run(subject.engine.reviews.sweep(WHO))
    found, after = run(events.since(WHO, start))
    assert [(each["event"], each["review"]["id"]) for each in found] == [
        ("staged", first), ("staged", second), ("staged", third), ("edited", first), ("approved", first),
        ("rejected", second), ("expired", third),
    ]  # fmt: skip
    assert "zanzibar" not in json.dumps(found), "an event says nothing of what a memory says"
    assert run(events.since(WHO, after)) == ([], after)
    middle = found[2]["n"]
    assert [each["event"] for each in run(events.since(WHO, middle))[0]] == [e["event"] for e in found[3:]]


def test_each_is_told_of_their_own(subject: Subject, run: Any) -> None:
    wren = Principal("wren", role="writer")
    mine, theirs = stage(subject, run, wren), stage(subject, run, agent="other")
    since = subject.engine.review_events.since
    cases = (
        (WHO, {mine, theirs}), (wren, {mine}), (replace(wren, name="eve"), set()),
        (Principal("r", role="reviewer", agents=("other",)), {theirs}), (replace(WHO, tenant="acme"), set()),
    )  # fmt: skip
    for who, expected in cases:
        assert {each["review"]["id"] for each in run(since(who, 0))[0]} == expected
