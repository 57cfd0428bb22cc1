"""Files, zips and folders alike; times as sources write them."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from foreign_files import EVERY, chatgpt_conversation
from transfer_scenarios import WHO

from commonplace.testing.subject import Subject
from commonplace.transfer.import_source import Target, detect, import_source
from commonplace.transfer.importers import importer
from commonplace.transfer.importers.source import Source, milliseconds, texts_of
from commonplace.transfer.report import Broken, BrokenFile, ImportRefused
from commonplace.wire.errors import ValidationError


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


def _zip(path: Path, *notes: tuple[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in notes:
            archive.writestr(name, text)
    return path


def test_an_archive_is_opened_once(tmp_path: Path) -> None:
    """With each opening its whole directory would be read; and so one that is replaced meanwhile is read as it was."""
    source = Source(_zip(tmp_path / "z.zip", ("a.md", "Alice drinks tea"), ("b.md", "Bob drinks milk")))
    first = next(read := importer("markdown").read(source))
    _zip(tmp_path / "new.zip", ("a.md", "another")).replace(tmp_path / "z.zip")
    assert [item.draft.content for item in (first, *read)] == ["Alice drinks tea", "Bob drinks milk"]


def test_a_line_break_in_the_name_of_a_note_keeps_it_a_note(tmp_path: Path) -> None:
    (tmp_path / "c\nd.md").write_text("Alice drinks tea")
    (note,) = importer("markdown").read(Source(tmp_path))
    assert note.draft.content == "Alice drinks tea"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_an_archive_has_twice_is_said(tmp_path: Path) -> None:
    """Only the last can be read: the other would be left out without a word."""
    source = Source(_zip(tmp_path / "z.zip", ("a.md", "Alice drinks tea"), ("a.md", "Bob drinks milk")))
    assert source.members == ["a.md"]
    (said,) = source.unreadable
    assert str(said) == "a.md: is in the archive 2 times, and only the last can be read; pack it again"


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


def refuse(monkeypatch: pytest.MonkeyPatch, verb: str, *names: str, owner: Any = os) -> None:
    """Paths of these names may not be read; whoever tests as root may read everything."""
    real = getattr(owner, verb)

    def guarded(path: Any, *given: Any, **named: Any) -> Any:
        if Path(path).name in names:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *given, **named)

    monkeypatch.setattr(owner, verb, guarded)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name in ("closed/a", "listed/b", "open/c", "tea", "secret"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(f"Note {name}")
    return folder


def test_what_of_a_folder_may_not_be_read_is_named_and_the_rest_is_imported(
    subject: Subject, run: Any, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "scandir", "closed")
    refuse(monkeypatch, "lstat", "b.md", owner=Path)  # a folder whose names may be listed, and no more
    refuse(monkeypatch, "open", "secret.md", owner=Path)
    assert detect(notes) == "markdown"
    with pytest.raises(ImportRefused) as refused:
        run(import_source(subject.engine, WHO, notes, "markdown", Target("agent")))
    assert run(subject.engine.agent_names(WHO)) == []
    done = run(import_source(subject.engine, WHO, notes, "markdown", Target("agent"), skip_broken=True))
    assert sorted(map(str, done.broken)) == sorted(refused.value.details["broken"])
    assert sorted(map(str, done.broken)) == [
        "closed: the folder cannot be read: Permission denied",
        "listed/b.md: cannot be read: Permission denied",
        "secret.md: cannot be read: Permission denied",
    ]
    kept = run(subject.engine.list(WHO, ("agent",), limit=10)).memories
    assert sorted(memory.content for memory in kept) == ["Note open/c", "Note tea"]


def test_a_folder_that_may_not_be_read_at_all_is_no_empty_one(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "scandir", "notes")
    with pytest.raises(ValidationError, match=r"^notes: the folder cannot be read: Permission denied"):
        detect(notes)


def test_a_folder_of_which_nothing_may_be_read_is_not_called_of_no_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes" / "closed").mkdir(parents=True)
    refuse(monkeypatch, "scandir", "closed")
    with pytest.raises(ValidationError, match=r"^notes: closed: the folder cannot be read: Permission denied"):
        detect(tmp_path / "notes")


def test_a_format_is_known_by_what_may_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(2):
        (tmp_path / f"conversations-00{n}.json").write_text(json.dumps([chatgpt_conversation(n)]))
    refuse(monkeypatch, "open", "conversations-000.json", owner=Path)
    assert detect(tmp_path) == "chatgpt"
    refuse(monkeypatch, "open", "conversations-001.json", owner=Path)
    with pytest.raises(ValidationError, match=r"conversations-001\.json: cannot be read: Permission denied"):
        detect(tmp_path)


def test_a_note_that_is_moved_away_while_it_is_read_is_named(notes: Path) -> None:
    source = Source(notes)
    assert len(source.members) == 5
    (notes / "tea.md").unlink()
    items = list(importer("markdown").read(source))
    assert [str(item) for item in items if isinstance(item, Broken)] == [
        "tea.md: cannot be read: No such file or directory"
    ]
    assert len(items) == 5
    assert source.size == sum(len(f"Note {name}") for name in ("closed/a", "listed/b", "open/c", "secret"))
    assert source.changed_at("tea.md") is None
