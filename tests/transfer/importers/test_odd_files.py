"""Whatever a file holds, an importer gives what it could read and names what it could not; nothing else is raised."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from foreign_files import EVERY, NELLIE, chatgpt_conversation
from odd_values import ODD, altered, places

from commonplace.transfer.import_source import detect
from commonplace.transfer.importers import importer, names
from commonplace.transfer.importers.front_matter import split
from commonplace.transfer.importers.source import Item, LeftOut, Source, SourceMemory, SourceStatement
from commonplace.transfer.report import Broken, BrokenFile
from commonplace.wire.errors import ValidationError


def read(name: str, path: Path) -> list[Item]:
    try:
        return list(importer(name).read(Source(path)))
    except BrokenFile as stop:
        return [stop.broken]


def require_readable(items: list[Item]) -> None:
    for item in items:
        if isinstance(item, SourceMemory):
            draft = item.draft
            assert item.id
            assert draft.content.strip()
            assert all(isinstance(tag, str) for tag in draft.tags)
            for text in (draft.title, draft.user_id, draft.session_id, draft.speaker, draft.project, draft.source):
                assert text is None or (isinstance(text, str) and text)
            for time in (item.created_at, draft.event_time, draft.expires_at):
                assert time is None or isinstance(time, int)
            json.dumps(draft.metadata, allow_nan=False)
        elif isinstance(item, SourceStatement):
            assert item.subject
            assert item.predicate
            assert item.object
        else:
            assert isinstance(item, LeftOut | Broken)
            assert item.reason


def documents(name: str, folder: Path) -> Any:
    """What the files of a format say, as one document; and how one such document is written again."""
    if name == "chatgpt":
        return [chatgpt_conversation()]
    path = EVERY[name][0](folder)
    if name == "claude":
        return [
            json.loads((path / f"{part}.json").read_text())[0] for part in ("conversations", "projects", "memories")
        ]
    text = path.read_text("utf-8")
    return json.loads(text) if name == "mem0" else [json.loads(line) for line in text.splitlines()]


def written(name: str, document: Any, path: Path) -> Path:
    lines = name in ("server_memory", "trusty") and isinstance(document, list)
    path.write_text("\n".join(map(json.dumps, document)) if lines else json.dumps(document), "utf-8")
    return path


@pytest.mark.parametrize("name", ["chatgpt", "claude", "mem0", "server_memory", "trusty"])
def test_a_value_of_any_other_kind_anywhere(name: str, tmp_path: Path) -> None:
    document = documents(name, tmp_path)
    path = tmp_path / "odd.json"
    for place in places(document):
        for value in ODD:
            require_readable(read(name, written(name, altered(document, place, value), path)))


@pytest.mark.parametrize("name", EVERY)
def test_a_file_that_ends_anywhere(name: str, tmp_path: Path) -> None:
    whole = EVERY[name][0](tmp_path)
    data = next(whole.rglob("*.*")).read_bytes() if whole.is_dir() else whole.read_bytes()
    cut = tmp_path / ("cut.md" if name == "markdown" else "cut")
    for end in range(0, len(data), max(len(data) // 150, 1)):
        cut.write_bytes(data[:end])
        require_readable(read(name, cut))


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("files", [[], ["a.txt"], ["a.txt", "b.txt"]], ids=["empty", "one", "two"])
def test_a_folder_that_holds_nothing_of_the_kind(name: str, files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in files:
        (folder / file).write_text("hello")
    items = read(name, folder)
    require_readable(items)
    assert not [item for item in items if isinstance(item, SourceMemory)]
    assert items or name == "markdown"  # in which there may be no notes


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1" * 5000, "[" * 100_000], ids=["nan", "inf", "digits", "depth"])
@pytest.mark.parametrize("name", ["chatgpt", "claude", "mem0", "server_memory", "trusty"])
def test_numbers_that_are_none_and_endless_lists(name: str, text: str, tmp_path: Path) -> None:
    path = written(name, documents(name, tmp_path), tmp_path / "odd.json")
    said = path.read_text()
    for mark in ('"mapping": {', '"uuid": "m-1"', '"metadata": {', '"type": "entity"', '"format_version": 1'):
        path.write_text(said.replace(mark, f'"odd": {text}, {mark}'))
        require_readable(read(name, path))


def test_an_archive_that_is_damaged_anywhere(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        conversations = [chatgpt_conversation(n) for n in range(20)]
        archive.writestr("conversations.json", json.dumps(conversations))
    whole = packed.getvalue()
    path = tmp_path / "chatgpt.zip"
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + b"\xff\x00\xff\x00" + whole[at + 4 :])
        require_readable(read("chatgpt", path))
        with suppress(ValidationError):
            detect(path)


def test_an_archive_with_a_password_is_said_to_have_one(tmp_path: Path) -> None:
    path = tmp_path / "claude.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)
    (broken,) = read("claude", path)
    assert "encrypted" in str(broken)
    with pytest.raises(ValidationError, match=r"claude\.zip: .*encrypted"):
        detect(path)


@pytest.mark.parametrize("state", ["7", '"x"', "[]", "null", '{"decisions": [1]}', '{"flags": "x"}', "[" * 100_000])
def test_a_state_of_nellie_that_is_none(state: str, tmp_path: Path) -> None:
    path = tmp_path / "n.db"
    db = apsw.Connection(str(path))
    db.execute(NELLIE)
    db.execute("INSERT INTO checkpoints VALUES('cp', 'a', NULL, NULL, 'x', ?, 1)", (state,))
    db.execute("INSERT INTO lessons VALUES(7, 't', 'c', 7, 'info', NULL, NULL, 'yesterday', 1e300)")
    db.close()
    items = read("amp", path)
    require_readable(items)
    assert len([item for item in items if not isinstance(item, LeftOut)]) == 2
    assert [item.reason for item in items if isinstance(item, LeftOut)] == [
        f"its {name} is no time; the rest is read" for name in ("created_at", "updated_at")
    ] + ["one of its tags is no text; the rest is read"]


def test_a_line_of_front_matter_as_long_as_a_memory() -> None:
    long = 200_000
    for line in (" " * long, "a " * long, "a: " + "[" * long + "]" * long, "a" * long + ": b", "- " * long):
        split(f"---\n{line}\nb: 1\n---\ntext")
