"""The pure decisions: merging, expiring, checking procedures, cutting passages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine import procedures
from commonplace.engine.memory import expire
from commonplace.engine.memory.merge import combine
from commonplace.engine.memory.passages import OVERLAP_CHARS, PASSAGE_CHARS, passages, split
from commonplace.engine.types import Expire
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

NOW = 1_750_000_000_000


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id, "t", "agent", "semantic", content, **fields)


# merging

A = memory("a", "Alice", created_at=30, confidence=0.4, metadata={"k": 1, "a": 1}, tags=["x"])
B = memory("b", "Alicia", created_at=10, confidence=0.9, metadata={"k": 2, "b": 2}, tags=["y", "x"])
C = memory("c", "Ally", created_at=20, confidence=0.9, metadata={"k": 3})


def test_keep_canonical_changes_nothing_about_it() -> None:
    merged = combine(A, [B, C], "keep_canonical")
    assert (merged.survivor, merged.losers, merged.changed) == (A, [B, C], False)


def test_keep_highest_confidence_gives_ties_to_the_older() -> None:
    merged = combine(A, [B, C], "keep_highest_confidence")
    assert (merged.survivor, merged.losers, merged.changed) == (B, [A, C], False)
    assert combine(C, [B], "keep_highest_confidence").survivor is B
    assert combine(C, [replace(B, confidence=0.8)], "keep_highest_confidence").survivor is C


def test_merge_content_joins_texts_and_lets_the_last_written_metadata_win() -> None:
    merged = combine(A, [C, B], "merge_content")
    assert merged.changed
    assert merged.losers == [C, B]
    s = merged.survivor
    assert (s.id, s.content, s.confidence) == ("a", "Alice\nAlicia\nAlly", 0.9)
    assert s.metadata == {"k": 1, "a": 1, "b": 2}
    assert set(s.tags) == {"x", "y"}
    assert (A.content, A.metadata) == ("Alice", {"k": 1, "a": 1})  # what was given is untouched


def test_merge_content_says_the_same_thing_once() -> None:
    assert combine(A, [replace(B, content="Alice")], "merge_content").survivor.content == "Alice"


@given(st.permutations([A, B, C]), st.sampled_from(["keep_canonical", "merge_content", "keep_highest_confidence"]))
def test_one_survives_and_everyone_else_loses(everyone: list[Memory], strategy: Any) -> None:
    merged = combine(everyone[0], everyone[1:], strategy)
    assert sorted([merged.survivor.id, *(m.id for m in merged.losers)]) == ["a", "b", "c"]


# expiring

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


# procedures

MACHINE: dict[str, Any] = {
    "name": "book", "initial": "idle", "current": "idle", "states": ["idle", {"name": "paid"}], "metadata": {"x": 1},
    "transitions": [{"trigger": "pay", "source": "idle", "dest": "paid", "conditions": "is_ok", "unless": ["a", "b"]}],
}  # fmt: skip


def changed(**fields: Any) -> str:
    return json.dumps({**MACHINE, **fields})


def with_transition(**fields: Any) -> str:
    return changed(transitions=[{**MACHINE["transitions"][0], **fields}])


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(MACHINE), "  " + json.dumps(MACHINE), json.dumps({"states": ["a"]}),
        "First open the lid, then {carefully} pour.", "{not json} but prose", "[ ] a checkbox list", '"quoted"', "42",
        with_transition(source="*", dest="="), with_transition(source=["idle", "paid"]), with_transition(dest=None),
        changed(transitions=[]),
    ],
)  # fmt: skip
def test_procedures_that_are_kept(content: str) -> None:
    procedures.check(content)


@pytest.mark.parametrize("callback", sorted(procedures.CALLBACKS))
def test_every_callback_is_refused_by_name(callback: str) -> None:
    for content in (
        changed(**{callback: "os.system"}),
        with_transition(**{callback: "os.system"}),
        changed(states=["idle", {"name": "paid", callback: "x"}]),
    ):
        with pytest.raises(ValidationError) as refused:
            procedures.check(content)
        assert f".{callback} is a callback" in refused.value.message


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (with_transition(conditions="os.system"), "transitions[0].conditions must be bare names"),
        (with_transition(conditions=["ok", "a.b"]), "transitions[0].conditions must be bare names"),
        (with_transition(unless="__import__('os')"), "transitions[0].unless must be bare names"),
        (with_transition(conditions=[["x"]]), "must be bare names"),
        (with_transition(conditions=""), "must be bare names"),
        (with_transition(source="nowhere"), "source names 'nowhere', which is not one of the states"),
        (with_transition(dest="nowhere"), "dest names 'nowhere'"),
        (with_transition(trigger=""), "trigger must be a name"),
        (with_transition(shell="x"), "transitions[0].shell is not allowed; only conditions, dest, "),
        (changed(transitions=[{"trigger": "x"}]), "transitions[0].source is required"),
        (changed(transitions={}), "transitions must be a list"),
        (changed(transitions=["pay"]), "transitions[0] must be an object"),
        (changed(states=[]), "states must be a list of at least one"),
        (changed(states=[1]), "states[0] must be a state name"),
        (changed(states={"idle": 1}), "states must be a list"),
        (changed(initial="nowhere"), "initial must be one of the states idle, paid, not 'nowhere'"),
        (changed(current=["idle"]), "current must be one of the states"),
        (changed(name=1), "name must be a string"),
        (changed(metadata=[]), "metadata must be an object"),
        (changed(extra=1), "content.extra is not allowed"),
        ("[1, 2]", "must be a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_procedures_that_are_refused(content: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        procedures.check(content)
    assert sentence in refused.value.message


# passages

texts = st.text(max_size=400).map(lambda t: t * 12) | st.lists(
    st.sampled_from(["word ", "A sentence ends. ", "\n\n", "日本語。", "x" * 500, "! "]), max_size=300
).map("".join)


@given(texts)
def test_parts_cover_the_whole_text_in_order_and_are_bounded(text: str) -> None:
    parts = split(text)
    assert parts
    assert all(len(part) <= PASSAGE_CHARS + OVERLAP_CHARS for part in parts)
    assert parts[0] + "".join(part[OVERLAP_CHARS:] for part in parts[1:]) == text
    assert len(parts) <= 2 + len(text) // (2 * PASSAGE_CHARS // 3 - OVERLAP_CHARS)


def test_short_texts_stay_whole_and_every_part_carries_the_title() -> None:
    assert split("short") == ["short"]
    parts = passages(memory("a", "One sentence. " * 300, title="On boats"))
    assert len(parts) > 3
    assert all(part.startswith("On boats\n") for part in parts)
    assert all(part.rstrip().endswith(".") for part in parts)
    assert all(len(part) < 2000 for part in passages(memory("a", "x", title="t" * 100_000)))
