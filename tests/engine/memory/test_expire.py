"""Expiring: what a policy means, and what was promised to be gone by now."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.governance.reviews import Decision
from commonplace.engine.memory import expire
from commonplace.engine.types import Draft, Expire
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

NOW = 1_750_000_000_000


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id, "t", "agent", "semantic", content, **fields)


DAYS = {"older_than_days": 30, "confidence_below": 0.5, "no_recall_in_days": 7}


@pytest.mark.parametrize(
    ("policy", "fields", "due"),
    [
        ({"older_than_days": 30}, {"created_at": NOW - 30 * DAY_MS - 1}, True),
        ({"older_than_days": 30}, {"created_at": NOW - 30 * DAY_MS}, False),
        ({"older_than_days": 2**53 - 1}, {"created_at": 0}, False),
        ({"confidence_below": 0.5}, {"confidence": 0.49}, True),
        ({"confidence_below": 0.5}, {"confidence": 0.5}, False),
        ({"type": "semantic"}, {}, True),
        ({"type": "episodic"}, {}, False),
        ({"no_recall_in_days": 7}, {"created_at": NOW - 8 * DAY_MS}, True),
        ({"no_recall_in_days": 7}, {"created_at": NOW - 6 * DAY_MS}, False),
        ({"no_recall_in_days": 7}, {"created_at": 0, "last_recalled_at": NOW - 8 * DAY_MS}, True),
        ({"no_recall_in_days": 7}, {"created_at": 0, "last_recalled_at": NOW - 6 * DAY_MS}, False),
        ({"older_than_days": 1, "confidence_below": 0.5}, {"created_at": 0, "confidence": 0.9}, False),
        (DAYS, {"created_at": 0, "confidence": 0.1}, True),
    ],
)
def test_what_a_policy_means(policy: dict[str, Any], fields: dict[str, Any], due: bool) -> None:
    asked = Expire("agent", **policy)
    candidate = memory("a", **fields)
    assert (
        matches(candidate, expire.conditions(asked, NOW)) and expire.not_recalled_lately(candidate, asked, NOW)
    ) is due


KEPT = {"privacy": {"retain": 30}}


def test_a_rejected_write_is_not_quoted_for_longer_than_promised(subject: Subject, run: Any) -> None:
    for content, fields in (("Bob's address", KEPT), ("Bob likes tea", {})):
        request = {"agent_id": "agent", "type": "semantic", "content": content}
        staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", content, **fields), approval=request))
        run(subject.engine.reviews.decide(WHO, staged.review_id, Decision(False, "Alice")))
    subject.clock.advance(30 * DAY_MS - 1)
    assert run(expire.sweep(subject.engine._core, WHO)) == 0
    subject.clock.advance(1)
    assert run(expire.sweep(subject.engine._core, WHO)) == 1
    records = repr(run(subject.store.records("local", "review")))
    assert "address" not in records
    assert "tea" in records
    assert run(expire.sweep(subject.engine._core, WHO)) == 0
