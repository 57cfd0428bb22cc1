"""The indexed search, against the store that has no index."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from searched_entries import ASKED, entries, reaches

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Entry, Reach, Search
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing import FakeClock


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
