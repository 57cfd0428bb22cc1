"""LangGraph's store over a memory, with LangGraph itself: as its own in-memory store behaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from adapter_cases import NOT_KEPT, REJECTS, SECRET, STAGES

from commonplace import SyncMemory
from commonplace.blocking import BlockingMemory

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed: make test-integrations")
from langgraph.store.memory import InMemoryStore

from commonplace.integrations.langgraph import CommonplaceStore

USERS, DOCS = ("users", "alice"), ("docs", "alice", "notes")


@pytest.fixture(params=["ours", "theirs"])
def store(request: pytest.FixtureRequest, memory: BlockingMemory) -> Any:
    """The same tests pass with the store that LangGraph ships, so they say what a store has to do."""
    return InMemoryStore() if request.param == "theirs" else CommonplaceStore(memory)


@pytest.fixture
def ours(memory: BlockingMemory) -> CommonplaceStore:
    return CommonplaceStore(memory)


def test_an_item_is_put_read_replaced_and_deleted(store: Any) -> None:
    assert store.get(USERS, "food") is None
    store.put(USERS, "food", {"likes": "tea", "count": 1, "deep": {"list": [1, None, "x"]}})
    first = store.get(USERS, "food")
    assert (first.namespace, first.key) == (USERS, "food")
    assert first.value == {"likes": "tea", "count": 1, "deep": {"list": [1, None, "x"]}}
    store.put(USERS, "food", {"likes": "coffee"})
    second = store.get(USERS, "food")
    assert second.value == {"likes": "coffee"}
    assert second.created_at >= first.created_at
    assert second.updated_at >= first.updated_at
    store.delete(USERS, "food")
    assert store.get(USERS, "food") is None
    store.delete(USERS, "food")  # twice is no mistake


def test_namespaces_and_keys_stay_apart(store: Any) -> None:
    store.put(("a", "b"), "c", {"n": 1})
    store.put(("a",), "b", {"n": 2})
    store.put(("a", 'b","c'), "c", {"n": 3})
    assert [store.get(*where).value["n"] for where in ((("a", "b"), "c"), (("a",), "b"))] == [1, 2]
    assert {item.value["n"] for item in store.search(("a", "b"))} == {1}
    assert {item.value["n"] for item in store.search(("a",))} == {1, 2, 3}


def test_search_by_prefix_filter_limit_and_offset(store: Any) -> None:
    for number in range(12):
        kind = "odd" if number % 2 else "even"
        store.put(DOCS, f"n{number}", {"number": number, "kind": kind, "in": {"a": number}})
    store.put(("elsewhere",), "x", {"number": 3, "kind": "odd"})
    assert len(store.search(("docs",))) == 10, "the default limit"
    assert {i.value["number"] for i in store.search(DOCS, filter={"kind": "odd"})} == {1, 3, 5, 7, 9, 11}
    assert {i.value["number"] for i in store.search(DOCS, filter={"number": {"$gte": 10}})} == {10, 11}
    assert {i.value["number"] for i in store.search(DOCS, filter={"number": {"$gt": 2, "$lt": 5}})} == {3, 4}
    assert {i.value["number"] for i in store.search(DOCS, filter={"in": {"a": 4}})} == {4}
    paged = [i.key for start in (0, 5, 10) for i in store.search(DOCS, limit=5, offset=start)]
    assert sorted(paged) == sorted(f"n{number}" for number in range(12)), "pages cover everything once"


@pytest.mark.parametrize("values", [(1, 2), (1, 1)], ids=["two values", "one value"])
def test_two_processes_that_put_a_key_make_one_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: tuple[int, int]
) -> None:
    both_looked = threading.Barrier(2, timeout=60)
    look = CommonplaceStore._find

    async def look_and_wait(self: CommonplaceStore, *where: Any) -> Any:
        found = await look(self, *where)
        if found is None:
            await asyncio.to_thread(both_looked.wait)
        return found

    opened = [SyncMemory(agent_id="graph", data=tmp_path, embedder="hashing") for _ in values]
    try:
        stores = [CommonplaceStore(memory) for memory in opened]
        with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
            patched.setattr(CommonplaceStore, "_find", look_and_wait)
            list(pool.map(lambda each: each[0].put(USERS, "food", {"n": each[1]}), zip(stores, values, strict=True)))
        assert len(opened[0].list()["memories"]) == 1
        item = stores[0].get(USERS, "food")
        assert item is not None
        assert item.value["n"] in values
        for store in (*stores, *stores):
            store.delete(USERS, "food")
            assert store.get(USERS, "food") is None
            store.put(USERS, "food", {"n": 3})
        assert len(opened[0].list()["memories"]) == 1
    finally:
        for memory in opened:
            memory.close()


def test_namespaces_are_listed(store: Any) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d"), ("a", "e"), ("f", "c")):
        store.put(namespace, "k", {"x": 1})
    assert store.list_namespaces(prefix=("a",)) == [("a", "b", "c"), ("a", "b", "d"), ("a", "e")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("f", "c")]
    assert store.list_namespaces(prefix=("a", "*"), max_depth=2) == [("a", "b"), ("a", "e")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d"), ("a", "e")]


def test_the_async_methods_do_the_same(store: Any) -> None:
    async def use() -> None:
        await store.aput(USERS, "tea", {"likes": "green"})
        assert (await store.aget(USERS, "tea")).value == {"likes": "green"}
        assert [item.key for item in await store.asearch(("users",))] == ["tea"]
        await store.adelete(USERS, "tea")
        assert await store.aget(USERS, "tea") is None

    asyncio.run(use())


def test_a_question_finds_by_text_and_says_how_well(ours: CommonplaceStore) -> None:
    ours.put(USERS, "food", {"text": "Alice is allergic to peanuts", "n": 1})
    ours.put(USERS, "place", {"text": "Alice lives in Lisbon", "n": 2})
    ours.put(("users", "bob"), "food", {"text": "Bob is allergic to peanuts"})
    ours.put(USERS, "hidden", {"text": "Alice is allergic to cats"}, index=False)
    found = ours.search(USERS, query="allergic to peanuts", limit=1)
    assert [item.key for item in found] == ["food"]
    assert found[0].score is not None
    assert {item.key for item in ours.search(USERS, query="Alice")} == {"food", "place"}, "not what is not indexed"
    assert [item.key for item in ours.search(USERS, query="Alice", filter={"n": 2})] == ["place"]


def test_a_ttl_ends_an_item(ours: CommonplaceStore) -> None:
    ours.put(USERS, "soon", {"x": 1}, ttl=60)
    assert ours.get(USERS, "soon") is not None
    ours.put(USERS, "soon", {"x": 2}, ttl=None)
    assert ours.get(USERS, "soon").value == {"x": 2}


@pytest.mark.parametrize("before", [None, 60], ids=["for good", "with a ttl"])
@pytest.mark.parametrize("after", [None, 90], ids=["then for good", "then with a ttl"])
def test_a_put_says_anew_when_the_item_ends(
    ours: CommonplaceStore, memory: BlockingMemory, before: float | None, after: float | None
) -> None:
    ours.put(USERS, "soon", {"x": 1}, ttl=before)
    first = ours.get(USERS, "soon")
    ours.put(USERS, "soon", {"x": 2}, ttl=after)
    second = ours.get(USERS, "soon")
    (kept,) = memory.list()["memories"]
    assert (second.value, second.created_at) == ({"x": 2}, first.created_at), "the same item"
    ends = kept.get("expires_at")
    assert (ends is None) if after is None else (ends - kept["updated_at"]) / 60_000 == pytest.approx(after, abs=1)
    assert len(memory.history(kept["id"])) == 2, "a replaced value stays in the history"


@pytest.mark.parametrize("ttls", [(None, None), (None, 60), (60, None), (60, 60)], ids=str)
@pytest.mark.parametrize("what", NOT_KEPT)
def test_a_put_that_is_refused_leaves_the_item_as_it_was(
    strict: BlockingMemory, what: str, ttls: tuple[float | None, float | None]
) -> None:
    store = CommonplaceStore(strict)
    store.put(USERS, "food", {"text": "tea"}, ttl=ttls[0])
    (before,) = strict.list()["memories"]
    with pytest.raises(ValueError):
        store.put(USERS, "food", {"text": NOT_KEPT[what]}, ttl=ttls[1])
    assert store.get(USERS, "food").value == {"text": "tea"}
    assert strict.list()["memories"] == [before]


def test_a_ttl_that_is_over_at_once_is_refused_and_leaves_the_item(ours: CommonplaceStore) -> None:
    ours.put(USERS, "food", {"likes": "tea"})
    with pytest.raises(ValueError, match="expires_at"):
        ours.put(USERS, "food", {"likes": "coffee"}, ttl=-1)
    assert ours.get(USERS, "food").value == {"likes": "tea"}


def test_an_item_that_ends_while_it_is_put_is_made_anew(
    ours: CommonplaceStore, memory: BlockingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.put(USERS, "soon", {"x": 1}, ttl=60)
    look = CommonplaceStore._find

    async def look_and_end(self: CommonplaceStore, *where: Any) -> Any:
        found = await look(self, *where)
        if found is not None:
            await memory.async_memory.forget(found["id"])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(CommonplaceStore, "_find", look_and_end)
        ours.put(USERS, "soon", {"x": 2}, ttl=60)
    assert ours.get(USERS, "soon").value == {"x": 2}


def test_items_are_memories_like_any_other(memory: BlockingMemory) -> None:
    store = CommonplaceStore(memory, index=["text"])
    memory.remember("Something that no graph wrote")
    store.put(USERS, "food", {"text": "Alice is allergic to peanuts", "secret_plan": "none"})
    assert [hit.content for hit in memory.recall("peanuts", min_score=0, k=1)] == ["Alice is allergic to peanuts"]
    assert len(store.search(())) == 1, "and only its own are items"
    store.put(USERS, "food", {"text": "Alice is allergic to sesame"})
    (kept,) = [m for m in memory.list()["memories"] if m["content"].endswith("sesame")]
    assert len(memory.history(kept["id"])) == 2, "a replaced value stays in the history"


def test_an_async_memory_serves_the_async_methods(async_memory: Any) -> None:
    async def use() -> None:
        async with async_memory as memory:
            store = CommonplaceStore(memory)
            await store.aput(USERS, "tea", {"likes": "green"})
            assert (await store.aget(USERS, "tea")).value == {"likes": "green"}
            with pytest.raises(TypeError, match="SyncMemory"):
                store.get(USERS, "tea")

    asyncio.run(use())


def test_writers_at_the_same_time_make_one_item(ours: CommonplaceStore) -> None:
    async def use() -> None:
        await asyncio.gather(*(ours.aput(USERS, "tea", {"number": number}) for number in range(8)))

    asyncio.run(use())
    assert len(ours.search(USERS)) == 1


@pytest.mark.parametrize("lacks", ["value", "key", "namespace"])
def test_what_has_half_of_an_items_metadata_is_passed_over(
    ours: CommonplaceStore, memory: BlockingMemory, lacks: str
) -> None:
    ours.put(USERS, "food", {"likes": "tea"})
    whole = {"place": '["users","odd"]', "within": ["[]"], "namespace": ["users"], "key": "odd", "indexed": True,
             "value": {"likes": "tea"}}  # fmt: skip
    half = {name: value for name, value in whole.items() if name != lacks}
    memory.remember("likes tea", metadata={"langgraph": half})
    for query in (None, "tea"):
        assert [item.key for item in ours.search((), query=query)] == ["food"]
    assert ours.list_namespaces() == [USERS]
    assert ours.get(("users",), "odd") is None


def test_people_and_agents_stay_apart(memory: BlockingMemory) -> None:
    every = [{}, {"user_id": "alice"}, {"user_id": "bob"}, {"agent_id": "other"}]
    for number, whose in enumerate(every[1:], 1):
        CommonplaceStore(memory, **whose).put(USERS, "n", {"n": number})
    for number, whose in enumerate(every[1:], 1):
        store = CommonplaceStore(memory, **whose)
        assert store.get(USERS, "n").value == {"n": number}
        assert [item.value for item in store.search(USERS, query="n")] == [{"n": number}]
    CommonplaceStore(memory, user_id="alice").delete(USERS, "n")
    assert CommonplaceStore(memory, user_id="bob").get(USERS, "n") is not None


def test_a_rule_stages_or_refuses_an_item(governed: BlockingMemory) -> None:
    store = CommonplaceStore(governed)
    with pytest.raises(ValueError, match="waits for a person's review"):
        store.put(USERS, "pay", {"text": f"her {STAGES}"})
    with pytest.raises(ValueError, match="no gossip"):
        asyncio.run(store.aput(USERS, "talk", {"text": REJECTS}))
    assert store.search(USERS) == []
    store.put(USERS, "food", {"text": f"my key is {SECRET}"})
    assert SECRET not in str(store.get(USERS, "food"))


def test_a_graph_remembers_across_threads(ours: CommonplaceStore) -> None:
    """LangGraph itself: a node that writes and one that, in another run, finds it."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.store.base import BaseStore
    from typing_extensions import TypedDict

    class State(TypedDict):
        question: str
        answer: str

    def learn(state: State, *, store: BaseStore) -> dict[str, str]:
        found = store.search(USERS, query=state["question"], limit=1)
        if not found:
            store.put(USERS, "learnt", {"text": state["question"]})
        return {"answer": found[0].value["text"] if found else ""}

    graph = StateGraph(State)
    graph.add_node("learn", learn)
    graph.add_edge(START, "learn")
    graph.add_edge("learn", END)
    app = graph.compile(store=ours)
    assert app.invoke({"question": "Alice is allergic to peanuts", "answer": ""})["answer"] == ""
    assert "peanuts" in app.invoke({"question": "what is Alice allergic to?", "answer": ""})["answer"]


def test_the_program_in_the_documentation_runs(documented: Callable[[str], dict[str, Any]]) -> None:
    names = documented("langgraph.md")
    assert [item.key for item in names["found"]] == ["food"]
    said = [message.content for message in names["conversation"]]
    assert said == ["I am Alice.", "Hello Alice.", "Who am I?", "You are Alice."], "across runs, without a checkpointer"
