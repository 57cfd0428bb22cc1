"""Writing once, whoever asks twice; and what is refused before anything is kept."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from commonplace.embedders.base import Vectors
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.ledger.rows import row_hash
from commonplace.engine.memory.write import MAX_BATCH, idempotency_slot, new_memory
from commonplace.engine.types import Draft, Receipt, Update
from commonplace.stores.base import Reach, Search
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, Fault, NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS, Principal
from commonplace.wire.times import DAY_MS

DRAFT = Draft("agent", "semantic", "Alice plays the violin", metadata={"k": [1, {"x": "é"}]})


def remember_once(subject: Subject, run: Any, draft: Draft = DRAFT, key: str = "k1", **options: Any) -> Receipt:
    return run(subject.engine.remember(WHO, draft, idempotency_key=key, **options))  # type: ignore[no-any-return]


def test_the_same_key_and_body_gives_the_first_answer(subject: Subject, run: Any) -> None:
    first = remember_once(subject, run)
    subject.clock.advance(1000)
    again = remember_once(subject, run)
    assert (again.id, again.stored_at, again.stores) == (first.id, first.stored_at, first.stores)
    assert len(run(subject.list())) == 1
    assert remember_once(subject, run, replace(DRAFT, agent_id="other")).id != first.id


def test_a_key_belongs_to_its_agent_whatever_the_names_hold(subject: Subject, run: Any) -> None:
    one = remember_once(subject, run, replace(DRAFT, agent_id='a", "b'), "c")
    other = remember_once(subject, run, replace(DRAFT, agent_id="a"), 'b", "c')
    assert one.id != other.id


def test_the_same_key_with_another_body_is_a_conflict(subject: Subject, run: Any) -> None:
    remember_once(subject, run)
    for other in (replace(DRAFT, content="x"), replace(DRAFT, user_id="bob"), replace(DRAFT, metadata={})):
        with pytest.raises(Conflict):
            remember_once(subject, run, other)
    assert len(run(subject.list())) == 1


def test_a_key_whose_memory_was_erased_is_used_up(subject: Subject, run: Any) -> None:
    first = remember_once(subject, run)
    run(subject.forget(first.id))
    assert remember_once(subject, run).id == first.id
    run(subject.forget(first.id, hard_delete=True))
    with pytest.raises(Conflict):
        remember_once(subject, run)
    assert remember_once(subject, run, key="k2").id != first.id


def test_duplicates_at_the_same_moment_make_one_memory(subject: Subject, run: Any) -> None:
    async def together() -> list[Receipt]:
        return await asyncio.gather(*(subject.engine.remember(WHO, DRAFT, idempotency_key="k") for _ in range(20)))

    assert len({receipt.id for receipt in run(together())}) == 1
    assert len(run(subject.list())) == 1
    batch = run(
        subject.engine.remember_many(
            WHO, [BatchItem(DRAFT, "b"), BatchItem(DRAFT, "b"), BatchItem(replace(DRAFT, content="x"), "b")]
        )
    )
    assert batch[0].id == batch[1].id
    assert isinstance(batch[2], Conflict)


def test_in_a_batch_each_has_its_own_outcome(subject: Subject, run: Any) -> None:
    run(subject.remember("taken", aliases=["taken"]))
    items = [
        BatchItem(DRAFT), BatchItem(replace(DRAFT, content=" ")), BatchItem(replace(DRAFT, aliases=["taken"])),
        BatchItem(replace(DRAFT, aliases=["new"])), BatchItem(replace(DRAFT, aliases=["new"])),
        BatchItem(replace(DRAFT, content="x" * (MAX_CONTENT_CHARS + 1))),
    ]  # fmt: skip
    done = run(subject.engine.remember_many(WHO, items))
    assert [type(d).__name__ for d in done] == [
        "Receipt", "ValidationError", "Conflict", "Receipt", "Conflict", "PayloadTooLarge"]  # fmt: skip
    assert len(run(subject.list())) == 3
    assert run(subject.engine.ledger.verify(WHO)).entries == 3
    for wrong in ([], [BatchItem(DRAFT)] * 1001):
        with pytest.raises(ValidationError):
            run(subject.engine.remember_many(WHO, wrong))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"content": " \n\t"}, ValidationError),
        ({"content": "x" * (MAX_CONTENT_CHARS + 1)}, PayloadTooLarge),
        ({"expires_at": 1}, ValidationError),
        *(({"agent_id": f"a{control}b"}, ValidationError) for control in "\n\r\t\x00\x1b\x7f\x9b"),
        ({"aliases": ["a", "a"]}, ValidationError),
        ({"type": "procedural", "content": '{"states": ["a"], "before": "os.system"}'}, ValidationError),
        ({"embedding": [1.0, 2.0]}, ValidationError),
        ({"embedding": [0.0] * 256}, ValidationError),
    ],
)
def test_what_is_refused_leaves_nothing(subject: Subject, run: Any, fields: dict[str, Any], fault: type[Fault]) -> None:
    with pytest.raises(fault):
        run(subject.engine.remember(WHO, replace(DRAFT, **fields)))
    assert run(subject.list()) == []
    assert run(subject.engine.ledger.entries(WHO)) == []


def test_what_an_odd_agent_has_can_still_be_erased(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("commonplace.engine.memory.write.check_agent_name", lambda agent_id: None)
        kept = run(subject.engine.remember(WHO, replace(DRAFT, agent_id="a\nb")))
    with pytest.raises(ValidationError, match="agent_id"):
        run(subject.engine.graph.assert_fact(WHO, "a\nb", subject="Alice", predicate="plays", object="violin"))
    assert run(subject.get(kept.id, "a\nb")).content == DRAFT.content
    run(subject.forget(kept.id, agent="a\nb", hard_delete=True))
    with pytest.raises(NotFound):
        run(subject.get(kept.id, "a\nb"))


def test_an_embedding_given_is_the_one_searched(subject: Subject, run: Any) -> None:
    """By meaning alone: the one that was given is there, and that of the text is not."""
    id = run(subject.remember("unrelated words entirely", embedding=[0.0] * 255 + [3e38]))
    of_text = HashingEmbedder().embed(["unrelated words entirely"])[0]
    given = np.eye(256, dtype=np.float32)[255]
    reach = Reach("local", ("agent",))
    for vector, alike in ((given, 1.0), (of_text, float(of_text @ given))):
        (found,) = run(subject.store.search(Search(reach, None, vector, limit=1)))
        assert (found.memory.id, found.dense) == (id, pytest.approx(alike, abs=1e-3))
    assert float(of_text @ given) < 0.9


def test_content_may_have_262144_characters_and_no_more(subject: Subject, run: Any) -> None:
    kept = run(subject.remember("x" * 262_144))
    assert len(run(subject.get(kept)).content) == 262_144
    with pytest.raises(PayloadTooLarge):
        run(subject.remember("x" * 262_145))
    with pytest.raises(PayloadTooLarge):
        run(subject.update(kept, content="x" * 262_145))


def test_nobody_of_a_crowd_that_changes_one_memory_is_sent_away(subject: Subject, run: Any) -> None:
    id = run(subject.remember("nobody yet"))
    said = [f"client {n}" for n in range(60)]

    async def all_at_once() -> None:
        await asyncio.gather(*(subject.engine.update(WHO, Update("agent", id, content=each)) for each in said))

    run(all_at_once())
    assert sorted(m.content for m in run(subject.engine.history(WHO, "agent", id))[1:]) == sorted(said)


def test_updates_do_not_overwrite_what_they_have_not_seen(subject: Subject, run: Any) -> None:
    id = run(subject.remember("0"))

    async def add(i: int) -> None:
        await subject.engine.update_with(WHO, "agent", id, lambda m: replace(m, tags=[*m.tags, str(i)]))

    async def together() -> None:
        await asyncio.gather(*(add(i) for i in range(5)))

    run(together())
    memory = run(subject.get(id))
    assert (memory.version, sorted(memory.tags)) == (6, ["0", "1", "2", "3", "4"])
    with pytest.raises(Conflict) as refused:
        run(subject.engine.update_with(WHO, "agent", id, lambda m: replace(m, content="x"), expected_version=3))
    assert refused.value.details == {"version": 6}


@pytest.mark.parametrize("change", ["update", "merge"])
def test_a_demotion_meanwhile_is_not_lost(subject: Subject, run: Any, change: str) -> None:
    core = subject.engine._core
    a, b = run(subject.remember("one")), run(subject.remember("two"))
    plain = core.make_entries

    async def demoting(*args: Any) -> Any:
        await core.transact("local", lambda tx: tx.demote([a, b], 0.25))
        return await plain(*args)

    core.make_entries = demoting  # type: ignore[method-assign]
    if change == "update":
        run(subject.update(a, content="three"))
    else:
        run(subject.merge(a, b, strategy="merge_content"))
        assert run(subject.store.get("local", [b]))[0].demotion == 0.25
    assert run(subject.get(a)).demotion == 0.25


class RefusingEmbedder(HashingEmbedder):
    """Refuses some texts, as a server of embeddings may."""

    def embed(self, texts: Any) -> Vectors:
        if any("unspeakable" in text for text in texts):
            raise ValidationError("this text cannot be embedded")
        return np.asarray(super().embed(texts))


def test_a_bad_item_fails_alone_and_a_bad_chunk_fails_together(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), RefusingEmbedder(), clock=clock)
        items = [BatchItem(Draft("agent", "semantic", f"number {i}")) for i in range(100)]
        items[3].draft.embedding = [1.0]
        items[99].draft.content = "unspeakable"
        done = await engine.remember_many(WHO, items)
        assert len(done) == 100 < MAX_BATCH
        kept = (await engine.list(WHO, ("agent",), limit=1000)).memories
        assert {m.id for m in kept} == {r.id for r in done if isinstance(r, Receipt)}
        assert isinstance(done[3], ValidationError)
        assert all(isinstance(r, Receipt) for i, r in enumerate(done[:64]) if i != 3)
        assert isinstance(done[99], ValidationError)
        with pytest.raises(ValidationError):
            await engine.remember(WHO, items[3].draft, approval={"content": "x"})
        await engine.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("one", "other"), [(("a", "b"), ("a", "c")), (("a", "b"), ("b", "b")), (('a"', "b"), ("a", '"b'))]
)
def test_no_two_keys_share_a_slot(one: tuple[str, str], other: tuple[str, str]) -> None:
    slots = {idempotency_slot(Draft(agent, "semantic", "x"), key) for agent, key in (one, other)}
    assert len(slots) == 2


def test_a_draft_becomes_a_memory_of_whoever_wrote_it() -> None:
    who = Principal("alice", "acme")
    draft = replace(DRAFT, title="T", tags=["x"], provenance={"dialect": "amp"}, privacy={"retain": 2}, aliases=["n"])
    made, again = new_memory(who, draft, 1000), new_memory(who, draft, 1000, id="given")
    assert (made.tenant, made.agent_id, made.kind, made.status) == ("acme", "agent", "semantic", "live")
    assert (made.title, made.tags, made.aliases) == ("T", ["x"], ["n"])
    assert made.provenance == {"principal": "alice", "dialect": "amp"}
    assert made.expires_at == 1000 + 2 * DAY_MS
    assert (made.created_at, made.version, made.seq) == (0, 0, 0), "given when it is committed"
    assert made.content_hash != again.content_hash, "salted"
    assert again.id == "given"
    assert new_memory(who, replace(draft, kind="lesson"), 0).kind == "lesson"


def test_a_write_is_numbered_timed_and_audited(subject: Subject, run: Any) -> None:
    receipt = run(subject.engine.remember(WHO, DRAFT))
    assert receipt.memory is not None
    assert (receipt.id, receipt.stored_at, receipt.stores) == (receipt.memory.id, subject.clock(), [subject.store.name])
    memory = run(subject.get(receipt.id))
    assert (memory.version, memory.seq, memory.created_at, memory.updated_at) == (
        1,
        1,
        subject.clock(),
        subject.clock(),
    )
    (entry,) = run(subject.engine.ledger.entries(WHO))
    told = json.loads(entry.parts[0].payload)
    assert (entry.operation, entry.parts[0].memory_id) == ("remember", memory.id)
    said = {"version": 1, "content_hash": memory.content_hash, "status": "live"}
    assert told == {**said, "row_hash": row_hash(memory)}


def test_an_alias_names_one_memory_until_that_is_gone(subject: Subject, run: Any) -> None:
    first = run(subject.remember("first", aliases=["note"]))
    with pytest.raises(Conflict) as refused:
        run(subject.remember("second", aliases=["note"]))
    assert refused.value.details == {"alias": "note"}
    run(subject.remember("elsewhere", "other", aliases=["note"]))
    run(subject.forget(first))
    second = run(subject.remember("second", aliases=["note"]))
    assert run(subject.get("note")).id == second


def test_an_alias_of_what_has_expired_is_free_and_the_old_one_is_forgotten(subject: Subject, run: Any) -> None:
    first = run(subject.remember("first", aliases=["note"], expires_at=subject.clock() + 1))
    subject.clock.advance(1)
    second = run(subject.remember("second", aliases=["note"]))
    assert run(subject.get("note")).id == second
    assert run(subject.store.get("local", [first]))[0].status == "deleted"
    assert [e.operation for e in run(subject.engine.ledger.entries(WHO))] == ["remember", "forget", "remember"]


@pytest.mark.parametrize(
    ("fields", "fault", "field"),
    [
        ({"content": ""}, ValidationError, "content"),
        ({"content": " \n"}, ValidationError, "content"),
        ({"content": "x" * (MAX_CONTENT_CHARS + 1)}, PayloadTooLarge, "content"),
        ({"expires_at": 1}, ValidationError, "expires_at"),
        ({"type": "procedural", "content": '{"name": "x", "states": []}'}, ValidationError, "content.states"),
    ],
)
def test_an_update_that_is_refused_changes_nothing(
    subject: Subject, run: Any, fields: dict[str, Any], fault: type[Fault], field: str
) -> None:
    id = run(subject.remember("plain"))
    with pytest.raises(fault) as refused:
        run(subject.update(id, **fields))
    assert refused.value.details["field"] == field
    memory = run(subject.get(id))
    assert (memory.content, memory.version) == ("plain", 1)


def test_an_update_says_what_changed_and_hashes_new_content_anew(subject: Subject, run: Any) -> None:
    id = run(subject.remember("plain", tags=["a"]))
    before = run(subject.get(id))
    retagged = run(subject.update(id, tags=["b"], confidence=0.5))
    assert (retagged.content_hash, retagged.version) == (before.content_hash, 2)
    changed = run(subject.update(id, content="other", title="T", metadata={"k": 1}))
    assert changed.content_hash != before.content_hash
    entries = run(subject.engine.ledger.entries(WHO, operation="update"))
    told = [json.loads(entry.parts[0].payload)["changed"] for entry in entries]
    assert told == [["tags", "confidence"], ["content", "metadata", "title"]]


def test_what_was_over_before_may_stay_so_through_an_update(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x", expires_at=subject.clock() + 10))
    assert run(subject.update(id, content="y")).expires_at == subject.clock() + 10
    with pytest.raises(ValidationError):
        run(subject.update(id, expires_at=subject.clock()))


@pytest.mark.parametrize("ref", ["nothing", "0198c1f2-7b3e-7d10-9a55-000000000000"])
def test_what_is_not_there_cannot_be_updated(subject: Subject, run: Any, ref: str) -> None:
    with pytest.raises(NotFound, match="`commonplace list --agent agent` shows what there is"):
        run(subject.update(ref, content="x"))


def test_what_was_forgotten_while_it_was_changed_stays_forgotten(subject: Subject, run: Any) -> None:
    id = run(subject.remember("plain"))
    core = subject.engine._core
    plain = core.make_entries

    async def forgetting(*args: Any) -> Any:
        core.make_entries = plain  # type: ignore[method-assign]
        await subject.forget(id)
        return await plain(*args)

    core.make_entries = forgetting  # type: ignore[method-assign]
    with pytest.raises(NotFound):
        run(subject.update(id, content="late"))
    assert run(subject.gone(id))


def test_a_large_batch_is_kept_in_the_order_given(subject: Subject, run: Any) -> None:
    items = [BatchItem(replace(DRAFT, content=f"number {i}")) for i in range(70)]
    done = run(subject.engine.remember_many(WHO, items))
    contents = [run(subject.get(receipt.id)).content for receipt in done[::23]]
    assert contents == [f"number {i}" for i in range(0, 70, 23)]
    assert len(run(subject.list())) == 70


FAR = {"event_time": 10**17}
WRITERS: dict[str, Any] = {
    "remember": lambda e, id: e.remember(WHO, replace(DRAFT, metadata=FAR)),
    "a field": lambda e, id: e.remember(WHO, replace(DRAFT, event_time=10**17)),
    "staged": lambda e, id: e.remember(WHO, replace(DRAFT, metadata=FAR), approval={}),
    "upsert": lambda e, id: e.upsert(WHO, replace(DRAFT, metadata=FAR), None, "agent"),
    "replace": lambda e, id: e.upsert(WHO, replace(DRAFT, metadata=FAR), id, "agent"),
    "update": lambda e, id: e.update(WHO, Update("agent", id, metadata=FAR)),
    "staged update": lambda e, id: e.update(WHO, Update("agent", id, metadata=FAR, approval_required=True)),
}


@pytest.mark.parametrize("way", WRITERS)
def test_an_event_out_of_all_time_is_refused(subject: Subject, run: Any, way: str) -> None:
    id = run(subject.remember("a fact"))
    with pytest.raises(ValidationError, match=r"event_time must be .* 9007199254740991, or an ISO time"):
        run(WRITERS[way](subject.engine, id))
    assert [(m.id, m.version) for m in run(subject.list())] == [(id, 1)]
    assert run(subject.engine.reviews.list(WHO)) == []


def test_of_a_batch_only_the_event_out_of_all_time_is_refused(subject: Subject, run: Any) -> None:
    good, bad = run(subject.engine.remember_many(WHO, [BatchItem(DRAFT), BatchItem(replace(DRAFT, metadata=FAR))]))
    assert isinstance(good, Receipt)
    assert isinstance(bad, ValidationError)


@pytest.mark.parametrize("given", [2**53 - 1, 1 - 2**53, -5, 1.9, "1955-03-01", "soon", None, [], True])
def test_an_event_of_any_other_time_is_taken(subject: Subject, run: Any, given: Any) -> None:
    id = run(subject.remember("a fact", metadata={"event_time": given}))
    assert run(subject.get(id)).metadata == {"event_time": given}


@pytest.mark.parametrize("given", [2**53, -(2**53), 1e300])
def test_the_first_that_is_out_of_all_time(subject: Subject, run: Any, given: Any) -> None:
    with pytest.raises(ValidationError, match="event_time"):
        run(subject.remember("a fact", metadata={"event_time": given}))


def test_what_was_kept_with_such_an_event_can_still_be_changed(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("commonplace.engine.memory.write.check_event_time", lambda value: None)
        id = run(subject.remember("a fact", metadata=FAR))
    assert run(subject.engine.update(WHO, Update("agent", id, content="another"))).memory.version == 2
    assert run(subject.engine.update(WHO, Update("agent", id, metadata={**FAR, "k": 1}))).memory.version == 3
