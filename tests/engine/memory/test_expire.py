"""Expiring: what a policy means, and what was promised to be gone by now."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from commonplace.engine.governance.decisions import Decision
from commonplace.engine.memory import expire
from commonplace.engine.memory.retention import retention_end
from commonplace.engine.types import Draft, Expire
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory, Principal
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


MET: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {  # a condition, what meets it, what does not
    "older_than_days": (30, {"created_at": NOW - 31 * DAY_MS}, {"created_at": NOW - 29 * DAY_MS}),
    "type": ("episodic", {"type": "episodic"}, {"type": "semantic"}),
    "confidence_below": (0.5, {"confidence": 0.4}, {"confidence": 0.6}),
    "no_recall_in_days": (7, {"last_recalled_at": NOW - 8 * DAY_MS}, {"last_recalled_at": NOW - 6 * DAY_MS}),
}


@pytest.mark.parametrize("names", [n for size in (1, 2, 3, 4) for n in combinations(MET, size)])
def test_every_condition_of_a_policy_must_hold(names: tuple[str, ...]) -> None:
    asked = Expire("agent", **{name: MET[name][0] for name in names})

    def due(unmet: str | None) -> bool:
        fields: dict[str, Any] = {"type": "semantic"}
        for name in names:
            fields |= MET[name][2 if name == unmet else 1]
        candidate = Memory("a", "t", "agent", content="x", **fields)
        lately = expire.not_recalled_lately(candidate, asked, NOW)
        return matches(candidate, expire.conditions(asked, NOW)) and lately

    assert due(None)
    assert not any(due(name) for name in names)


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


@pytest.mark.parametrize("action", ["forget", "archive", "demote"])
def test_each_action_does_what_it_says_and_is_told(subject: Subject, run: Any, action: Any) -> None:
    faint, firm = run(subject.remember("faint", confidence=0.1)), run(subject.remember("firm"))
    assert run(subject.expire(action, confidence_below=0.5)) == [faint]
    (memory_,) = run(subject.store.get("local", [faint]))
    status = {"forget": "deleted", "archive": "archived", "demote": "live"}[action]
    version = {"forget": 2, "archive": 2, "demote": 1}[action]
    demotion = expire.DEMOTION if action == "demote" else 1.0
    assert (memory_.status, memory_.version, memory_.demotion) == (status, version, demotion)
    assert [m.id for m in run(subject.recall("faint firm"))] == ([firm, faint] if action == "demote" else [firm])
    entry = run(subject.engine.ledger.entries(WHO))[-2]  # the last one is of the recall
    assert entry.operation == ("forget" if action == "forget" else "expire")
    told = [json.loads(part.payload) for part in entry.parts]
    said = {
        "forget": {"version": 2, "status": "deleted"},
        "archive": {"version": 2, "status": "archived"},
        "demote": {"demotion": expire.DEMOTION},
    }[action]
    assert told[0] == said | {name: told[0][name] for name in ("content_hash", "row_hash") if action != "demote"}
    assert told[1:] == ([{"reason": "expired by policy"}] if action == "forget" else [])


def test_an_archived_memory_is_not_expired_again(subject: Subject, run: Any) -> None:
    run(subject.remember("faint", confidence=0.1))
    assert len(run(subject.expire("archive", confidence_below=0.5))) == 1
    assert run(subject.expire("archive", confidence_below=0.5)) == []


def test_nothing_due_is_nothing_told(subject: Subject, run: Any) -> None:
    run(subject.remember("firm"))
    assert run(subject.expire("demote", confidence_below=0.5)) == []
    assert [entry.operation for entry in run(subject.engine.ledger.entries(WHO))] == ["remember"]


def test_a_recall_of_a_moment_ago_counts(subject: Subject, run: Any) -> None:
    id = run(subject.remember("the violin"))
    subject.clock.advance(8 * DAY_MS)
    asked = Expire("agent", no_recall_in_days=7)
    assert [m.id for m in run(subject.engine.preview_expire(WHO, asked))] == [id]
    run(subject.recall("violin"))
    assert run(subject.engine.preview_expire(WHO, asked)) == []
    assert run(subject.expire(no_recall_in_days=7)) == []
    subject.clock.advance(7 * DAY_MS + 1)
    assert run(subject.expire(no_recall_in_days=7)) == [id]


def test_many_are_expired_in_several_units_of_work(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire, "CHUNK", 2)
    ids = [run(subject.remember(str(i), confidence=0.1)) for i in range(5)]
    assert run(subject.expire(confidence_below=0.5)) == ids
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(WHO))]
    assert operations == ["remember"] * 5 + ["forget"] * 3


def test_a_policy_without_a_condition_would_expire_everything(subject: Subject, run: Any) -> None:
    for work in (subject.expire(), subject.engine.preview_expire(WHO, Expire("agent"))):
        with pytest.raises(ValidationError, match="policy must name at least one condition"):
            run(work)


def test_a_store_that_counts_no_recalls_cannot_tell_who_was_not_recalled(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(subject.store), "capabilities", subject.store.capabilities - {"recall_tracking"})
    with pytest.raises(ValidationError, match="no_recall_in_days needs a store that tracks recalls"):
        run(subject.expire(no_recall_in_days=1))


def test_readers_expire_nothing(subject: Subject, run: Any) -> None:
    with pytest.raises(Forbidden):
        run(subject.engine.preview_expire(Principal("r", role="reader"), Expire("agent", older_than_days=1)))


@pytest.mark.parametrize(
    ("review", "over"),
    [
        ({}, True),
        ({"status": "pending"}, True),
        ({"status": "approved"}, False),
        ({"draft": None}, False),
        ({"draft": {"privacy": {}, "expires_at": 1}}, False),
        ({"draft": {"privacy": {"retain": 1}, "expires_at": None}, "created_at": NOW - DAY_MS + 1}, False),
        ({"draft": {"privacy": {"retain": 9}, "expires_at": NOW}}, True),
    ],
)
def test_whether_a_review_still_quotes_too_much(review: dict[str, Any], over: bool) -> None:
    whole = {"status": "rejected", "created_at": NOW - DAY_MS,
             "draft": {"privacy": {"retain": 1}, "expires_at": None}, **review}  # fmt: skip
    end = retention_end(whole)
    assert (end is not None and end <= NOW) is over


def test_a_sweep_erases_what_was_promised_to_be_gone_whatever_became_of_it(subject: Subject, run: Any) -> None:
    kept = {"retain": 1}
    ids = [run(subject.remember(text, privacy=kept, confidence=0.1)) for text in ("live", "archived")]
    run(subject.expire("archive", confidence_below=0.5))
    later = run(subject.remember("later", "other", privacy={"retain": 2}))
    plain = run(subject.remember("plain", expires_at=subject.clock() + 1))
    subject.clock.advance(DAY_MS)
    assert run(expire.sweep(subject.engine._core, WHO)) == 2
    assert [m.id for m in run(subject.store.get("local", [*ids, later, plain]))] == [later, plain]
    assert run(expire.sweep(subject.engine._core, WHO)) == 0
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None
