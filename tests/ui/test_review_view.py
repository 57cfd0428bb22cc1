"""A review as people read it."""

from __future__ import annotations

from typing import Any

from commonplace.ui.review_view import body, changes, fields_of, summary

NEW = {"id": "m1", "type": "semantic", "content": "Bob lives in Oslo", "confidence": 0.5, "tags": ["home"]}


def review(operation: str, **diff: Any) -> dict[str, Any]:
    return {"operation": operation, "diff": {"added": [], "removed": [], "modified": [], **diff}}


def test_the_summary_says_what_it_is_about() -> None:
    assert summary(review("remember", added=[NEW])) == "Bob lives in Oslo"
    assert summary(review("forget", removed=[NEW] * 5)).endswith("; …")
    assert (
        summary(review("statement", added=[{"id": "t", "subject": "a", "predicate": "is", "object": "b"}])) == "a is b"
    )
    assert summary({"operation": "remember", "erased": True}) == "(erased)"


def test_a_change_has_both_sides_and_every_field() -> None:
    after = {**NEW, "content": "Bob lives in Rome", "tags": ["home", "rome"], "metadata": {"room": 3}}
    (change,) = changes(review("update", modified=[{"before": NEW, "after": after}]))
    assert change.before is not None
    assert change.after is not None
    assert [run.text for run in change.before if run.changed] == ["Oslo"]
    assert [run.text for run in change.after if run.changed] == ["Rome"]
    assert {f.name: (f.before, f.after) for f in change.fields if f.changed} == {
        "tags": ("home", "home, rome"), "metadata.room": ("", "3"),
    }  # fmt: skip


def test_what_is_new_stands_beside_the_nearest_that_is_known() -> None:
    near = {"id": "m0", "similarity": 0.9, "relation": "similar", "type": "semantic", "content": "Bob lives in Rome"}
    (change,) = changes({**review("remember", added=[NEW]), "nearest": [near]})
    assert change.known == "Known already · similar"
    assert change.before is not None
    assert [run.text for run in change.before if run.changed] == ["Rome"]
    far = {**near, "similarity": 0.2}
    assert changes({**review("remember", added=[NEW]), "nearest": [far]})[0].before is None
    against = {**far, "relation": "contradicts", "content": "Bob lives in Paris"}
    (change,) = changes({**review("remember", added=[NEW]), "nearest": [near, against]})
    assert change.known == "Known already · contradicts"
    hidden = {"id": "m0", "similarity": 0.9, "relation": "similar"}  # whoever asked is not told what it says
    assert changes({**review("remember", added=[NEW]), "nearest": [hidden]})[0].before is None


def test_what_is_gone_or_hidden_is_said() -> None:
    assert body({"id": "x", "status": "expired"}) == "(expired)"
    assert body({"id": "x"}) == "(not shown to you)"
    assert body({"id": "x", "content": {"name": "door"}}) == '{\n "name": "door"\n}'


def test_each_field_is_told_once_and_times_as_people_read_them() -> None:
    shown = {**NEW, "expires_at": 1_750_000_000_000, "metadata": {"tags": ["home"], "room": {"n": 3}}}
    assert fields_of(shown) == {
        "type": "semantic", "confidence": "0.5", "tags": "home", "expires_at": "2025-06-15 15:06",
        "metadata.room": '{"n": 3}',
    }  # fmt: skip
