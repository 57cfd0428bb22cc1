from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from index_rows import DIMENSION, SCOPE, WORDS, check, filled, on_disk, question, snapshot, unit

from commonplace.stores import text
from commonplace.stores.fixed_point import to_fixed
from commonplace.stores.sqlite.index import (
    IndexQuery,
    SegmentIndex,
    compaction,
    manifest,
    search as index_search,
    segment,
)
from commonplace.stores.sqlite.index.segment import IndexDamage, Segment, SegmentIdentity


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FLUSH_ROWS", 32)


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


def damage_tokens(place: Path) -> None:
    part, path = biggest(place)
    raw = bytearray(path.read_bytes())
    at = raw.index(part.tokens[:40].tobytes())
    raw[at] ^= 16
    path.write_bytes(raw)


def damage_token_offsets(place: Path) -> None:
    part, path = biggest(place)
    raw = bytearray(path.read_bytes())
    at = raw.index(part.token_offsets[:20].tobytes())
    raw[at + 8 : at + 152] = bytes(raw[at + 8 : at + 152])[::-1]
    path.write_bytes(raw)


def biggest(place: Path) -> tuple[Segment, Path]:
    path = max(place.glob("*.seg"), key=lambda path: path.stat().st_size)
    return Segment(path, SegmentIdentity("store", 1, DIMENSION)), path


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
    again = SegmentIndex(tmp_path, "store")
    assert again.verify(rows, SCOPE) != []
    check(again, rows, question())
    assert again.rebuilds == 1
    assert again.verify(rows, SCOPE) == []
    another = SegmentIndex(tmp_path, "store")
    check(another, rows, question())
    assert another.rebuilds == 0


def test_a_deleted_folder_is_made_again(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    running = SegmentIndex(tmp_path, "store")
    check(running, rows, question())
    shutil.rmtree(place)
    check(running, rows, question())
    check(SegmentIndex(tmp_path, "store"), rows, question())
    for mid in range(5000, 5040):
        rows.put(mid, "ember")
    running.maintain(rows, SCOPE)
    assert running.verify(rows, SCOPE) == []
    fresh = SegmentIndex(tmp_path, "store")
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
    opened = SegmentIndex(tmp_path, "another" if change == "store" else "store")
    query = question()._replace(vector=None) if change == "dimension" else question()
    check(opened, other, query)
    assert opened.rebuilds == 1


def test_a_running_catalogue_follows_a_new_embedder(tmp_path: Path) -> None:
    rows = filled(100)
    running = SegmentIndex(tmp_path, "store")
    running.maintain(rows, SCOPE)
    check(running, rows, question())
    rng = np.random.default_rng(4)
    rows.generation, rows.dimension = 2, 8
    for mid, row in rows.rows.items():
        rows.rows[mid] = row._replace(vectors=to_fixed(unit(rng, 1, 8)).tobytes())
    check(running, rows, IndexQuery([], unit(rng, 1, 8)[0], 5))


def test_rows_restored_from_a_backup_win_over_a_newer_manifest(tmp_path: Path) -> None:
    rows = filled(50)
    on_disk(tmp_path, rows)
    older = filled(60, start=2000)
    opened = SegmentIndex(tmp_path, "store")
    check(opened, older, question())
    assert opened.rebuilds == 1


def test_a_stale_manifest_whose_files_are_gone(tmp_path: Path) -> None:
    rows = filled(50)
    place = on_disk(tmp_path, rows)
    stale = (place / "manifest.json").read_bytes()
    late = SegmentIndex(tmp_path, "store")
    late.prefetch(SCOPE)
    writer = SegmentIndex(tmp_path, "store")
    for mid in range(5000, 5400):
        rows.put(mid, "ember")
    writer.maintain(rows, SCOPE)
    assert (place / "manifest.json").read_bytes() != stale
    check(late, rows, question())
    assert late.rebuilds == 0
    (place / "manifest.json").write_bytes(stale)
    opened = SegmentIndex(tmp_path, "store")
    check(opened, rows, question())
    assert opened.rebuilds == 1


def test_postings_that_point_nowhere_are_rebuilt(tmp_path: Path) -> None:
    rows = filled(100)
    written = SegmentIndex(tmp_path, "store")
    written.maintain(rows, SCOPE)
    (path,) = (tmp_path / str(SCOPE)).glob("*.seg")
    part = written._open_scopes[SCOPE].rows.segments[0].part
    raw = bytearray(path.read_bytes())
    at = raw.index(part.docs[:8].tobytes())
    raw[at : at + 32] = b"\xff" * 32
    path.write_bytes(raw)
    opened = SegmentIndex(tmp_path, "store")
    for word in WORDS:
        check(opened, rows, IndexQuery(text.query_terms(word), None, 5))
    assert opened.rebuilds == 1
    assert opened.verify(rows, SCOPE) == []


@pytest.mark.parametrize("damage", [damage_tokens, damage_token_offsets])
def test_tokens_that_are_not_those_of_the_rows_are_found_and_made_again(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = filled(50)
    damage(on_disk(tmp_path, rows))
    opened = SegmentIndex(tmp_path, "store")
    assert len(opened.verify(rows, SCOPE)) == 1
    opened.rebuild(rows, SCOPE)
    assert opened.verify(rows, SCOPE) == []
    check(opened, rows, question())


def test_tokens_that_are_nowhere_are_rebuilt_by_the_search_that_meets_them(tmp_path: Path) -> None:
    rows = filled(50)
    damage_token_offsets(on_disk(tmp_path, rows))
    opened = SegmentIndex(tmp_path, "store")
    check(opened, rows, question(limit=200, depth=300))
    assert opened.rebuilds == 1
    assert opened.verify(rows, SCOPE) == []


@pytest.mark.parametrize("erased", [False, True])
def test_tokens_that_are_nowhere_are_rebuilt_by_the_flush_that_meets_them(erased: bool, tmp_path: Path) -> None:
    """An erasure cannot be sure of having overwritten them, nor a merge of having copied them."""
    rows = filled(50)
    damage_token_offsets(on_disk(tmp_path, rows))
    if erased:
        rows.erase(1100)
    else:
        for mid in range(5000, 5600):
            rows.put(mid, "ember", unit(np.random.default_rng(mid), 1))
    opened = SegmentIndex(tmp_path, "store")
    opened.maintain(rows, SCOPE)
    assert opened.rebuilds == 1
    assert opened.verify(rows, SCOPE) == []
    check(opened, rows, question())


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_flipped_bits_break_neither_search_nor_upkeep_and_are_mended_from_rows(seed: int, tmp_path: Path) -> None:
    rng, rows = random.Random(seed), filled(50)
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        place = on_disk(Path(folder), rows)
        path = rng.choice(sorted(place.glob("*.seg")))
        raw = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 4, 64))):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        opened = SegmentIndex(Path(folder), "store")
        opened.search(rows, SCOPE, question(limit=rng.choice((3, 300))))
        opened.search(rows, SCOPE, question(limit=3)._replace(vector=None))
        rows.erase(1100)
        opened.maintain(rows, SCOPE)
        opened.purge_erased(rows, SCOPE)
        if opened.verify(rows, SCOPE):
            opened.rebuild(rows, SCOPE)
        assert opened.verify(rows, SCOPE) == []
        check(opened, rows, question())


def test_a_segment_of_the_format_before_is_made_anew_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = filled(50)
    with monkeypatch.context() as before:
        for module in (segment, manifest):
            before.setattr(module, "FORMAT", segment.FORMAT - 1)
        on_disk(tmp_path, rows)
    opened = SegmentIndex(tmp_path, "store")
    assert opened.verify(rows, SCOPE) == []
    with caplog.at_level("WARNING"):
        check(opened, rows, question())
    assert opened.rebuilds == 1
    assert caplog.messages == []
    assert opened.verify(rows, SCOPE) == []


def test_a_deleted_folder_of_many_rows_is_written_by_the_first_search(tmp_path: Path) -> None:
    rows = filled(100)
    check(SegmentIndex(tmp_path, "store"), rows, question())
    assert (tmp_path / str(SCOPE) / "manifest.json").exists()


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
            broken.setattr("commonplace.stores.sqlite.index.compaction._place_postings", crash)
        elif moment == "manifest":
            broken.setattr(manifest.ScopeFolder, "_write_durably", crash)
        elif moment == "replace":
            broken.setattr(manifest.os, "replace", crash)
        else:
            broken.setattr(manifest.ScopeFolder, "sweep", crash)
        with pytest.raises(KeyboardInterrupt):
            SegmentIndex(tmp_path, "store").maintain(rows, SCOPE)
    opened = SegmentIndex(tmp_path, "store")
    check(opened, rows, question())
    opened.maintain(rows, SCOPE)
    assert opened.rebuilds == 0
    assert opened.verify(rows, SCOPE) == []
    opened.purge_erased(rows, SCOPE)
    named = opened._open_scopes[SCOPE].manifest
    assert named is not None
    assert {path.name for path in (tmp_path / str(SCOPE)).iterdir()} == named.files


def test_a_full_disk_stops_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    rows = filled(100)
    monkeypatch.setattr(compaction, "write_segment", full)
    opened = SegmentIndex(tmp_path, "store")
    check(opened, rows, question())
    rows.put(500, "alpha")
    check(opened, rows, question())


def test_a_source_that_fails_halfway_is_read_again(tmp_path: Path) -> None:
    rows = filled(20)
    opened = SegmentIndex(tmp_path, "store")
    check(opened, rows, question())
    rows.put(3, "alpha alpha")
    rows.put(4, "delta")
    broken = snapshot(rows)
    broken.changes = lambda scope, after: (_ for _ in ()).throw(OSError("gone"))  # type: ignore[method-assign]
    with pytest.raises(OSError, match="gone"):
        opened.search(broken, SCOPE, question())
    check(opened, rows, question())


def test_vectors_that_end_before_they_begin_are_damage() -> None:
    """numpy looks for the next number from where it found the one before, so that disorder gives ends before starts."""
    part = SimpleNamespace(name="a", single=False, vector_docs=np.array([1, 4, 3, 7, 2, 8, 1, 5, 0], "<u4"))
    places = [(0, doc) for doc in [1, 5, 6, 7, 8]]
    with pytest.raises(IndexDamage, match="the vectors are not where it says"):
        index_search._late_scores([SimpleNamespace(part=part)], places, None)  # type: ignore[arg-type, list-item]
