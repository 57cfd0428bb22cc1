"""What happens to a memory, a batch or a store between being chosen and being changed."""

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
from commonplace.engine.recall import recall_log
from commonplace.engine.types import Draft, Forget, Merge, Query, Receipt
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import PayloadTooLarge, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS

Over = tuple[Subject, Any]
MACHINE = '{"name": "%s", "initial": "a", "states": ["a", "b"], "transitions": []}'


def between(s: Subject, verb: str, act: Any) -> None:
    """Let `act` happen once, right after the store was asked for this."""
    plain = getattr(s.store, verb)

    async def asked(*args: Any, **options: Any) -> Any:
        answer = await plain(*args, **options)
        setattr(s.store, verb, plain)
        await act()
        return answer

    setattr(s.store, verb, asked)


def test_what_was_corrected_since_the_filter_found_it_stays(over: Over) -> None:
    s, run = over
    id = run(s.remember("wrong", confidence=0.1, tags=["draft"]))
    for forget in (
        lambda: s.engine.forget(WHO, Forget("agent", filter={"tags": "draft"})),
        lambda: s.engine.forget(WHO, Forget("agent", filter={"tags": "draft"}, hard_delete=True)),
        lambda: s.expire(confidence_below=0.5),
    ):
        between(s, "scan", lambda: s.update(id, content="right", confidence=1.0, tags=[]))
        run(forget())
        assert run(s.get(id)).content == "right"
        run(s.update(id, content="wrong", confidence=0.1, tags=["draft"]))
    between(s, "get", lambda: s.update(id, content="right"))
    assert run(s.forget(id)).ids == [id], "who names a memory means it whatever it says"


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


def test_the_store_is_closed_whatever_became_of_what_was_written_behind(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class Watched(InMemory):
        async def close(self) -> None:
            closed.append(True)

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        engine = await Engine.open(Watched(clock), clock=clock)
        monkeypatch.setattr(recall_log, "DELAY_SECONDS", 0)
        monkeypatch.setattr(recall_log, "_write", broken)
        await engine.recall(WHO, Query(("agent",), "x"))
        while engine.queues()["recalls"]:
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await engine.close()
        assert closed == [True]

    asyncio.run(scenario())
