"""The SDK's half of the knowledge graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.sdk import SyncMemory
from commonplace.wire.errors import ValidationError


def test_the_sdk_states_and_asks(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder="hashing") as memory:
        made = memory.graph_assert("Alice", "works_at", "Acme", valid_from=1000, provenance="cv")
        assert memory.graph_query("Alice") == {"subject": "Alice", "triples": [made]}
        assert memory.graph_query("Alice", as_of=999)["triples"] == []
        memory.graph_assert("Acme", "located_in", "Oslo")
        way = memory.graph_path("Alice", "Oslo")
        assert [t["object"] for t in way["triples"]] == ["Acme", "Oslo"]
        a, b = (memory.remember(text, metadata={"entity_name": name}).id for text, name in
                (("likes tea", "alice"), ("is cold", "OSLO")))  # fmt: skip
        assert memory.neighbors(a, hops=2) == {"id": a, "neighbors": [{"id": b, "distance": 2}]}
        found = memory.recall("tea", hops=2, min_score=0)
        assert found.results[0].supporting == [b]
        assert memory.graph_retract("Alice", "works_at")["valid_to"] is not None
        assert len(memory.preview_graph_erase("Alice")["triples"]) == 1
        assert memory.graph_erase("Alice")["erased"] == [made["id"]]
        with pytest.raises(ValidationError):
            memory.graph_assert("Alice", "knows", "Bob", confidence=2)
        with pytest.raises(TypeError, match="since"):
            memory.graph_assert("Alice", "knows", "Bob", since=2)
