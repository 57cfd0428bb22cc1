from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_rows import DIMENSION, SCOPE, TOKEN_DIMENSION, Rows, admits, assert_exact, check, question, unit

from commonplace.stores import text
from commonplace.stores.sqlite.index import IndexQuery, SegmentIndex, compaction, search
from commonplace.stores.sqlite.index.compaction import first_to_merge
from commonplace.stores.sqlite.index.segment import Segment, SegmentIdentity, signs
from commonplace.stores.token_vectors import quantise


@pytest.fixture(scope="module")
def many_rows() -> Rows:
    rng = np.random.default_rng(5)
    rows = Rows(64)
    vectors = unit(rng, 20_000, 64)
    for mid in range(1, 20_001):
        rare = "quixotic" if mid in (17, 4_000, 19_999) else "plain"
        rows.put(
            mid,
            f"{rare} words about item {mid % 50}",
            vectors[mid - 1][None],
            type=mid % 4,
            user=9 if mid in (17, 4_000, 19_999) else 1,
            created_at=mid,
            expires_at=500 if mid % 2 else 0,
        )
    return rows


@pytest.fixture(scope="module")
def built_index(many_rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> SegmentIndex:
    index = SegmentIndex(tmp_path_factory.mktemp("many"), "store")
    index.maintain(many_rows, SCOPE)
    return index


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        {"user": 9},
        {"allowed": np.array([17, 4_000, 19_999])},
        {"allowed": np.array([17, 4_000, 19_999]), "types": frozenset({0, 1, 2, 3}), "created_from": 1},
        {"created_from": 19_998},
    ],
)
def test_conditions_come_before_the_cut(
    built_index: SegmentIndex, many_rows: Rows, condition: dict[str, object]
) -> None:
    vector = unit(np.random.default_rng(1), 1, 64)[0]
    for terms in (text.query_terms("plain words about item"), []):
        query = IndexQuery(terms, vector, 10, **condition)  # type: ignore[arg-type]
        assert len(built_index.search(many_rows, SCOPE, query)) == 3
        check(built_index, many_rows, query)


@pytest.mark.parametrize(
    "condition",
    [
        {"user": 9},
        {"types": frozenset({2})},
        {"created_from": 60},
        {"now": 500},
        {"allowed": np.array([5, 40, 41, 90])},
        {},
    ],
)
def test_tokens_of_rows_that_a_condition_excludes_are_not_read(
    condition: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them falls over them: they are said to lie outside of the file."""
    monkeypatch.setattr(compaction, "FLUSH_ROWS", 32)
    rng, rows = np.random.default_rng(6), Rows()
    for mid in range(1, 101):
        ten = mid // 10
        about = {"type": ten % 4, "user": 9 if ten % 3 else 1, "created_at": mid, "expires_at": 500 if ten % 2 else 0}
        rows.put(mid, "plain words", unit(rng, 1), [quantise(unit(rng, 4, TOKEN_DIMENSION))], **about)
    SegmentIndex(tmp_path, "store").maintain(rows, SCOPE)
    query = question(limit=100, depth=100)._replace(**condition)
    (path,) = (tmp_path / str(SCOPE)).glob("*.seg")
    written = Segment(path, SegmentIdentity("store", 1, DIMENSION), writable=True)
    excluded = [at for at, mid in enumerate(written.mids.tolist()) if not admits(rows.rows[mid], query)]
    assert (not excluded) is (not condition)
    # Where one begins is where the one before ends.
    written.token_offsets[[at for at in excluded if at - 1 in {*excluded, -1}]] = 1 << 60
    written.map.flush()
    index = SegmentIndex(tmp_path, "store")
    hits = index.search(rows, SCOPE, query)
    assert index.rebuilds == 0
    assert_exact(hits, rows, query)
    assert all(hit.late is not None for hit in hits)
    if condition:
        check(index, rows, question(limit=100, depth=100))
        assert index.rebuilds == 1


def test_the_expired_are_invisible(built_index: SegmentIndex, many_rows: Rows) -> None:
    vector = unit(np.random.default_rng(1), 1, 64)[0]
    query = IndexQuery(text.query_terms("words"), vector, 50, now=500)
    assert all(hit.mid % 2 == 0 for hit in built_index.search(many_rows, SCOPE, query))
    earlier = built_index.search(many_rows, SCOPE, query._replace(now=499))
    assert any(hit.mid % 2 for hit in earlier)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "clusters"), [(64, 20_000), (384, 400)])
def test_bits_find_nearly_all_of_the_nearest(dimension: int, clusters: int) -> None:
    rng = np.random.default_rng(2)
    centres = unit(rng, clusters, dimension)[rng.integers(0, clusters, 20_000)]
    vectors = centres + 0.8 * unit(rng, 20_000, dimension)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = Rows(dimension)
    for mid in range(20_000):
        rows.put(mid, "", vectors[mid][None])
    with tempfile.TemporaryDirectory() as folder:
        index = SegmentIndex(Path(folder), "store")
        index.maintain(rows, SCOPE)
        found = 0
        for _ in range(40):
            near = vectors[int(rng.integers(len(vectors)))] + 0.5 * unit(rng, 1, dimension)[0]
            true = set(np.argsort(-(vectors @ near))[:10].tolist())
            found += len(true & {hit.mid for hit in index.search(rows, SCOPE, IndexQuery([], near, 10))})
    assert found >= 396


@pytest.mark.slow
def test_both_ways_to_count_bits_agree() -> None:
    rng = np.random.default_rng(0)
    for dimension in (16, 64, 384, 100):
        codes = signs(unit(rng, 40_000, dimension))
        code = signs(unit(rng, 1, dimension))
        plain = search._hamming_numpy(codes, code)
        assert plain[7] == np.unpackbits(codes[7] ^ code[0]).sum()
        pytest.importorskip("simsimd")
        assert np.array_equal(plain, search._hamming_simsimd(codes, code))


def test_the_ranking_is_the_same_without_simsimd(
    built_index: SegmentIndex, many_rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = IndexQuery(text.query_terms("item"), unit(np.random.default_rng(1), 1, 64)[0], 10)
    usual = built_index.search(many_rows, SCOPE, query)
    monkeypatch.setattr(search, "hamming", search._hamming_numpy)
    assert built_index.search(many_rows, SCOPE, query) == usual


def test_no_embedder_and_no_vectors(tmp_path: Path) -> None:
    rows = Rows(None)
    rows.put(1, "alpha")
    rows.put(2, "alpha bravo", np.ones((1, 4), np.float32))
    index = SegmentIndex(tmp_path, "store")
    hits = index.search(rows, SCOPE, IndexQuery(text.query_terms("bravo"), np.ones(4, np.float32), 5))
    assert [(hit.mid, hit.dense) for hit in hits] == [(2, None)]
    assert index.search(rows, SCOPE, IndexQuery([], None, 5)) == []


def test_a_vector_that_is_no_number_hides_no_other(tmp_path: Path) -> None:
    rows = Rows()
    rng = np.random.default_rng(0)
    for mid in range(1, 300):
        rows.put(mid, "alpha", unit(rng, 1))
    rows.put(5, "alpha", np.full((1, 16), np.nan, np.float32))
    index = SegmentIndex(tmp_path, "store")
    hits = index.search(rows, SCOPE, IndexQuery([], unit(rng, 1)[0], 400))
    assert {hit.mid for hit in hits} == set(range(1, 300)) - {5}


def test_merging_keeps_few_segments_and_costs_little() -> None:
    sizes: list[int] = []
    written = 0
    for _ in range(1000):
        start = first_to_merge([*sizes, 1])
        merged = sum(sizes[start:]) + 1
        sizes = [*sizes[:start], merged]
        written += merged
        assert len(sizes) <= 16
    assert sum(sizes) == 1000
    assert written <= 7 * 1000
