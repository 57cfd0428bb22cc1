"""LangGraph's own tests of a store, as it publishes them with its source, on ours in the place of its store in memory.

`make test-integrations` fetches them beside the framework, in the version that is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commonplace.blocking import BlockingMemory

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed: make test-integrations")
from langgraph.store import memory as in_memory

from commonplace.integrations.langgraph import CommonplaceStore

FILES = sorted((Path(sys.prefix) / "langgraph-tests").glob("langgraph_checkpoint-*/tests/test_store.py"))
if not FILES:
    pytest.skip("LangGraph's tests are not there: make test-integrations", allow_module_level=True)

#: What is about something else than a store, or about the parts of theirs.
OTHER = {
    "test_async_batch_store": "a batching wrapper of LangGraph's around a stub",
    "test_async_batch_store_resilience": "a batching wrapper of LangGraph's around a stub",
    "test_async_batch_store_handles_cancellation": "a batching wrapper of LangGraph's around a stub",
    "test_get_text_at_path": "a function of LangGraph's",
    "test_get_text_at_path_with_non_dict_mapping": "a function of LangGraph's",
    "test_validate_op_namespace_rejects_invalid_labels": "a function of LangGraph's",
    "test_validate_op_namespace_allows_empty_prefix_and_wildcards": "a function of LangGraph's",
    "test_vector_store_initialization": "attributes of the store in memory; a memory has its own embedder",
    "test_embed_with_path": "equal scores, since each field has a vector; what of it holds here is below",
}
#: How the test that runs opens a memory; LangGraph's tests construct their stores themselves.
opening: list[Callable[[], BlockingMemory]] = []


class Store(CommonplaceStore):
    """Constructed as the store in memory is: without a memory, and with an index that says which fields are text."""

    def __init__(self, *, index: Any = None) -> None:
        super().__init__(opening[0](), index=(index or {}).get("fields"))


@pytest.fixture(autouse=True)
def memories(open_memory: Callable[[], BlockingMemory]) -> None:
    opening[:] = [open_memory]


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published() -> dict[str, Any]:
    """The names of their module, whose imports find our store."""
    theirs, helper = in_memory.InMemoryStore, "tests.embed_test_utils"
    try:
        in_memory.InMemoryStore = Store  # type: ignore[misc]
        sys.modules[helper] = load(helper, FILES[-1].with_name("embed_test_utils.py"))
        return vars(load("langgraph_published", FILES[-1]))
    finally:
        in_memory.InMemoryStore = theirs  # type: ignore[misc]
        sys.modules.pop(helper, None)


NAMES = published()
globals().update({name: value for name, value in NAMES.items() if name.startswith("test_") and name not in OTHER})
fake_embeddings = NAMES["fake_embeddings"]


def test_they_are_about_our_store() -> None:
    assert NAMES["InMemoryStore"] is Store
    assert OTHER.keys() <= {name for name in NAMES if name.startswith("test_")}
    assert len([name for name in NAMES if name.startswith("test_")]) > 25


FIELDS = {"index": {"fields": ["key0", "key1", "key3"]}}


def found(store: Any, query: str) -> list[str]:
    return [item.key for item in store.search(("test",), query=query)]


def test_the_fields_that_are_indexed_are_what_an_item_is_found_by() -> None:
    """As `test_embed_with_path` says it, but for scores: an item of LangGraph's store has a vector for each field, and
    the best of them counts, so that two items with one field in common score the same. Ours is one memory with one
    text, in which a field counts for less the more there are beside it, and an embedder that is not calibrated, as
    the one of these tests, gives scores that order one answer and compare with no other."""
    store = Store(**FIELDS)
    store.put(("test",), "doc1", {"key1": "xxx", "key2": "yyy", "key3": "zzz"})
    store.put(("test",), "doc2", {"key0": "uuu", "key1": "vvv", "key2": "www", "key3": "xxx"})
    assert sorted(found(store, "xxx")) == ["doc1", "doc2"]
    assert found(store, "uuu")[0] == "doc2"
    assert found(store, "zzz")[0] == "doc1"

    chosen = Store(index={"fields": ["key17"]})
    chosen.put(("test",), "doc3", {"key0": "aaa", "key1": "bbb", "key2": "ccc", "key3": "ddd"}, index=["key0", "key1"])
    chosen.put(("test",), "doc4", {"key0": "eee", "key1": "bbb", "key2": "fff", "key3": "ggg"}, index=["key1", "key3"])
    assert found(chosen, "aaa")[0] == "doc3"
    assert found(chosen, "ggg")[0] == "doc4"
    assert sorted(found(chosen, "bbb")) == ["doc3", "doc4"]


def test_what_is_not_indexed_is_found_by_no_question() -> None:
    """LangGraph's store in memory gives it at the end, without a score; what a store promises is `put`'s own words."""
    assert "Do not index item for semantic search. Still accessible through `get()`" in str(
        CommonplaceStore.put.__doc__
    )
    store = Store()
    store.put(("test",), "doc5", {"key0": "hhh"}, index=False)
    assert found(store, "hhh") == []
    assert store.get(("test",), "doc5").value == {"key0": "hhh"}
    assert [item.key for item in store.search(("test",))] == ["doc5"]
