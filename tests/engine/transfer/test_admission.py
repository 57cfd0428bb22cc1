"""Rules about changing and forgetting hold where an import does it to a memory that is here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from commonplace.testing.subject import WHO, Subject
from commonplace.wire.record import Memory

FIRST = Memory(
    "01977947-3800-729e-a907-e5e26cc71904", "", "agent", "semantic", "Alice is in Oslo", created_at=5, updated_at=5
)
CHANGED = replace(FIRST, content="Alice is in Bergen", updated_at=6)
ARCHIVED = replace(FIRST, status="archived", updated_at=6)
FORGOTTEN = replace(FIRST, status="deleted", updated_at=6)
BACK = replace(FIRST, updated_at=7)


def rule(operation: str, action: str, **when: Any) -> list[dict[str, Any]]:
    return [{"name": "no", "when": {"operation": [operation], **when}, "action": action}]


def brought(subject: Subject, run: Any, *versions: Memory, dry_run: bool = False) -> Any:
    return run(subject.engine.imports.memories(WHO, [versions], set(), dry_run=dry_run))[0]


def refused(operation: str, action: str) -> str:
    asks = "the policy 'no' asks for a review, and this cannot wait for one: nothing was changed"
    return f"the policy 'no' refuses this {operation}" if action == "reject" else asks


@pytest.mark.parametrize("action", ["reject", "review"])
@pytest.mark.parametrize(
    ("operation", "added"),
    [("update", [CHANGED]), ("forget", [ARCHIVED]), ("forget", [FORGOTTEN, BACK]), ("update", [ARCHIVED, BACK])],
    ids=["changed", "archived", "forgotten and back", "archived and back"],
)
def test_what_a_rule_stops_is_left_out(
    subject: Subject, run: Any, operation: str, action: str, added: list[Memory]
) -> None:
    brought(subject, run, FIRST)
    run(subject.engine.policies.replace(WHO, rule(operation, action)))
    head = run(subject.store.audit_head("local"))
    done = brought(subject, run, FIRST, *added, dry_run=True)
    assert (done.result, done.reason) == ("left_out", refused(operation, action))
    assert run(subject.store.audit_head("local")) == head
    done = brought(subject, run, FIRST, *added)
    assert (done.result, done.reason) == ("left_out", refused(operation, action))
    assert run(subject.get(FIRST.id)).version == 1


@pytest.mark.parametrize("action", ["reject", "review", "redact"])
@pytest.mark.parametrize(
    ("operation", "added"), [("update", ARCHIVED), ("forget", CHANGED)], ids=["forget is no update", "nor the reverse"]
)
def test_a_rule_is_asked_about_its_own_operation(
    subject: Subject, run: Any, operation: str, action: str, added: Memory
) -> None:
    brought(subject, run, FIRST)
    run(subject.engine.policies.replace(WHO, rule(operation, action)))
    assert brought(subject, run, FIRST, added).result == "written"
    held = run(subject.get(FIRST.id))
    assert (held.content, held.status) == (added.content, added.status)


def test_a_rule_masks_what_a_change_brings_and_knows_it_again(subject: Subject, run: Any) -> None:
    brought(subject, run, FIRST)
    run(subject.engine.policies.replace(WHO, rule("update", "redact", content="Bergen")))
    assert brought(subject, run, FIRST, CHANGED).result == "written"
    assert run(subject.get(FIRST.id)).content == "Alice is in <REDACTED:no>"
    assert brought(subject, run, FIRST, CHANGED).result == "known"
    later = replace(CHANGED, content="Alice is in Rome", updated_at=8)
    assert brought(subject, run, FIRST, CHANGED, later).result == "written"
    assert run(subject.get(FIRST.id)).content == "Alice is in Rome"


def test_a_rule_that_masks_leaves_forgetting_as_it_is(subject: Subject, run: Any) -> None:
    brought(subject, run, FIRST)
    run(subject.engine.policies.replace(WHO, rule("forget", "redact")))
    assert brought(subject, run, FIRST, ARCHIVED).result == "written"
    held = run(subject.get(FIRST.id))
    assert (held.content, held.status) == (FIRST.content, "archived")


@pytest.mark.parametrize("action", ["reject", "review"])
def test_what_is_here_already_asks_no_rule(subject: Subject, run: Any, action: str) -> None:
    brought(subject, run, FIRST, CHANGED)
    run(subject.engine.policies.replace(WHO, [{"name": "no", "when": {}, "action": action}]))
    head = run(subject.store.audit_head("local"))
    assert brought(subject, run, FIRST, CHANGED).result == "known"
    assert run(subject.store.audit_head("local")) == head


@pytest.mark.parametrize("operation", ["update", "forget"])
def test_a_memory_that_is_not_here_comes_with_its_history(subject: Subject, run: Any, operation: str) -> None:
    run(subject.engine.policies.replace(WHO, rule(operation, "reject")))
    assert brought(subject, run, FIRST, CHANGED, replace(CHANGED, status="archived")).result == "written"


def test_a_rule_about_remembering_holds_for_a_change_too(subject: Subject, run: Any) -> None:
    brought(subject, run, FIRST)
    run(subject.engine.policies.replace(WHO, rule("remember", "reject", content="Bergen")))
    assert brought(subject, run, FIRST, CHANGED).reason == refused("update", "reject")
