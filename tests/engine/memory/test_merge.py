"""Merging: what survives, which memories are meant, and nothing that a merge may not make."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.engine.memory import expire
from commonplace.engine.memory.merge import combine, shared_with
from commonplace.engine.redaction import Secrets
from commonplace.engine.types import Merge
from commonplace.stores.base import Reach, Search
from commonplace.testing.subject import START, WHO, Subject
from commonplace.wire.errors import Conflict, Forbidden, NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS, Memory, Principal
from commonplace.wire.times import DAY_MS


def memory(id: str, content: str = "x", **fields: Any) -> Memory:
    return Memory(id, "t", "agent", "semantic", content, **fields)


A = memory("a", "Alice", created_at=30, confidence=0.4, metadata={"k": 1, "a": 1}, tags=["x"])
B = memory("b", "Alicia", created_at=10, confidence=0.9, metadata={"k": 2, "b": 2}, tags=["y", "x"])
C = memory("c", "Ally", created_at=20, confidence=0.9, metadata={"k": 3})


def test_keep_canonical_leaves_what_it_says_as_it_is() -> None:
    merged = combine(A, [B, C], "keep_canonical")
    assert merged.losers == [B, C]
    assert replace(merged.survivor, aliases=[], provenance={}) == A


def test_keep_highest_confidence_gives_ties_to_the_older() -> None:
    merged = combine(A, [B, C], "keep_highest_confidence")
    assert merged.losers == [A, C]
    assert replace(merged.survivor, aliases=[], provenance={}) == B
    assert combine(C, [B], "keep_highest_confidence").survivor.id == "b"
    assert combine(C, [replace(B, confidence=0.8)], "keep_highest_confidence").survivor.id == "c"


STRATEGIES = ("keep_canonical", "merge_content", "keep_highest_confidence")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("ends", "end"), [
    ([None, None], None), ([None, 50], None), ([50, None], None), ([50, 70], 70), ([70, 50], 70),
])  # fmt: skip
def test_the_survivor_lives_as_long_as_any_of_them(strategy: Any, ends: list[int | None], end: int | None) -> None:
    given = [memory(str(i), expires_at=each) for i, each in enumerate(ends)]
    assert combine(given[0], given[1:], strategy).survivor.expires_at == end


@pytest.mark.parametrize(("strategy", "end"), [("keep_canonical", None), ("merge_content", 50)])
def test_a_retention_promise_goes_with_the_text_it_was_made_for(strategy: Any, end: int | None) -> None:
    promised = memory("p", "other", expires_at=50, privacy={"retain": 1})
    assert combine(memory("a"), [promised], strategy).survivor.expires_at == end
    assert combine(promised, [memory("a")], strategy).survivor.expires_at == 50


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("statuses", "status"), [
    (["archived", "live"], "live"), (["live", "archived"], "live"), (["archived", "archived"], "archived"),
])  # fmt: skip
def test_live_beats_archived(strategy: Any, statuses: list[Any], status: str) -> None:
    given = [memory(str(i), status=each) for i, each in enumerate(statuses)]
    assert combine(given[0], given[1:], strategy).survivor.status == status


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_name_of_the_merged_is_a_name_of_the_survivor(strategy: Any) -> None:
    a = memory("a", aliases=["mine"], supersedes=["b", "older"])
    merged = combine(a, [memory("b", aliases=["theirs"], supersedes=["mine", "oldest"])], strategy).survivor
    assert merged.aliases == ["mine", "theirs", "b"]
    assert merged.supersedes == ["older", "oldest"], "and nothing replaces itself"


LIFTED = [
    ("project", "atlas", "zeus"), ("title", "One", "Two"), ("importance", 0.1, 0.9), ("entity_name", "alice", "bob"),
    ("session_id", "s1", "s2"), ("speaker", "Alice", "Bob"), ("event_time", 5, 7),
]  # fmt: skip


@pytest.mark.parametrize("written", ["in metadata", "as fields", "old as a field", "new as a field"])
@pytest.mark.parametrize(("name", "old", "new"), LIFTED)
def test_fields_say_what_the_metadata_shows(name: str, old: Any, new: Any, written: str) -> None:
    def made(id: str, value: Any, at: int, as_field: bool) -> Memory:
        metadata = {} if as_field else {name: value}
        return memory(id, id, created_at=at, metadata=metadata, **{name: value})

    older = made("a", old, 10, written in ("as fields", "old as a field"))
    newer = made("b", new, 20, written in ("as fields", "new as a field"))
    for canonical, duplicate in ((older, newer), (newer, older)):
        survivor = combine(canonical, [duplicate], "merge_content").survivor
        assert getattr(survivor, name) == new, "the last written wins"
        assert survivor.metadata.get(name, new) == new
        assert (name in survivor.metadata) is (written != "as fields")


def test_tags_are_united_where_they_are_shown_and_where_they_are_sought() -> None:
    a = memory("a", "a", created_at=1, tags=["x"], metadata={"tags": ["x"]})
    survivor = combine(a, [memory("b", "b", created_at=2, tags=["y"], metadata={"tags": ["y"]})], "merge_content")
    assert survivor.survivor.tags == survivor.survivor.metadata["tags"] == ["x", "y"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whatever_named_a_merged_memory_leads_to_the_survivor(subject: Subject, run: Any, strategy: Any) -> None:
    a, b = run(subject.remember("Bob likes green tea")), run(subject.remember("tea for Bob", aliases=["note"]))
    run(subject.merge(a, b, strategy=strategy))
    survivor = run(subject.list())[0].id
    for name in (a, b, "note"):
        assert run(subject.get(name)).id == survivor
    for name in (f"lesson_{a}", f"lesson_{b}", "note"):
        assert run(subject.engine.find(WHO, name)).id == survivor
    newer = run(subject.remember("Bob gave up green tea", supersedes=[b]))
    assert [m.id for m in run(subject.recall("what of green tea does Bob like", min_score=0.0))] == [newer, survivor]
    pointing = run(subject.remember("see there", metadata={"references": [b]}))
    assert set(run(subject.engine.graph.neighbours(WHO, "agent", pointing, 1))) == {survivor}
    lost = a if survivor == b else b
    with pytest.raises(Conflict, match=f"has become part of {survivor}"):
        run(subject.engine.update_with(WHO, "agent", lost, lambda m: replace(m, content="x"), expected_version=2))
    run(subject.update(survivor, content="changed"))
    assert run(subject.get("note")).content == "changed"


def test_an_alias_that_only_looks_like_the_id_of_the_merged_stays_with_its_own(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    other = run(subject.remember("three", aliases=[b]))
    run(subject.merge(a, b))
    assert run(subject.get(b)).id == other


def test_the_merged_text_is_embedded_again(subject: Subject, run: Any) -> None:
    """By meaning alone: the keyword leg is not asked."""
    a, b = run(subject.remember("zebra quagga okapi")), run(subject.remember("volcano lava magma"))
    run(subject.merge(a, b, strategy="merge_content"))
    vector = run(subject.engine.embed(WHO, ["zebra quagga okapi\nvolcano lava magma"]))[0]
    (found,) = run(subject.store.search(Search(Reach("local", ("agent",)), None, vector, 5)))
    assert found.memory.id == a
    assert found.dense == pytest.approx(1.0, abs=1e-3)


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


def test_merging_into_what_is_not_there_touches_nothing(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("a")), run(subject.remember("b"))
    for canonical, duplicates, fault in (
        ("nobody", [a], NotFound), ("nobody", [a, b], NotFound), (a, ["nobody"], NotFound),
        (a, [a], ValidationError), (a, [a, b], ValidationError),
    ):  # fmt: skip
        with pytest.raises(fault):
            run(subject.merge(canonical, *duplicates))
    assert len(run(subject.list())) == 2


MACHINE = '{"name": "%s", "initial": "a", "states": ["a", "b"], "transitions": []}'


def test_a_merge_makes_nothing_that_an_update_would_refuse(subject: Subject, run: Any) -> None:
    half = MAX_CONTENT_CHARS // 2
    long = [run(subject.remember(letter * half)) for letter in "ab"]
    machines = [run(subject.remember(MACHINE % name, type="procedural")) for name in ("one", "two")]
    for pair, fault in ((long, PayloadTooLarge), (machines, ValidationError)):
        request = Merge("agent", pair[0], [pair[1]], "merge_content")
        staged = replace(request, approval_required=True)
        for work in (
            subject.engine.merge(WHO, request),
            subject.engine.merge(WHO, staged),
            subject.engine.preview_merge(WHO, request),
        ):
            with pytest.raises(fault):
                run(work)
    assert len(run(subject.list())) == 4
    assert run(subject.engine.reviews.list(WHO)) == []
    same = run(subject.remember(MACHINE % "one", type="procedural"))
    assert run(subject.merge(machines[0], same, strategy="merge_content")).survivor.content == MACHINE % "one"
    run(subject.merge(*machines))


def test_an_alias_may_spell_the_id_of_another_agents_memory(subject: Subject, run: Any) -> None:
    theirs = run(subject.remember("theirs", "other"))
    ours, more, again = (run(subject.remember(text)) for text in ("ours", "more", "again"))
    named = run(subject.remember("named", aliases=[theirs]))
    assert run(subject.merge(ours, theirs)).losers[0].id == named
    assert run(subject.merge(theirs, more)).survivor.id == ours, "where the one of that name is now"
    assert run(subject.forget(theirs, again)).ids == [ours, again]
    assert run(subject.get(theirs, "other")).content == "theirs"


KEPT = {"privacy": {"retain": 30}}
END = START + 30 * DAY_MS


def test_a_merge_keeps_the_promise_of_what_it_takes_in(subject: Subject, run: Any) -> None:
    kept, other = run(subject.remember("Bob likes tea")), run(subject.remember("Bob's address", **KEPT))
    survivor = run(subject.merge(kept, other, strategy="merge_content")).survivor
    assert (survivor.expires_at, survivor.privacy["retain"]) == (END, 30)
    subject.clock.advance(30 * DAY_MS)
    assert run(expire.sweep(subject.engine._core, WHO)) == 2
    assert run(subject.store.history("local", kept)) == run(subject.store.history("local", other)) == []


def test_a_merge_cannot_put_a_secret_together(subject: Subject, run: Any) -> None:
    one, two = run(subject.remember("Bob's router password:")), run(subject.remember("hunter22x"))
    joined = Merge("agent", one, [two], "merge_content")
    run(subject.engine.merge(WHO, replace(joined, approval_required=True)))
    (review,) = run(subject.engine.reviews.list(WHO))
    assert review["diff"]["modified"][0]["after"]["content"] == "Bob's router password:\n<REDACTED:password>"
    merged = run(subject.engine.merge(WHO, joined))
    assert merged.survivor.content == run(subject.get(one)).content == "Bob's router password:\n<REDACTED:password>"


def test_a_merge_drops_what_was_registered_since(subject: Subject, run: Any) -> None:
    one, two = run(subject.remember("it opens with swordfish 12345")), run(subject.remember("more"))
    subject.engine._core.redactor.secrets = Secrets.of({"door": "swordfish 12345"})
    run(subject.engine.merge(WHO, Merge("agent", one, [two], "merge_content")))
    assert run(subject.get(one)).content == "it opens with <REDACTED:door>\nmore"


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([["bob"], ["bob", "eve"]], ["bob"]),
        ([["bob"], ["eve"]], []),
        ([["*"], ["bob"]], ["bob"]),
        ([["*"], ["*", "bob"]], ["*", "bob"]),
        ([["*"], None], []),
        ([None, None], []),
        ([["bob", "eve"], ["*"], ["eve", "bob"]], ["bob", "eve"]),
    ],
)
def test_a_joined_text_is_shared_with_whoever_may_see_each_of_them(
    given: list[list[str] | None], names: list[str]
) -> None:
    memories = [memory(str(i), privacy={} if each is None else {"share_with": each}) for i, each in enumerate(given)]
    assert shared_with(memories) == names
    joined = combine(memories[0], memories[1:], "merge_content").survivor
    assert joined.privacy.get("share_with", []) == names


def test_duplicates_are_forgotten_and_say_what_they_became(subject: Subject, run: Any) -> None:
    a, b, c = (run(subject.remember(text, aliases=[text])) for text in ("one", "two", "three"))
    merged = run(subject.merge("one", "two", c, strategy="merge_content"))
    assert (merged.survivor.id, merged.survivor.content, merged.changed) == (a, "one\ntwo\nthree", True)
    assert [(m.id, m.status, m.merged_into) for m in merged.losers] == [(b, "deleted", a), (c, "deleted", a)]
    assert [m.id for m in run(subject.list())] == [a]
    assert run(subject.recall("three"))[0].id == a
    entry = run(subject.engine.ledger.entries(WHO, operation="merge"))[-1]
    told = [(part.memory_id, json.loads(part.payload)) for part in entry.parts]
    assert [id for id, _ in told] == [a, b, c]
    assert told[0][1].items() >= {"version": 2, "status": "live", "kept": True}.items()
    for _, said in told[1:]:
        expected = {"version": 2, "status": "deleted", "merged_into": a, "strategy": "merge_content"}
        assert said.items() >= expected.items()


@pytest.mark.parametrize("strategy", ["keep_canonical", "keep_highest_confidence"])
def test_a_survivor_that_stays_as_it_was_is_found_as_before(subject: Subject, run: Any, strategy: Any) -> None:
    low, high = run(subject.remember("low", confidence=0.1)), run(subject.remember("high", confidence=0.9))
    content = "low" if strategy == "keep_canonical" else "high"
    survivor = run(subject.merge(low, high, strategy=strategy)).survivor
    assert survivor.id == (low if strategy == "keep_canonical" else high)
    first, last = run(subject.engine.history(WHO, "agent", survivor.id))
    assert (first.content, first.content_hash) == (last.content, last.content_hash)
    (found,) = run(subject.store.search(Search(Reach("local", ("agent",)), content, None, 5)))
    assert (found.memory.id, found.memory.content) == (survivor.id, content)


def test_an_entity_name_means_all_that_carry_it(subject: Subject, run: Any) -> None:
    ids = [run(subject.remember(text, entity_name="Alice")) for text in ("one", "two", "three")]
    other = run(subject.remember("else", entity_name="Bob"))
    merged = run(subject.merge(ids[0], "Alice"))
    assert (merged.survivor.id, [m.id for m in merged.losers]) == (ids[0], ids[1:])
    by_name = run(subject.merge("Bob", "Alice"))
    assert (by_name.survivor.id, [m.id for m in by_name.losers]) == (other, [ids[0]])


def test_a_merge_can_be_looked_at_first(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    seen = run(subject.engine.preview_merge(WHO, Merge("agent", a, [b], "merge_content")))
    assert (seen.survivor.content, [m.id for m in seen.losers], seen.changed) == ("one\ntwo", [b], True)
    assert {m.content for m in run(subject.list())} == {"one", "two"}


def test_a_change_meanwhile_is_merged_as_it_is_now(subject: Subject, run: Any) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    core = subject.engine._core
    plain, changes = core.make_entries, iter(["changed"])

    async def changing(*args: Any) -> Any:
        core.make_entries = plain  # type: ignore[method-assign]
        await subject.update(b, content=next(changes))
        return await plain(*args)

    core.make_entries = changing  # type: ignore[method-assign]
    assert run(subject.merge(a, b, strategy="merge_content")).survivor.content == "one\nchanged"


@pytest.mark.parametrize("who", [Principal("r", role="reader"), Principal("w", role="writer", agents=("other",))])
def test_only_writers_of_the_agent_merge(subject: Subject, run: Any, who: Principal) -> None:
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    for work in (subject.engine.merge(who, Merge("agent", a, [b])),
                 subject.engine.preview_merge(who, Merge("agent", a, [b]))):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)


def test_a_merge_of_nothing_is_refused(subject: Subject, run: Any) -> None:
    a = run(subject.remember("one"))
    with pytest.raises(ValidationError, match="duplicates must name at least one memory"):
        run(subject.merge(a))
