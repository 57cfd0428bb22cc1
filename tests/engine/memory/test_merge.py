"""Merging: what survives, which memories are meant, and nothing that a merge may not make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.memory import expire
from commonplace.engine.memory.merge import combine
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import Merge
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.errors import NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS, Memory
from commonplace.wire.times import DAY_MS


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id, "t", "agent", "semantic", content, **fields)


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


Over = tuple[Subject, Any]


def test_merging_into_what_is_not_there_touches_nothing(over: Over) -> None:
    s, run = over
    a, b = run(s.remember("a")), run(s.remember("b"))
    for canonical, duplicates, fault in (
        ("nobody", [a], NotFound), (a, ["nobody"], NotFound), (a, [a], ValidationError), (a, [a, b], ValidationError),
    ):  # fmt: skip
        with pytest.raises(fault):
            run(s.merge(canonical, *duplicates))
    assert len(run(s.list())) == 2


MACHINE = '{"name": "%s", "initial": "a", "states": ["a", "b"], "transitions": []}'


def test_a_merge_makes_nothing_that_an_update_would_refuse(over: Over) -> None:
    s, run = over
    half = MAX_CONTENT_CHARS // 2
    long = [run(s.remember(letter * half)) for letter in "ab"]
    machines = [run(s.remember(MACHINE % name, type="procedural")) for name in ("one", "two")]
    for pair, fault in ((long, PayloadTooLarge), (machines, ValidationError)):
        request = Merge("agent", pair[0], [pair[1]], "merge_content")
        staged = replace(request, approval_required=True)
        for work in (s.engine.merge(WHO, request), s.engine.merge(WHO, staged), s.engine.preview_merge(WHO, request)):
            with pytest.raises(fault):
                run(work)
    assert len(run(s.list())) == 4
    assert run(s.engine.reviews.list(WHO)) == []
    same = run(s.remember(MACHINE % "one", type="procedural"))
    assert run(s.merge(machines[0], same, strategy="merge_content")).survivor.content == MACHINE % "one"
    run(s.merge(*machines))


def test_an_alias_may_spell_the_id_of_another_agents_memory(over: Over) -> None:
    s, run = over
    theirs = run(s.remember("theirs", "other"))
    ours, more, again = (run(s.remember(text)) for text in ("ours", "more", "again"))
    named = run(s.remember("named", aliases=[theirs]))
    assert run(s.merge(ours, theirs)).losers[0].id == named
    named = run(s.remember("named again", aliases=[theirs]))
    assert run(s.merge(theirs, more)).survivor.id == named
    assert run(s.forget(theirs, again)).ids == [again, named]
    assert run(s.get(theirs, "other")).content == "theirs"


KEPT = {"privacy": {"retain": 30}}
END = START + 30 * DAY_MS


def test_a_merge_keeps_the_promise_of_what_it_takes_in(over: Over) -> None:
    s, run = over
    kept, other = run(s.remember("Bob likes tea")), run(s.remember("Bob's address", **KEPT))
    survivor = run(s.merge(kept, other, strategy="merge_content")).survivor
    assert (survivor.expires_at, survivor.privacy["retain"]) == (END, 30)
    s.clock.advance(30 * DAY_MS)
    assert run(expire.sweep(s.engine._core, WHO)) == 2
    assert run(s.store.history("local", kept)) == run(s.store.history("local", other)) == []


def test_a_merge_cannot_put_a_secret_together(over: Over) -> None:
    s, run = over
    one, two = run(s.remember("Bob's router password:")), run(s.remember("hunter22x"))
    joined = Merge("agent", one, [two], "merge_content")
    run(s.engine.merge(WHO, replace(joined, approval_required=True)))
    (review,) = run(s.engine.reviews.list(WHO))
    assert review["diff"]["modified"][0]["after"]["content"] == "Bob's router password:\n<REDACTED:password>"
    merged = run(s.engine.merge(WHO, joined))
    assert merged.survivor.content == run(s.get(one)).content == "Bob's router password:\n<REDACTED:password>"


def test_a_merge_drops_what_was_registered_since(over: Over) -> None:
    s, run = over
    one, two = run(s.remember("it opens with swordfish 12345")), run(s.remember("more"))
    s.engine._core.redactor.secrets = Secrets.of({"door": "swordfish 12345"})
    run(s.engine.merge(WHO, Merge("agent", one, [two], "merge_content")))
    assert run(s.get(one)).content == "it opens with <REDACTED:door>\nmore"
