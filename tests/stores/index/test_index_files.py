from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from index_rows import DIMENSION, SCOPE, TOKEN_DIMENSION, assert_exact, check, filled, on_disk, question, snapshot, unit

from commonplace.stores import text
from commonplace.stores.fixed_point import to_fixed
from commonplace.stores.sqlite.index import IndexQuery, SegmentIndex, compaction, manifest
from commonplace.stores.token_vectors import quantise


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FLUSH_ROWS", 32)


def test_a_purge_leaves_nothing(tmp_path: Path) -> None:
    rows = filled(200)
    secret = unit(np.random.default_rng(77), 2)
    tokens = [quantise(unit(np.random.default_rng(n), 5, TOKEN_DIMENSION)) for n in (79, 80)]
    rows.put(900, "unrepeatable alpha", secret, tokens, user=0xDEADBEEFCAFE, expires_at=123456789)
    rows.put(901, "unrepeatably neighbour", unit(np.random.default_rng(78), 1))
    one, two = SegmentIndex(tmp_path, "store"), SegmentIndex(tmp_path, "store")
    one.maintain(rows, SCOPE)
    check(two, rows, question())
    (word,) = text.query_terms("unrepeatable")
    (only,) = text.query_terms("neighbour")
    traces = [
        to_fixed(secret[0]).tobytes(),
        to_fixed(secret[1]).tobytes(),
        tokens[0].tobytes(),
        tokens[1].tobytes(),
        np.packbits(secret[0] > 0).tobytes().ljust(8, b"\0"),
        (0xDEADBEEFCAFE).to_bytes(8, "little"),
        (123456789).to_bytes(8, "little"),
    ]
    assert all(any(trace in raw for raw in _files(tmp_path)) for trace in [*traces, word.to_bytes(8, "little")])
    rows.erase(900)
    one.purge_erased(rows, SCOPE)
    assert not any(trace in raw for raw in _files(tmp_path) for trace in traces)
    check(one, rows, question())
    check(two, rows, question())
    assert [hit.mid for hit in one.search(rows, SCOPE, IndexQuery([only], None, 5))] == [901]
    rows.erase(901)
    two.purge_erased(rows, SCOPE)
    for gone in (word, only):
        assert not any(gone.to_bytes(8, "little") in raw for raw in _files(tmp_path))
    for opened in (one, two, SegmentIndex(tmp_path, "store")):
        check(opened, rows, question())
        assert opened.verify(rows, SCOPE) == []
        assert opened.rebuilds == 0


@pytest.mark.parametrize("updated_first", [False, True])
def test_a_flush_takes_out_what_was_erased_before_it(updated_first: bool, tmp_path: Path) -> None:
    rows = filled(500)
    secret = unit(np.random.default_rng(77), 1)
    tokens = quantise(unit(np.random.default_rng(79), 5, TOKEN_DIMENSION))
    rows.put(900, "unrepeatable", secret, [tokens])
    traces = (to_fixed(secret).tobytes(), tokens.tobytes())
    writer = SegmentIndex(tmp_path, "store")
    writer.maintain(rows, SCOPE)
    if updated_first:
        rows.put(900, "something else")
        for mid in range(1000, 1040):
            rows.put(mid, "bravo")
        writer.maintain(rows, SCOPE)
    assert all(any(trace in raw for raw in _files(tmp_path)) for trace in traces)
    rows.erase(900)
    writer.search(rows, SCOPE, question())
    for mid in range(2000, 2040):
        rows.put(mid, "bravo")
    writer.maintain(rows, SCOPE)
    assert not any(trace in raw for raw in _files(tmp_path) for trace in traces)
    check(writer, rows, question())


def _files(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in (root / str(SCOPE)).iterdir()]


def test_strays_are_swept(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    (place / "0123.seg").write_bytes(b"left by a crash")
    SegmentIndex(tmp_path, "store").purge_erased(rows, SCOPE)
    assert not (place / "0123.seg").exists()
    check(SegmentIndex(tmp_path, "store"), rows, question())


def test_a_busy_folder_is_left_alone(tmp_path: Path) -> None:
    rows = filled(100)
    waiting = SegmentIndex(tmp_path, "store")
    with manifest.ScopeFolder(tmp_path, SCOPE).lock() as alone:
        assert alone
        waiting.maintain(rows, SCOPE)
        check(waiting, rows, question())
        assert not (tmp_path / str(SCOPE)).exists()
    waiting.maintain(rows, SCOPE)
    assert (tmp_path / str(SCOPE) / "manifest.json").exists()


def test_a_reader_takes_over_what_a_writer_flushed(tmp_path: Path) -> None:
    rows = filled(10)
    reader, writer = SegmentIndex(tmp_path, "store"), SegmentIndex(tmp_path, "store")
    check(reader, rows, question())
    for mid in range(1000, 2000):
        rows.put(mid, "ember alpha")
        if mid % 10 == 0:
            writer.maintain(rows, SCOPE)
            reader.search(rows, SCOPE, question())
    assert reader._open_scopes[SCOPE].rows.tail.size < 5 * compaction.FLUSH_ROWS
    check(reader, rows, question())
    assert reader.rebuilds == 0


def test_a_flush_in_an_older_transaction_scrubs_what_newer_searches_saw(tmp_path: Path) -> None:
    rows = filled(500)
    secret = unit(np.random.default_rng(77), 1)
    tokens = quantise(unit(np.random.default_rng(79), 5, TOKEN_DIMENSION))
    rows.put(900, "unrepeatable", secret, [tokens])
    traces = (to_fixed(secret).tobytes(), tokens.tobytes())
    shared = SegmentIndex(tmp_path, "store")
    shared.maintain(rows, SCOPE)
    for mid in range(1000, 1040):
        rows.put(mid, "bravo")
    older = snapshot(rows)
    rows.erase(900)
    check(shared, rows, question())
    shared.maintain(older, SCOPE)
    assert not any(trace in raw for raw in _files(tmp_path) for trace in traces)
    check(shared, rows, question())


def test_a_manifest_newer_than_the_transaction_is_left_for_later(tmp_path: Path) -> None:
    rows = filled(500)
    late, other = SegmentIndex(tmp_path, "store"), SegmentIndex(tmp_path, "store")
    late.maintain(rows, SCOPE)
    for mid in range(1000, 1040):
        rows.put(mid, "bravo")
    older = snapshot(rows)
    late.search(older, SCOPE, question())
    for mid in range(2000, 2040):
        rows.put(mid, "cargo")
    other.maintain(rows, SCOPE)
    newest = (tmp_path / str(SCOPE) / "manifest.json").read_bytes()
    late.maintain(older, SCOPE)
    check(late, older, question())
    assert (tmp_path / str(SCOPE) / "manifest.json").read_bytes() == newest
    check(late, rows, question())
    assert late.rebuilds == 0


def test_scopes_over_the_budget_are_let_go(tmp_path: Path) -> None:
    rows = filled(200)
    small = SegmentIndex(tmp_path, "store", budget_bytes=1)
    for scope in (1, 2, 3):
        assert_exact(small.search(rows, scope, question()), rows, question())
    assert small.sizes()["scopes_open"] == 1
    small.maintain(rows, 1)
    assert_exact(small.search(rows, 1, question()), rows, question())


def test_threads_share_a_catalogue(tmp_path: Path) -> None:
    rows = filled(300)
    shared = SegmentIndex(tmp_path, "store")
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for _ in range(20):
                check(shared, rows, question(3 + seed))
                shared.maintain(rows, SCOPE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


_OTHER_PROCESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import index_rows
from commonplace.stores.sqlite.index import SegmentIndex, compaction
compaction.FLUSH_ROWS = 32
rows = index_rows.filled(50)
index_rows.on_disk(Path(sys.argv[1]), rows)
"""


def test_what_another_process_wrote_is_used(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, str(tmp_path), here], check=True)
    elsewhere = tmp_path / "copy"
    rows = filled(50)
    on_disk(elsewhere, rows)
    opened = SegmentIndex(tmp_path, "store")
    opened.prefetch(SCOPE)
    check(opened, rows, question())
    assert opened.rebuilds == 0
    assert len(opened._open_scopes[SCOPE].rows.segments) == 2
    assert rows.dimension == DIMENSION
