"""LangGraph's own tests of a store, as it publishes them with its source, on ours in the place of its store in memory.

`make test-integrations` fetches them beside the framework, in the version that is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commonplace import SyncMemory

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
    "test_embed_with_path": "scores of one vector for each field; an item is one memory with one text",
}
opened: list[SyncMemory] = []
folder: list[Path] = []


class Store(CommonplaceStore):
    """Constructed as the store in memory is: without a memory, and with an index that says which fields are text."""

    def __init__(self, *, index: Any = None) -> None:
        data = folder[0] / str(len(opened))
        opened.append(SyncMemory(agent_id="graph", data=data, embedder="hashing"))
        super().__init__(opened[-1], index=(index or {}).get("fields"))


@pytest.fixture(autouse=True)
def memories(tmp_path: Path) -> Iterator[None]:
    folder[:] = [tmp_path]
    yield
    for each in opened:
        each.close()
    opened.clear()


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
