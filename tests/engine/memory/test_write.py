"""Writing once, whoever asks twice; and what is refused before anything is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from commonplace.embedders.base import Vectors
from commonplace.embedders.hashing import Hashing
from commonplace.engine import BatchItem, Engine
from commonplace.engine.memory.write import MAX_BATCH
from commonplace.engine.types import Draft, Query, Receipt
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, Fault, PayloadTooLarge, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS

Over = tuple[Subject, Any]
DRAFT = Draft("agent", "semantic", "Alice plays the violin", metadata={"k": [1, {"x": "é"}]})


def keep(s: Subject, run: Any, draft: Draft = DRAFT, key: str = "k1", **options: Any) -> Receipt:
    return run(s.engine.remember(WHO, draft, idempotency_key=key, **options))  # type: ignore[no-any-return]


def test_the_same_key_and_body_gives_the_first_answer(over: Over) -> None:
    s, run = over
    first = keep(s, run)
    s.clock.advance(1000)
    again = keep(s, run)
    assert (again.id, again.stored_at, again.stores) == (first.id, first.stored_at, first.stores)
    assert len(run(s.list())) == 1
    assert keep(s, run, replace(DRAFT, agent_id="other")).id != first.id


def test_a_key_belongs_to_its_agent_whatever_the_names_hold(over: Over) -> None:
    s, run = over
    one = keep(s, run, replace(DRAFT, agent_id="a\nb"), "c")
    other = keep(s, run, replace(DRAFT, agent_id="a"), "b\nc")
    assert one.id != other.id


def test_the_same_key_with_another_body_is_a_conflict(over: Over) -> None:
    s, run = over
    keep(s, run)
    for other in (replace(DRAFT, content="x"), replace(DRAFT, user_id="bob"), replace(DRAFT, metadata={})):
        with pytest.raises(Conflict):
            keep(s, run, other)
    assert len(run(s.list())) == 1


def test_a_key_whose_memory_was_erased_is_used_up(over: Over) -> None:
    s, run = over
    first = keep(s, run)
    run(s.forget(first.id))
    assert keep(s, run).id == first.id
    run(s.forget(first.id, hard_delete=True))
    with pytest.raises(Conflict):
        keep(s, run)
    assert keep(s, run, key="k2").id != first.id


def test_duplicates_at_the_same_moment_make_one_memory(over: Over) -> None:
    s, run = over

    async def together() -> list[Receipt]:
        return await asyncio.gather(*(s.engine.remember(WHO, DRAFT, idempotency_key="k") for _ in range(20)))

    assert len({receipt.id for receipt in run(together())}) == 1
    assert len(run(s.list())) == 1
    batch = run(
        s.engine.remember_many(
            WHO, [BatchItem(DRAFT, "b"), BatchItem(DRAFT, "b"), BatchItem(replace(DRAFT, content="x"), "b")]
        )
    )
    assert batch[0].id == batch[1].id
    assert isinstance(batch[2], Conflict)


def test_in_a_batch_each_has_its_own_outcome(over: Over) -> None:
    s, run = over
    run(s.remember("taken", aliases=["taken"]))
    items = [
        BatchItem(DRAFT), BatchItem(replace(DRAFT, content=" ")), BatchItem(replace(DRAFT, aliases=["taken"])),
        BatchItem(replace(DRAFT, aliases=["new"])), BatchItem(replace(DRAFT, aliases=["new"])),
        BatchItem(replace(DRAFT, content="x" * (MAX_CONTENT_CHARS + 1))),
    ]  # fmt: skip
    done = run(s.engine.remember_many(WHO, items))
    assert [type(d).__name__ for d in done] == [
        "Receipt", "ValidationError", "Conflict", "Receipt", "Conflict", "PayloadTooLarge"]  # fmt: skip
    assert len(run(s.list())) == 3
    assert run(s.engine.ledger.verify(WHO)).entries == 3
    for wrong in ([], [BatchItem(DRAFT)] * 1001):
        with pytest.raises(ValidationError):
            run(s.engine.remember_many(WHO, wrong))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"content": " \n\t"}, ValidationError),
        ({"content": "x" * (MAX_CONTENT_CHARS + 1)}, PayloadTooLarge),
        ({"expires_at": 1}, ValidationError),
        ({"aliases": ["a", "a"]}, ValidationError),
        ({"type": "procedural", "content": '{"states": ["a"], "before": "os.system"}'}, ValidationError),
        ({"embedding": [1.0, 2.0]}, ValidationError),
        ({"embedding": [0.0] * 256}, ValidationError),
    ],
)
def test_what_is_refused_leaves_nothing(over: Over, fields: dict[str, Any], fault: type[Fault]) -> None:
    s, run = over
    with pytest.raises(fault):
        run(s.engine.remember(WHO, replace(DRAFT, **fields)))
    assert run(s.list()) == []
    assert run(s.engine.ledger.entries(WHO)) == []


def test_an_embedding_given_is_the_one_searched(over: Over) -> None:
    s, run = over
    far = [0.0] * 255 + [3e38]
    id = run(s.remember("unrelated words entirely", embedding=far))
    (hit,) = run(s.engine.recall(WHO, Query(("agent",), "zzz", explain=True))).hits
    assert hit.memory.id == id
    assert hit.explain["dense"] is not None
    assert abs(hit.explain["dense"]) <= 1.0


def test_updates_do_not_overwrite_what_they_have_not_seen(over: Over) -> None:
    s, run = over
    id = run(s.remember("0"))

    async def add(i: int) -> None:
        await s.engine.update(WHO, "agent", id, lambda m: replace(m, tags=[*m.tags, str(i)]))

    async def together() -> None:
        await asyncio.gather(*(add(i) for i in range(5)))

    run(together())
    memory = run(s.get(id))
    assert (memory.version, sorted(memory.tags)) == (6, ["0", "1", "2", "3", "4"])
    with pytest.raises(Conflict) as refused:
        run(s.engine.update(WHO, "agent", id, lambda m: replace(m, content="x"), expected_version=3))
    assert refused.value.details == {"version": 6}


@pytest.mark.parametrize("change", ["update", "merge"])
def test_a_demotion_meanwhile_is_not_lost(over: Over, change: str) -> None:
    s, run = over
    core = s.engine._core
    a, b = run(s.remember("one")), run(s.remember("two"))
    plain = core.make_entries

    async def demoting(*args: Any) -> Any:
        await core.transact("local", lambda tx: tx.demote([a, b], 0.25))
        return await plain(*args)

    core.make_entries = demoting  # type: ignore[method-assign]
    if change == "update":
        run(s.update(a, content="three"))
    else:
        run(s.merge(a, b, strategy="merge_content"))
        assert run(s.store.get("local", [b]))[0].demotion == 0.25
    assert run(s.get(a)).demotion == 0.25


class Picky(Hashing):
    """Refuses some texts, as a server of embeddings may."""

    def embed(self, texts: Any) -> Vectors:
        if any("unspeakable" in text for text in texts):
            raise ValidationError("this text cannot be embedded")
        return np.asarray(super().embed(texts))


def test_a_bad_item_fails_alone_and_a_bad_chunk_fails_together(clock: FakeClock) -> None:
    async def scenario() -> None:
        engine = await Engine.open(InMemory(clock), Picky(), clock=clock)
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
