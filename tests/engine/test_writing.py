"""Writing once, whoever asks twice; who may; and what is refused before anything is kept."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import BatchItem, Engine
from commonplace.engine.types import Draft, Expire, Forget, Merge, Query, Receipt
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, Fault, Forbidden, NotFound, PayloadTooLarge, Unavailable, ValidationError
from commonplace.wire.record import MAX_CONTENT_CHARS, Principal
from commonplace.wire.times import DAY_MS

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


def test_a_staged_write_is_idempotent_too(over: Over) -> None:
    s, run = over
    first = keep(s, run, approval={"content": "x"})
    again = keep(s, run, approval={"content": "x"})
    assert (again.id, again.review_id) == (first.id, first.review_id)
    assert len(run(s.engine.reviews.list(WHO))) == 1


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


def test_the_longest_promise_to_retain_fits(over: Over) -> None:
    s, run = over
    id = run(s.remember("kept nearly for ever", privacy={"retain": 2**53 - 1}))
    assert run(s.get(id)).expires_at == 2**53 - 1
    soon = run(s.remember("kept a day", privacy={"retain": 1}))
    assert run(s.get(soon)).expires_at == s.clock() + DAY_MS
    run(s.forget(soon))
    assert run(s.store.get("local", [soon])) == []


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


def test_merging_into_what_is_not_there_touches_nothing(over: Over) -> None:
    s, run = over
    a, b = run(s.remember("a")), run(s.remember("b"))
    for canonical, duplicates, fault in (
        ("nobody", [a], NotFound), (a, ["nobody"], NotFound), (a, [a], ValidationError), (a, [a, b], ValidationError),
    ):  # fmt: skip
        with pytest.raises(fault):
            run(s.merge(canonical, *duplicates))
    assert len(run(s.list())) == 2


# authority

OPERATIONS = {
    "recall": ("reader", lambda e, who: e.recall(who, Query(("team-1",), "x"))),
    "list": ("reader", lambda e, who: e.list(who, ("team-1",))),
    "get": ("reader", lambda e, who: e.get(who, "team-1", "nothing")),
    "history": ("reader", lambda e, who: e.history(who, "team-1", "nothing")),
    "remember": ("writer", lambda e, who: e.remember(who, Draft("team-1", "semantic", "x"))),
    "stage": ("writer", lambda e, who: e.remember(who, Draft("team-1", "semantic", "x"), approval={})),
    "forget": ("writer", lambda e, who: e.forget(who, Forget("team-1", ["x"]))),
    "stage forget": (
        "writer", lambda e, who: e.forget(who, Forget("team-1", ["x"], approval_required=True))),
    "would forget": ("writer", lambda e, who: e.preview_forget(who, Forget("team-1", ["x"]))),
    "merge": ("writer", lambda e, who: e.merge(who, Merge("team-1", "x", ["y"]))),
    "expire": ("writer", lambda e, who: e.expire(who, Expire("team-1", older_than_days=1))),
    "update": ("writer", lambda e, who: e.update(who, "team-1", "nothing", lambda m: m)),
}  # fmt: skip
ROLES = ["reader", "writer", "reviewer", "admin"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_who_may_do_what(over: Over, name: str) -> None:
    s, run = over
    needed, operation = OPERATIONS[name]
    for role in ROLES:
        for agents, usable in (
            (("*",), True),
            (("team-*",), True),
            (("x", "team-1"), True),
            (("team",), False),
            ((), False),
        ):
            who = Principal("someone", role=role, agents=agents)  # type: ignore[arg-type]
            if usable and ROLES.index(role) >= ROLES.index(needed):
                with contextlib.suppress(NotFound):
                    run(operation(s.engine, who))
            else:
                with pytest.raises(Forbidden):
                    run(operation(s.engine, who))


def test_a_caller_sees_only_the_agents_it_may_use(over: Over) -> None:
    s, run = over
    for agent in ("team-1", "team-2", "other"):
        run(s.remember("x", agent))
    some = Principal("someone", role="reviewer", agents=("team-*",))
    assert run(s.engine.upkeep.status(some))["agents"] == {"team-1": 1, "team-2": 1}
    assert {e.agent_id for e in run(s.engine.ledger.entries(some))} == {"team-1", "team-2"}
    with pytest.raises(Forbidden):
        run(s.engine.recall(some, Query(("team-1", "other"), "x")))


# reading at its edges


@pytest.mark.parametrize("query", ["", " \n\t ", "\u3000"])
def test_an_empty_question_is_refused(over: Over, query: str) -> None:
    s, run = over
    with pytest.raises(ValidationError):
        run(s.recall(query))


def test_a_question_of_a_megabyte_is_refused(over: Over) -> None:
    s, run = over
    with pytest.raises(ValidationError) as refused:
        run(s.recall("word " * 200_000))
    assert "at most 32,768" in refused.value.message


@pytest.mark.parametrize("query", ["the of and to", "😀😀", "?!…", "\0", "a" * 32_768, "x " * 16_000, "٣", "'\"--;"])
def test_strange_questions_get_answers(over: Over, query: str) -> None:
    s, run = over
    ids = {run(s.remember("the cat and the hat")), run(s.remember("party 😀 time"))}
    assert {m.id for m in run(s.recall(query))} <= ids


def test_a_question_of_stop_words_still_finds_them(over: Over) -> None:
    s, run = over
    run(s.remember("to be or not to be"))
    run(s.remember("cats purr"))
    assert run(s.recall("to be or not to be", k=1))[0].content == "to be or not to be"


def test_agents_read_together_are_ranked_together(over: Over) -> None:
    s, run = over
    run(s.remember("violins are made of spruce", "one"))
    run(s.remember("cellos are made of maple", "two"))
    found = run(s.engine.recall(WHO, Query(("one", "two"), "what are cellos made of"))).hits
    assert [hit.memory.agent_id for hit in found] == ["two", "one"]


def test_an_alias_is_read_as_of_a_past_instant_too(over: Over) -> None:
    s, run = over
    run(s.remember("before", aliases=["note"]))
    at = s.clock()
    s.clock.advance(10)
    run(s.update("note", content="after"))
    assert (run(s.get("note", as_of=at)).content, run(s.get("note")).content) == ("before", "after")


class Moody(HashingEmbedder):
    """An embedder whose model is there only sometimes."""

    there = True

    def embed(self, texts: Any) -> Any:
        if not self.there:
            raise Unavailable("the model is on holiday")
        return super().embed(texts)


def test_a_missing_model_refuses_no_memory_and_is_forgiven(clock: FakeClock) -> None:
    embedder = Moody()

    async def scenario() -> None:
        store = InMemory(clock)
        engine = await Engine.open(store, embedder, clock=clock)
        s = Subject(engine, store, clock)
        embedder.there = False
        id = await s.remember("a violin lesson")
        found = await engine.recall(WHO, Query(("agent",), "violin"))
        assert [hit.memory.id for hit in found.hits] == [id]
        assert found.note is not None
        assert "the model is on holiday" in found.note
        embedder.there = True
        again = await engine.recall(WHO, Query(("agent",), "violin lessons"))
        assert again.note is None
        assert "note" not in await engine.health()
        await engine.close()

    asyncio.run(scenario())
