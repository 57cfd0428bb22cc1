"""Rules about changing and forgetting hold where an import does it to a memory that is here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import commonplace.wire
from commonplace.engine.types import BatchItem, Draft, Receipt
from commonplace.stores.base import Entry, Transaction
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MAX_ALIAS_CHARS, MAX_KIND_CHARS, MAX_NAME_CHARS, Memory

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
    return run(subject.engine.imports.memories(WHO, [versions], dry_run=dry_run))[0]


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


#: What is no value of a field, wherever it comes from, and what just is.
BOUNDS: list[tuple[str, Any, str | None]] = [
    ("agent_id", "a" * 257, "agent_id must have 1 to 256 characters, not 257"),
    ("agent_id", "a" * 256, None),
    ("agent_id", "☃" * 256, None),
    ("user_id", "", "user_id must have 1 to 256 characters, not 0"),
    ("user_id", "u" * 257, "user_id must have 1 to 256 characters, not 257"),
    ("user_id", "u" * 256, None),
    ("kind", "k" * 129, "kind must have at most 128 characters, not 129"),
    ("kind", "k" * 128, None),
    ("session_id", "", "session_id must not be empty"),
    ("session_id", "s" * 5000, None),
    ("project", "", "project must not be empty"),
    ("project", "p" * 5000, None),
    ("aliases", [""], "aliases must have 1 to 4,096 characters each, not 0"),
    ("aliases", ["x", "x" * 4097], "aliases must have 1 to 4,096 characters each, not 4,097"),
    ("aliases", ["x" * 4096], None),
    # No protocol has a bound for these: what is written by one must come back from a file.
    ("title", "", None),
    ("title", "t" * 300_000, None),
    ("speaker", "s" * 5000, None),
    ("entity_name", "e" * 5000, None),
    ("source", "", None),
    ("tags", ["", "t" * 5000], None),
    ("supersedes", ["", "s" * 5000], None),
]


@pytest.mark.parametrize("way", ["remember", "batch", "dry run of a batch", "import", "dry run", "earlier version"])
@pytest.mark.parametrize(("field", "value", "refusal"), BOUNDS, ids=lambda value: f"{value!s:.20}")
def test_the_bounds_of_a_field_hold_however_it_comes_in(
    subject: Subject, run: Any, way: str, field: str, value: Any, refusal: str | None
) -> None:
    memory = replace(FIRST, **{field: value})
    if way in ("import", "dry run", "earlier version"):
        agent = {"agent_id": memory.agent_id}
        versions = (memory, replace(CHANGED, **agent)) if way == "earlier version" else (memory,)
        done = brought(subject, run, *versions, dry_run=way == "dry run")
        assert (done.result, done.reason) == ("left_out" if refusal else "written", refusal or "")
        return
    draft = Draft(**({"agent_id": "agent", "type": "semantic", "content": "Alice is in Oslo"} | {field: value}))
    if way == "remember":
        try:
            run(subject.engine.remember(WHO, draft))
            said = None
        except ValidationError as fault:
            said = fault.message
    elif way == "batch":
        (answer,) = run(subject.engine.remember_many(WHO, [BatchItem(draft)]))
        said = None if isinstance(answer, Receipt) else answer.message
    else:
        answer = run(subject.engine.imports.preview_remember(WHO, BatchItem(draft)))
        said = None if isinstance(answer, Receipt) else answer.message
    assert said == refusal


@pytest.mark.parametrize(("field", "value", "refusal"), BOUNDS, ids=lambda value: f"{value!s:.20}")
def test_they_hold_for_a_change_and_what_was_kept_before_stays_changeable(
    subject: Subject, run: Any, field: str, value: Any, refusal: str | None
) -> None:
    if field == "agent_id":
        return  # which no change has
    id = run(subject.remember("Alice is in Oslo"))

    def change(memory: Memory) -> Memory:
        return replace(memory, **{field: value})

    if refusal is None:
        run(subject.engine.update_with(WHO, "agent", id, change))
    else:
        with pytest.raises(ValidationError, match=refusal):
            run(subject.engine.update_with(WHO, "agent", id, change))

        def forge(tx: Transaction) -> None:
            kept = tx.get(id)
            assert kept is not None
            tx.put(Entry(change(kept), None, b""))

        run(subject.store.transact("local", forge))
    run(subject.update(id, content="Alice is in Bergen"))
    assert getattr(run(subject.get(id)), field) == value


def load(name: str) -> Any:
    return json.loads((Path(commonplace.wire.__path__[0]) / "schemas" / f"{name}.json").read_text("utf-8"))


def test_no_protocol_takes_more_than_an_import() -> None:
    """What any of them has kept can be exported and imported."""
    remember = load("memorywire/operations/remember")["properties"]
    store = load("amp/operations/store")["properties"]["record"]["properties"]
    attestation = load("mrp/attestation-v1")["properties"]
    assert {remember[name]["maxLength"] for name in ("agent_id", "user_id")} == {MAX_NAME_CHARS}
    assert store["agent"]["maxLength"] == MAX_NAME_CHARS
    assert store["type"]["maxLength"] == MAX_KIND_CHARS
    assert max(store["id"]["maxLength"], attestation["id"]["maxLength"]) <= MAX_ALIAS_CHARS
