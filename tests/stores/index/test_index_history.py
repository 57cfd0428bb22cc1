from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from index_rows import SCOPE, WORDS, Rows, asked_tokens, check, some_tokens, unit

from commonplace.stores import text
from commonplace.stores.sqlite.index import IndexQuery, SegmentIndex, compaction, search


def random_query(rng: np.random.Generator, rows: Rows) -> IndexQuery:
    words = " ".join(rng.choice(WORDS, int(rng.integers(0, 4))))
    return IndexQuery(
        text.query_terms(words),
        unit(rng, 1)[0] if rng.random() < 0.8 else None,
        int(rng.integers(1, 12)),
        now=int(rng.integers(0, 100)) if rng.random() < 0.7 else None,
        types=frozenset(rng.integers(0, 4, 2).tolist()) if rng.random() < 0.3 else None,
        user=int(rng.integers(0, 3)) if rng.random() < 0.2 else None,
        created_from=int(rng.integers(0, 100)) if rng.random() < 0.2 else None,
        allowed=np.unique(rng.integers(1, 400, 40)) if rng.random() < 0.2 else None,
        tokens=asked_tokens(rng) if rng.random() < 0.7 else None,
        depth=int(rng.integers(0, 40)),
    )


def random_write(rng: np.random.Generator, rows: Rows) -> None:
    kind = rng.random()
    known = list(rows.rows)
    if known and kind < 0.1:
        rows.erase(int(rng.choice(known)))
    elif known and kind < 0.2:
        rows.delete(int(rng.choice(known)))
    else:
        mid = int(rng.choice(known)) if known and kind < 0.4 else rows.seq + 1
        parts = int(rng.choice([0, 1, 1, 1, 3]))
        rows.put(
            mid,
            " ".join(rng.choice(WORDS, int(rng.integers(0, 20)))),
            unit(rng, parts) if parts else None,
            some_tokens(rng, int(rng.choice([parts, parts, parts, 0, 2]))) if rng.random() < 0.8 else None,
            searchable=rng.random() < 0.95,
            type=int(rng.integers(0, 4)),
            user=int(rng.integers(0, 3)),
            created_at=int(rng.integers(0, 100)),
            expires_at=int(rng.choice([0, 0, 20, 60])),
        )


@pytest.mark.slow
@pytest.mark.parametrize("exact_up_to", [10_000, 0])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_any_history_gives_the_exact_ranking(seed: int, exact_up_to: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small enough that a few hundred rows flush, merge and spill; bits choose, but everything is rescored.
    monkeypatch.setattr(compaction, "FLUSH_ROWS", 16)
    monkeypatch.setattr(compaction, "SPILL_ROWS", 50)
    monkeypatch.setattr(search, "EXACT", exact_up_to)
    rng = np.random.default_rng(seed)
    rows, rebuilt = Rows(), False
    with tempfile.TemporaryDirectory() as folder:
        mine, other = (SegmentIndex(Path(folder), "store") for _ in range(2))
        for _ in range(int(rng.integers(1, 30))):
            for _ in range(int(rng.integers(1, 25))):
                random_write(rng, rows)
            match int(rng.integers(0, 9)):
                case 0 | 1 | 2:
                    mine.maintain(rows, SCOPE)
                case 3:
                    other.maintain(rows, SCOPE)
                case 4:
                    mine.close()
                case 5:
                    other.purge_erased(rows, SCOPE)
                case 6:
                    mine.rebuild(rows, SCOPE)
                    rebuilt = True  # the other finds its files gone when there is too little to write any
                case 7:
                    mine.prefetch(SCOPE)
            assert mine.verify(rows, SCOPE) == []
            check(mine, rows, random_query(rng, rows))
            check(other, rows, random_query(rng, rows))
        assert mine.rebuilds == 0
        assert other.rebuilds == 0 or rebuilt
