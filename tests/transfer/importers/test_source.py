"""Files, zips and folders alike; times as sources write them."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from foreign_files import EVERY

from commonplace.transfer.importers import importer
from commonplace.transfer.importers.source import Source, milliseconds, texts_of
from commonplace.transfer.report import BrokenFile


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (1736209412.345, 1736209412345),
        (1736209412, 1736209412000),
        (1736209412345, 1736209412345),
        ("2025-01-07T00:23:32.345678Z", 1736209412346),
        ("2025-01-07T01:23:32+01:00", 1736209412000),
        ("2025-01-07", 1736208000000),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (-5, None),
        (float("inf"), None),
        ("1712042400123", 1712042400123),  # which would also be a time of the year 1712
        ("1712042400", 1712042400000),
        ("1712042400.5", 1712042400500),
        ("20240501103000", None),
        (1e300, None),
        ({}, None),
        (float("nan"), None),
        (1e308, None),
        (10**400, None),
    ],
)
def test_times(value: Any, ms: int | None) -> None:
    assert milliseconds(value) == ms


def test_lists_of_texts() -> None:
    assert texts_of(["a", " b ", 3, "", "a"]) == ["a", "b"]
    assert texts_of("one") == ["one"]


def test_a_zip_and_a_folder_have_the_same_members(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.json").write_text("[1]")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.write(folder / "in" / "a.json", "in/a.json")
    for source in (Source(folder), Source(tmp_path / "z.zip")):
        assert source.members == ["in/a.json"]
        assert source.named(r"a\.json") == ["in/a.json"]
        with source.open("in/a.json") as file:
            assert file.read() == b"[1]"
        assert (source.position, source.size) == (3, 3)


def test_links_lead_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("x")
    (folder / "a.md").symlink_to(tmp_path / "secret.md")
    (folder / "b").symlink_to(tmp_path)
    assert Source(folder).members == []


def test_a_damaged_zip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "[" + "1," * 5000 + "1]")
    data = bytearray(path.read_bytes())
    data[60:70] = b"\xff" * 10
    path.write_bytes(data)
    source = Source(path)
    with (
        pytest.raises(BrokenFile, match=r"conversations\.json: the archive is damaged"),
        source.open("conversations.json") as file,
    ):
        file.read()


def test_an_archive_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    for at, value in ((6, 1), (directory + 8, 1)):  # the flag that says that there is a password
        whole = whole[:at] + bytes([value]) + whole[at + 1 :]
    path.write_bytes(whole)
    with pytest.raises(BrokenFile, match=r"cannot be read: .*password"), Source(path).open("conversations.json"):
        pass
    path.write_bytes(whole[:directory] + b"PK??" + whole[directory + 4 :])
    with pytest.raises(BrokenFile, match=r"z\.zip: the archive is damaged"):
        _ = Source(path).members


@pytest.mark.parametrize("name", ["chatgpt", "claude", "amp"])
def test_what_is_read_to_its_end_is_read_whole(name: str, tmp_path: Path) -> None:
    source = Source(EVERY[name][0](tmp_path))
    items = list(importer(name).read(source))
    assert items
    assert source.position == source.size > 0


def _unread(*names: str) -> str:
    source = Source(Path("x"))
    for name in names:
        source.note_unread_fields("facts", {name: 1}, ())
    (left_out,) = source.fields_left_out()
    return left_out.what


def test_a_hundred_names_of_unread_fields_are_told_and_that_there_are_others() -> None:
    told = [f"n{number}" for number in range(100)]
    assert _unread(*told, *told) == ", ".join(told)
    assert _unread(*told, "another", "n1", "yet another") == f"{', '.join(told)} and others"


def test_a_file_with_a_field_of_its_own_in_every_line_fills_no_memory() -> None:
    source = Source(Path("x"))
    tracemalloc.start()
    try:
        for number in range(20_000):
            source.note_unread_fields("facts", {f"{number:060}": 1}, ())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
