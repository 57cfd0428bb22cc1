"""The indexed search, against the store that has no index."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Entry, Reach, Search
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.text import terms
from commonplace.stores.token_vectors import Codes, QuestionTokens, quantise
from commonplace.testing import FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory


def token_codes(content: str) -> Codes:
    """The tokens of a text, each word being one."""
    return quantise(HashingEmbedder(8).embed(content.split()))


ASKED = QuestionTokens.of(HashingEmbedder(8).embed(["the", "harbour", "boat"]), np.array([0.1, 1, 0.5], np.float32))


@st.composite
def entries(draw: Any) -> list[Entry]:
    words = ("boat", "harbour", "violin", "tax", "garden", "the")
    made = []
    for i in range(draw(st.integers(1, 12))):
        content = " ".join(draw(st.lists(st.sampled_from(words), min_size=1, max_size=4)))
        memory = Memory(
            mint_id(1),
            "t",
            draw(st.sampled_from(("a", "b"))),
            draw(st.sampled_from(("semantic", "episodic"))),
            content,
            user_id=draw(st.sampled_from((None, "alice", "bob"))),
            created_at=draw(st.integers(1, 5)),
            expires_at=draw(st.sampled_from((None, 3, 9))),
            metadata={"n": i},
            confidence=draw(st.sampled_from((0.1, 1.0))),
            status=draw(st.sampled_from(("live", "live", "archived", "deleted"))),
        )
        parts = draw(st.sampled_from(([content], [content], [content, "the violin"], [])))
        vectors = HashingEmbedder(16).embed(parts) if parts else None
        tokens = [token_codes(part) for part in parts] if draw(st.booleans()) else None
        made.append(Entry(memory, vectors, terms(content), 1, tokens))
    return made


conditions = st.sampled_from(
    [
        Condition(("user_id",), "eq", "alice"),
        Condition(("user_id",), "eq", None),
        Condition(("user_id",), "ne", "bob"),
        Condition(("type",), "eq", "episodic"),
        Condition(("type",), "in", ["semantic", 5]),
        Condition(("type",), "eq", 5),
        Condition(("created_at",), "gte", 3),
        Condition(("created_at",), "gte", 2.5),
        Condition(("created_at",), "lt", 4),
        Condition(("metadata", "n"), "lte", 4),
        Condition(("confidence",), "lt", 0.5),
        Condition(("recalls",), "eq", 0),
    ]
)
reaches = st.builds(
    Reach,
    st.just("t"),
    st.sampled_from((("a",), ("b", "a"), ("nobody",), ())),
    st.lists(conditions, max_size=3).map(tuple),
    st.sampled_from((("live",), ("live", "archived"), ("deleted",))),
    st.sampled_from((None, 3, 5)),
    st.sampled_from((None, None, 0, 3, 1000)),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(entries(), min_size=1, max_size=3), st.lists(reaches, min_size=1, max_size=6))
def test_a_search_sees_what_a_scan_of_everything_sees(rounds: list[list[Entry]], asked: list[Reach]) -> None:
    """Same rows, cosines and late interaction as the store without an index, after every round of writes."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        plain, indexed = InMemory(FakeClock(1)), SqliteStore(Path(folder) / "commonplace.db", FakeClock(1))
        for store in (plain, indexed):
            runner.run(store.adopt_embedder("hashing-16", 16))
        vector = HashingEmbedder(16).embed(["the harbour boat"])[0]
        for made in rounds:
            for store in (plain, indexed):
                runner.run(store.put(made))
            for reach in asked:
                search = Search(reach, "the harbour boat", vector, limit=100, tokens=ASKED)
                expected = {c.memory.id: c for c in runner.run(plain.search(search))}
                found = {c.memory.id: c for c in runner.run(indexed.search(search))}
                assert found.keys() == expected.keys(), reach
                for id, candidate in found.items():
                    assert candidate.late == expected[id].late, reach
                    assert candidate.dense == pytest.approx(expected[id].dense, abs=1e-4), reach
                for newest in (True, False):
                    pages = [runner.run(s.scan(reach, newest_first=newest)).memories for s in (plain, indexed)]
                    assert [m.id for m in pages[0]] == [m.id for m in pages[1]], reach
        runner.run(indexed.close())
