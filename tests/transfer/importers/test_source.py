"""Files, zips and folders alike; times as sources write them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

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
    with pytest.raises((BrokenFile, Exception)), source.open("conversations.json") as file:
        file.read()
