"""Storing a whole record under its author's id: created once, then replaced, wherever it lives and whoever races."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from commonplace.engine.governance.decisions import Decision
from commonplace.engine.memory.change import inherit
from commonplace.engine.types import Draft, Update, UpsertResult
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.times import DAY_MS

DRAFT = Draft("ignored", "semantic", "use tabs", kind="lesson")


def upsert(
    subject: Subject,
    run: Any,
    draft: Draft = DRAFT,
    ref: str | None = "n1",
    agent: str | None = "agent",
    **options: Any,
) -> UpsertResult:
    stored: UpsertResult = run(subject.engine.upsert(options.pop("who", WHO), draft, ref, agent, **options))
    return stored


def test_it_is_created_and_then_replaced_as_a_whole(subject: Subject, run: Any) -> None:
    first = upsert(subject, run, replace(DRAFT, title="Style", tags=["a"], metadata={"k": 1}, confidence=0.5))
    created = subject.clock()
    subject.clock.advance(10)
    second = upsert(subject, run, replace(DRAFT, content="use spaces", tags=["b"]))
    assert (first.created, second.created) == (True, False)
    assert first.receipt.id == second.receipt.id
    memory = run(subject.get("n1"))
    assert (memory.content, memory.title, memory.tags, memory.metadata) == ("use spaces", None, ["b"], {})
    assert (memory.confidence, memory.version) == (1.0, 2)
    assert (memory.created_at, memory.updated_at) == (created, subject.clock())
    assert memory.aliases == ["n1"]
    assert second.receipt.stores == [subject.store.name]
    assert len(run(subject.list())) == 1


def test_the_audit_says_what_changed(subject: Subject, run: Any) -> None:
    upsert(subject, run)
    upsert(subject, run, replace(DRAFT, content="use spaces", type="procedural", project="x"))
    made, changed = run(subject.engine.ledger.entries(WHO))
    assert (made.operation, changed.operation) == ("remember", "update")
    payload = json.loads(changed.parts[0].payload)
    assert payload["changed"] == ["content", "type", "project"]
    assert payload["replaced"] is True


def test_what_has_expired_no_longer_holds_its_id(subject: Subject, run: Any) -> None:
    first = upsert(subject, run, replace(DRAFT, expires_at=subject.clock() + 10))
    subject.clock.advance(10)
    second = upsert(subject, run, replace(DRAFT, content="use spaces"))
    assert second.created
    assert second.receipt.id != first.receipt.id
    assert run(subject.get("n1")).content == "use spaces"


def test_without_an_id_each_is_new(subject: Subject, run: Any) -> None:
    one, other = (upsert(subject, run, ref=None) for _ in range(2))
    assert (one.created, other.created) == (True, True)
    assert one.receipt.id != other.receipt.id


def test_without_an_agent_a_new_one_is_shared_and_a_known_one_stays(subject: Subject, run: Any) -> None:
    upsert(subject, run, ref="mine", agent="agent")
    upsert(subject, run, ref="ours", agent=None)
    again = upsert(subject, run, replace(DRAFT, content="changed"), ref="mine", agent=None)
    assert (again.created, run(subject.get("mine")).content) == (False, "changed")
    assert run(subject.get("ours", "shared")).agent_id == "shared"


def test_each_agent_has_its_own_ids(subject: Subject, run: Any) -> None:
    upsert(subject, run, agent="one")
    assert upsert(subject, run, agent="two").created
    with pytest.raises(Conflict, match="names 2 records, of the agents one, two; say which agent's"):
        upsert(subject, run, agent=None)


@pytest.mark.parametrize("spelling", ["{}", "note_{}", "NOTE_{}"])
def test_an_id_of_ours_names_the_memory_too(subject: Subject, run: Any, spelling: str) -> None:
    id = run(subject.remember("before"))
    stored = upsert(subject, run, ref=spelling.format(id if spelling[0] != "N" else id.upper()))
    assert (stored.created, stored.receipt.id) == (False, id)


def test_a_record_stays_with_its_agent(subject: Subject, run: Any) -> None:
    id = run(subject.remember("theirs", "other"))
    with pytest.raises(Conflict, match="is a record of agent other; a record stays with its agent"):
        upsert(subject, run, ref=id)
    assert run(subject.get(id, "other")).content == "theirs"


def test_a_forgotten_record_is_made_anew(subject: Subject, run: Any) -> None:
    first = upsert(subject, run)
    run(subject.forget("n1"))
    second = upsert(subject, run)
    assert (second.created, second.receipt.id != first.receipt.id) == (True, True)
    assert run(subject.get("n1")).id == second.receipt.id


def test_a_new_record_can_wait_for_approval(subject: Subject, run: Any) -> None:
    staged = upsert(subject, run, approval={"content": "use tabs"})
    assert (staged.created, staged.receipt.stores) == (True, [])
    assert staged.receipt.review_id is not None
    assert run(subject.gone("n1"))


@pytest.mark.parametrize("edited", [False, True])
def test_replacing_a_known_record_waits_as_an_update_of_it(subject: Subject, run: Any, edited: bool) -> None:
    first = upsert(subject, run, ref="n2", draft=replace(DRAFT, title="Indenting", kind="lesson"))
    whole = replace(DRAFT, content="use spaces", kind="snippet", tags=["style"])
    staged = upsert(subject, run, ref="n2", draft=whole, approval={"content": "use spaces"})
    assert (staged.created, staged.receipt.id, staged.receipt.stores) == (False, first.receipt.id, [])
    assert run(subject.get("n2")).content == DRAFT.content
    review = run(subject.engine.reviews.get(WHO, staged.receipt.review_id))
    assert (review["operation"], review["versions"]) == ("update", {first.receipt.id: 1})
    (pair,) = review["diff"]["modified"]
    assert (pair["before"]["content"], pair["after"]["content"]) == (DRAFT.content, "use spaces")
    assert "replacement" not in review
    change = Update("agent", first.receipt.id, content="use two spaces") if edited else None
    run(subject.engine.reviews.decide(WHO, review["id"], Decision(True, "Alice", edited=change)))
    now = run(subject.get("n2"))
    assert (now.content, now.kind) == ("use two spaces" if edited else "use spaces", "snippet")
    assert (now.title, now.tags, now.version) == (None, ["style"], 2)


def test_a_replacement_of_what_moved_on_is_a_conflict(subject: Subject, run: Any) -> None:
    upsert(subject, run, ref="n2")
    staged = upsert(subject, run, ref="n2", draft=replace(DRAFT, content="use spaces"), approval={"content": "x"})
    upsert(subject, run, ref="n2", draft=replace(DRAFT, content="use both"))
    with pytest.raises(Conflict, match="has changed since"):
        run(subject.engine.reviews.decide(WHO, staged.receipt.review_id, Decision(True, "Alice")))
    assert run(subject.get("n2")).content == "use both"
    run(subject.engine.reviews.decide(WHO, staged.receipt.review_id, Decision(True, "Alice")))
    assert run(subject.get("n2")).content == "use spaces"


def test_two_at_once_make_one_record(subject: Subject, run: Any) -> None:
    async def together() -> list[UpsertResult]:
        drafts = [replace(DRAFT, content=f"version {i}") for i in range(6)]
        return await asyncio.gather(*(subject.engine.upsert(WHO, draft, "n1", "agent") for draft in drafts))

    done = run(together())
    assert sum(result.created for result in done) == 1
    assert len({result.receipt.id for result in done}) == 1
    assert run(subject.get("n1")).version == 6


def test_a_promise_to_the_person_survives_being_replaced(subject: Subject, run: Any) -> None:
    upsert(subject, run, replace(DRAFT, privacy={"retain": 30, "share_with": ["*"]}))
    upsert(subject, run, replace(DRAFT, content="another"))
    memory = run(subject.get("n1"))
    assert (memory.privacy, memory.expires_at) == ({"retain": 30}, START + 30 * DAY_MS)


def test_where_it_came_from_survives_and_who_wrote_last_is_told() -> None:
    provenance = {"principal": "alice", "from": "bob", "chain": ["x"], "dialect": "amp"}
    old = Memory("m", "t", "a", "semantic", "old", created_at=5, aliases=["n1"], provenance=provenance)
    new = Memory("m", "t", "a", "semantic", "new", provenance={"principal": "carol", "chain": ["y"]})
    kept = inherit(new, old)
    assert (kept.content, kept.created_at, kept.aliases) == ("new", 5, ["n1"])
    assert kept.provenance == {"from": "bob", "chain": ["y"], "principal": "carol"}
    assert new.aliases == [], "what was given is untouched"


@pytest.mark.parametrize("fields", [{"content": " "}, {"expires_at": 1}, {"embedding": [1.0]}])
def test_what_is_refused_leaves_the_record_as_it_was(subject: Subject, run: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        upsert(subject, run, replace(DRAFT, **fields))
    upsert(subject, run)
    with pytest.raises(ValidationError):
        upsert(subject, run, replace(DRAFT, **fields))
    assert run(subject.get("n1")).version == 1


@pytest.mark.parametrize("who", [Principal("r", role="reader"), Principal("w", role="writer", agents=("other",))])
def test_only_writers_of_the_agent_store(subject: Subject, run: Any, who: Principal) -> None:
    with pytest.raises(Forbidden):
        upsert(subject, run, who=who)
    upsert(subject, run)
    with pytest.raises(Forbidden):
        upsert(subject, run, who=who)


def test_a_record_of_an_agent_one_may_not_use_is_as_good_as_absent(subject: Subject, run: Any) -> None:
    theirs = upsert(subject, run, agent="secret").receipt.id
    who = Principal("w", role="writer", agents=("agent", "shared"))
    assert upsert(subject, run, ref=theirs, who=who).created
    assert run(subject.get(theirs)).agent_id == "agent"
    assert run(subject.store.get("local", [theirs]))[0].version == 1
