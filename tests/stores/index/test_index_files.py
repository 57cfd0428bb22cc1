from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from index_rows import DIMENSION, SCOPE, WORDS, Rows, assert_exact, check, unit

from commonplace.stores import text
from commonplace.stores.sqlite.index import Catalogue, IndexQuery, folder, merge, rebuild


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "FLUSH", 32)


def filled(count: int, start: int = 1) -> Rows:
    rng = np.random.default_rng(start)
    rows = Rows()
    for mid in range(start, start + count):
        rows.put(mid, " ".join(rng.choice(WORDS, 6)), unit(rng, 1 + mid % 2))
    return rows


def question(limit: int = 5) -> IndexQuery:
    return IndexQuery(text.query_terms("alpha delta"), unit(np.random.default_rng(3), 1)[0], limit)


def on_disk(root: Path, rows: Rows) -> Path:
    """Three segments, one of them with a dead row, and a tail."""
    written = Catalogue(root, "store")
    rng = np.random.default_rng(11)
    for mid in range(1000, 1200):
        rows.put(mid, " ".join(rng.choice(WORDS, 5)), unit(rng, 1))
    written.maintain(rows, SCOPE)
    for mid in range(2000, 2040):
        rows.put(mid, "bravo", unit(rng, 1))
    rows.delete(1005)
    written.maintain(rows, SCOPE)
    rows.put(3000, "alpha in the tail", unit(rng, 1))
    assert len(list((root / str(SCOPE)).glob("*.seg"))) == 2
    return root / str(SCOPE)


def damage_truncated(place: Path) -> None:
    for path in place.glob("*.seg"):
        path.write_bytes(path.read_bytes()[:-4096])


def damage_empty(place: Path) -> None:
    for path in place.glob("*.seg"):
        path.write_bytes(b"")


def damage_header(place: Path) -> None:
    path = next(place.glob("*.seg"))
    raw = bytearray(path.read_bytes())
    raw[70] ^= 1
    path.write_bytes(raw)


def damage_missing_segment(place: Path) -> None:
    next(place.glob("*.seg")).unlink()


def damage_missing_deaths(place: Path) -> None:
    next(place.glob("*.dead")).unlink()


def damage_deaths(place: Path) -> None:
    path = next(place.glob("*.dead"))
    path.write_bytes(bytes(len(path.read_bytes())))


def damage_manifest(place: Path) -> None:
    path = place / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"watermark", b"watermarx"))


def damage_manifest_half(place: Path) -> None:
    path = place / "manifest.json"
    path.write_bytes(path.read_bytes()[:20])


@pytest.mark.parametrize(
    "damage",
    [
        damage_truncated,
        damage_empty,
        damage_header,
        damage_missing_segment,
        damage_missing_deaths,
        damage_deaths,
        damage_manifest,
        damage_manifest_half,
    ],
)
def test_damage_is_repaired_from_rows(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = filled(50)
    damage(on_disk(tmp_path, rows))
    again = Catalogue(tmp_path, "store")
    assert again.verify(rows, SCOPE) != []
    check(again, rows, question())
    assert again.rebuilds == 1
    assert again.verify(rows, SCOPE) == []
    another = Catalogue(tmp_path, "store")
    check(another, rows, question())
    assert another.rebuilds == 0


def test_a_deleted_folder_is_made_again(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    running = Catalogue(tmp_path, "store")
    check(running, rows, question())
    shutil.rmtree(place)
    check(running, rows, question())
    check(Catalogue(tmp_path, "store"), rows, question())
    for mid in range(5000, 5040):
        rows.put(mid, "ember")
    running.maintain(rows, SCOPE)
    assert running.verify(rows, SCOPE) == []
    fresh = Catalogue(tmp_path, "store")
    check(fresh, rows, question())
    assert fresh.rebuilds == 0


@pytest.mark.parametrize("change", ["store", "generation", "dimension"])
def test_what_was_made_for_something_else_is_not_used(change: str, tmp_path: Path) -> None:
    rows = filled(100)
    on_disk(tmp_path, rows)
    other = filled(80, start=500)
    other.seq = rows.seq
    if change == "generation":
        other.generation = 2
    if change == "dimension":
        other.dimension = None
    opened = Catalogue(tmp_path, "another" if change == "store" else "store")
    query = question()._replace(vector=None) if change == "dimension" else question()
    check(opened, other, query)
    assert opened.rebuilds == 1


def test_a_running_catalogue_follows_a_new_embedder(tmp_path: Path) -> None:
    rows = filled(100)
    running = Catalogue(tmp_path, "store")
    running.maintain(rows, SCOPE)
    check(running, rows, question())
    rng = np.random.default_rng(4)
    rows.generation, rows.dimension = 2, 8
    for mid, row in rows.rows.items():
        rows.rows[mid] = row._replace(vectors=unit(rng, 1, 8).tobytes())
    check(running, rows, IndexQuery([], unit(rng, 1, 8)[0], 5))


def test_rows_restored_from_a_backup_win_over_a_newer_manifest(tmp_path: Path) -> None:
    rows = filled(50)
    on_disk(tmp_path, rows)
    older = filled(60, start=2000)
    opened = Catalogue(tmp_path, "store")
    check(opened, older, question())
    assert opened.rebuilds == 1


def test_a_stale_manifest_whose_files_are_gone(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    stale = (place / "manifest.json").read_bytes()
    late = Catalogue(tmp_path, "store")
    late.begin(SCOPE)
    writer = Catalogue(tmp_path, "store")
    for mid in range(5000, 5400):
        rows.put(mid, "ember")
    writer.maintain(rows, SCOPE)
    assert (place / "manifest.json").read_bytes() != stale
    check(late, rows, question())
    assert late.rebuilds == 0
    (place / "manifest.json").write_bytes(stale)
    opened = Catalogue(tmp_path, "store")
    check(opened, rows, question())
    assert opened.rebuilds == 1


def test_postings_that_point_nowhere_are_rebuilt(tmp_path: Path) -> None:
    rows = filled(100)
    written = Catalogue(tmp_path, "store")
    written.maintain(rows, SCOPE)
    (path,) = (tmp_path / str(SCOPE)).glob("*.seg")
    segment = written._held[SCOPE].rows.segments[0].part
    raw = bytearray(path.read_bytes())
    at = raw.index(segment.docs[:8].tobytes())
    raw[at : at + 32] = b"\xff" * 32
    path.write_bytes(raw)
    opened = Catalogue(tmp_path, "store")
    for word in WORDS:
        check(opened, rows, IndexQuery(text.query_terms(word), None, 5))
    assert opened.rebuilds == 1
    assert opened.verify(rows, SCOPE) == []


def test_a_purge_leaves_nothing(tmp_path: Path) -> None:
    rows = filled(200)
    secret = unit(np.random.default_rng(77), 2)
    rows.put(900, "unrepeatable alpha", secret, user=0xDEADBEEFCAFE, expires_at=123456789)
    rows.put(901, "unrepeatably neighbour", unit(np.random.default_rng(78), 1))
    one, two = Catalogue(tmp_path, "store"), Catalogue(tmp_path, "store")
    one.maintain(rows, SCOPE)
    check(two, rows, question())
    (word,) = text.query_terms("unrepeatable")
    (only,) = text.query_terms("neighbour")
    traces = [
        secret[0].tobytes(),
        secret[1].tobytes(),
        np.packbits(secret[0] > 0).tobytes().ljust(8, b"\0"),
        (0xDEADBEEFCAFE).to_bytes(8, "little"),
        (123456789).to_bytes(8, "little"),
    ]
    assert all(any(trace in raw for raw in _files(tmp_path)) for trace in [*traces, word.to_bytes(8, "little")])
    rows.erase(900)
    one.purge(rows, SCOPE)
    assert not any(trace in raw for raw in _files(tmp_path) for trace in traces)
    check(one, rows, question())
    check(two, rows, question())
    assert [hit.mid for hit in one.search(rows, SCOPE, IndexQuery([only], None, 5))] == [901]
    rows.erase(901)
    two.purge(rows, SCOPE)
    for gone in (word, only):
        assert not any(gone.to_bytes(8, "little") in raw for raw in _files(tmp_path))
    for opened in (one, two, Catalogue(tmp_path, "store")):
        check(opened, rows, question())
        assert opened.verify(rows, SCOPE) == []
        assert opened.rebuilds == 0


@pytest.mark.parametrize("updated_first", [False, True])
def test_a_flush_takes_out_what_was_erased_before_it(updated_first: bool, tmp_path: Path) -> None:
    rows = filled(500)
    secret = unit(np.random.default_rng(77), 1)
    rows.put(900, "unrepeatable", secret)
    writer = Catalogue(tmp_path, "store")
    writer.maintain(rows, SCOPE)
    if updated_first:
        rows.put(900, "something else")
        for mid in range(1000, 1040):
            rows.put(mid, "bravo")
        writer.maintain(rows, SCOPE)
    assert any(secret.tobytes() in raw for raw in _files(tmp_path))
    rows.erase(900)
    writer.search(rows, SCOPE, question())
    for mid in range(2000, 2040):
        rows.put(mid, "bravo")
    writer.maintain(rows, SCOPE)
    assert not any(secret.tobytes() in raw for raw in _files(tmp_path))
    check(writer, rows, question())


def _files(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in (root / str(SCOPE)).iterdir()]


def test_strays_are_swept(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    (place / "0123.seg").write_bytes(b"left by a crash")
    Catalogue(tmp_path, "store").purge(rows, SCOPE)
    assert not (place / "0123.seg").exists()
    check(Catalogue(tmp_path, "store"), rows, question())


def test_a_busy_folder_is_left_alone(tmp_path: Path) -> None:
    rows = filled(100)
    waiting = Catalogue(tmp_path, "store")
    with folder.ScopeFolder(tmp_path, SCOPE).lock() as alone:
        assert alone
        waiting.maintain(rows, SCOPE)
        check(waiting, rows, question())
        assert not (tmp_path / str(SCOPE)).exists()
    waiting.maintain(rows, SCOPE)
    assert (tmp_path / str(SCOPE) / "manifest.json").exists()


def test_a_reader_takes_over_what_a_writer_flushed(tmp_path: Path) -> None:
    rows = filled(10)
    reader, writer = Catalogue(tmp_path, "store"), Catalogue(tmp_path, "store")
    check(reader, rows, question())
    for mid in range(1000, 2000):
        rows.put(mid, "ember alpha")
        if mid % 10 == 0:
            writer.maintain(rows, SCOPE)
            reader.search(rows, SCOPE, question())
    assert reader._held[SCOPE].rows.tail.size < 5 * merge.FLUSH
    check(reader, rows, question())
    assert reader.rebuilds == 0


def test_a_deleted_folder_of_many_rows_is_written_by_the_first_search(tmp_path: Path) -> None:
    rows = filled(100)
    check(Catalogue(tmp_path, "store"), rows, question())
    assert (tmp_path / str(SCOPE) / "manifest.json").exists()


def snapshot(rows: Rows) -> Rows:
    earlier = Rows(rows.dimension)
    earlier.seq, earlier.rows, earlier.marks = rows.seq, dict(rows.rows), list(rows.marks)
    return earlier


def test_a_flush_in_an_older_transaction_scrubs_what_newer_searches_saw(tmp_path: Path) -> None:
    rows = filled(500)
    secret = unit(np.random.default_rng(77), 1)
    rows.put(900, "unrepeatable", secret)
    shared = Catalogue(tmp_path, "store")
    shared.maintain(rows, SCOPE)
    for mid in range(1000, 1040):
        rows.put(mid, "bravo")
    older = snapshot(rows)
    rows.erase(900)
    check(shared, rows, question())
    shared.maintain(older, SCOPE)
    assert not any(secret.tobytes() in raw for raw in _files(tmp_path))
    check(shared, rows, question())


def test_a_manifest_newer_than_the_transaction_is_left_for_later(tmp_path: Path) -> None:
    rows = filled(500)
    late, other = Catalogue(tmp_path, "store"), Catalogue(tmp_path, "store")
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


@pytest.mark.parametrize("moment", ["segment", "manifest", "replace", "sweep"])
def test_a_crash_while_flushing_loses_nothing(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = filled(50)
    on_disk(tmp_path, rows)
    for mid in range(5000, 5400):
        rows.put(mid, "ember")

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        if moment == "segment":
            broken.setattr("commonplace.stores.sqlite.index.build._place_postings", crash)
        elif moment == "manifest":
            broken.setattr(folder.ScopeFolder, "_write_durably", crash)
        elif moment == "replace":
            broken.setattr(folder.os, "replace", crash)
        else:
            broken.setattr(folder.ScopeFolder, "sweep", crash)
        with pytest.raises(KeyboardInterrupt):
            Catalogue(tmp_path, "store").maintain(rows, SCOPE)
    opened = Catalogue(tmp_path, "store")
    check(opened, rows, question())
    opened.maintain(rows, SCOPE)
    assert opened.rebuilds == 0
    assert opened.verify(rows, SCOPE) == []
    opened.purge(rows, SCOPE)
    named = opened._held[SCOPE].manifest
    assert named is not None
    assert {path.name for path in (tmp_path / str(SCOPE)).iterdir()} == named.files


def test_a_full_disk_stops_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    rows = filled(100)
    monkeypatch.setattr(rebuild, "write_segment", full)
    opened = Catalogue(tmp_path, "store")
    check(opened, rows, question())
    rows.put(500, "alpha")
    check(opened, rows, question())


def test_a_source_that_fails_halfway_is_read_again(tmp_path: Path) -> None:
    rows = filled(20)
    opened = Catalogue(tmp_path, "store")
    check(opened, rows, question())
    rows.put(3, "alpha alpha")
    rows.put(4, "delta")
    broken = snapshot(rows)
    broken.changes = lambda scope, after: (_ for _ in ()).throw(OSError("gone"))  # type: ignore[method-assign]
    with pytest.raises(OSError, match="gone"):
        opened.search(broken, SCOPE, question())
    check(opened, rows, question())


def test_scopes_over_the_budget_are_let_go(tmp_path: Path) -> None:
    rows = filled(200)
    small = Catalogue(tmp_path, "store", budget_bytes=1)
    for scope in (1, 2, 3):
        assert_exact(small.search(rows, scope, question()), rows, question())
    assert small.sizes()["scopes_open"] == 1
    small.maintain(rows, 1)
    small.drop(1)
    assert not (tmp_path / "1").exists()
    assert_exact(small.search(rows, 1, question()), rows, question())


def test_threads_share_a_catalogue(tmp_path: Path) -> None:
    rows = filled(300)
    shared = Catalogue(tmp_path, "store")
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
import test_index_files as tests
from index_rows import SCOPE, check
from commonplace.stores.sqlite.index import Catalogue, merge
merge.FLUSH = 32
rows = tests.filled(50)
tests.on_disk(Path(sys.argv[1]), rows)
"""


def test_what_another_process_wrote_is_used(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, str(tmp_path), here], check=True)
    elsewhere = tmp_path / "copy"
    rows = filled(50)
    on_disk(elsewhere, rows)
    opened = Catalogue(tmp_path, "store")
    opened.begin(SCOPE)
    check(opened, rows, question())
    assert opened.rebuilds == 0
    assert len(opened._held[SCOPE].rows.segments) == 2
    assert rows.dimension == DIMENSION
