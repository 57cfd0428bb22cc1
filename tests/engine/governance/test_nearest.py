"""The nearest memories: what a reviewer sees beside a proposal, and how it stands to each."""

from __future__ import annotations

from typing import Any

import pytest
from staged_requests import REQUEST, stage_all

from commonplace.engine.governance.nearest import NEAREST, relation
from commonplace.engine.types import Draft
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.record import Memory


def memory(content: str, **fields: Any) -> Memory:
    return Memory(fields.pop("id", "a"), "local", "agent", "semantic", content, **fields)


@pytest.mark.parametrize(
    ("proposed", "there", "expected"),
    [
        ("Alice likes tea", "alice  likes TEA", "duplicate"),
        ("Alice does not like tea", "Alice does like tea", "contradicts"),
        ("The office opens at 9", "The office opens at 10", "contradicts"),
        ("The limit is 500 euros", "The limit is 500 euros a day", "similar"),
        ("Alice likes tea", "Bob never flies to Oslo in winter", "similar"),
        ("The build takes 9 minutes", "Carol was born in 1984", "similar"),
        ("", "", "duplicate"),
    ],
)
def test_how_two_memories_stand_to_each_other(proposed: str, there: str, expected: str) -> None:
    assert relation(memory(proposed), memory(there, id="b")) == expected


def test_what_it_names_it_supersedes() -> None:
    assert relation(memory("x", supersedes=["old"]), memory("y", id="b", aliases=["old"])) == "supersedes"
    assert relation(memory("x", supersedes=["b"]), memory("x", id="b")) == "supersedes"


@pytest.mark.parametrize("operation", ["remember", "update", "forget", "merge", "statement"])
def test_every_review_shows_the_nearest_memories_but_not_those_of_its_diff(
    subject: Subject, run: Any, operation: str
) -> None:
    review = run(subject.engine.reviews.get(WHO, stage_all(subject, run)[operation]))
    diff = review["diff"]
    inside = {m["id"] for m in (*diff["added"], *diff["removed"], *(p["before"] for p in diff["modified"]))}
    near = review["nearest"]
    assert 0 < len(near) <= NEAREST
    assert not inside & {each["id"] for each in near}
    assert [each["similarity"] for each in near] == sorted((each["similarity"] for each in near), reverse=True)
    for each in near:
        assert 0 < each["similarity"] <= 1
        assert each["content"].startswith("tea")


def test_only_live_memories_of_the_same_agent_are_near(subject: Subject, run: Any) -> None:
    run(subject.remember("tea is green", "other"))
    run(subject.forget(run(subject.remember("tea is black"))))
    kept = run(subject.remember("tea is red"))
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "tea is white"), approval=REQUEST))
    assert [m["id"] for m in run(subject.engine.reviews.get(WHO, staged.review_id))["nearest"]] == [kept]
    run(subject.forget(kept, hard_delete=True))
    review = run(subject.engine.reviews.get(WHO, staged.review_id))
    assert (review["nearest"], review.get("erased")) == ([], None), "erasing a neighbour leaves the review alone"


def test_what_is_superseded_is_shown_however_far_it_is(subject: Subject, run: Any) -> None:
    for i in range(NEAREST + 1):
        run(subject.remember(f"tea is green {'green ' * i}"))
    old = run(subject.remember("Bob keeps bees", aliases=["bees"]))
    draft = Draft("agent", "semantic", "tea is green", supersedes=["bees"])
    staged = run(subject.engine.remember(WHO, draft, approval=REQUEST))
    near = run(subject.engine.reviews.get(WHO, staged.review_id))["nearest"]
    assert [each["id"] for each in near if each["relation"] == "supersedes"] == [old]


def test_what_is_far_away_is_not_shown(subject: Subject, run: Any) -> None:
    near, _ = run(subject.remember("tea is green")), run(subject.remember("Bob repaired the old bicycle on Sunday"))
    staged = run(subject.engine.remember(WHO, Draft("agent", "semantic", "tea is black"), approval={"content": "x"}))
    review = run(subject.engine.reviews.get(WHO, staged.review_id))
    assert [each["id"] for each in review["nearest"]] == [near]
