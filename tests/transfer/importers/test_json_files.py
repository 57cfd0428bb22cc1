"""What is broken in a file is named, and what follows it is read."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from foreign_files import chatgpt_conversation, server_memory
from transfer_scenarios import WHO

from commonplace.testing.subject import Subject
from commonplace.transfer.import_source import Target, import_source
from commonplace.transfer.importers import importer, json_files
from commonplace.transfer.importers.json_files import elements_of_each
from commonplace.transfer.importers.source import Source, SourceMemory
from commonplace.transfer.report import Broken, BrokenFile, ImportRefused

_DRAWER = '{"content": "Bob keeps bees", "drawer_type": "note", "id": "d%d"}\n'
_ENTITY = '{"type": "entity", "name": "Bob %d", "entityType": "person", "observations": ["keeps bees"]}\n'
LINES = {"server_memory": _ENTITY, "trusty": _DRAWER}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_a_line_without_end_is_passed_over_and_the_next_is_read(
    name: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive of kilobytes may hold gigabytes of one line."""
    monkeypatch.setattr(json_files, "MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "lines.jsonl"
    path.write_text(LINES[name] % 1 + '{"x": "' + "x" * (12 << 20) + '"}\n' + LINES[name] % 2)
    if packed:
        with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, path.name)
        path = tmp_path / "bomb.zip"
    source = Source(path)
    tracemalloc.start()
    try:
        items = list(importer(name).read(source))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert [item for item in items if isinstance(item, Broken)] == [Broken("line 2", "is longer than 1 MB; split it")]
    assert len([item for item in items if isinstance(item, SourceMemory)]) == 2
    assert source.position == source.size


def test_what_is_around_such_a_line_is_imported_only_where_that_is_wanted(
    subject: Subject, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "MAX_LINE_BYTES", 1 << 20)
    path, text = tmp_path / "memory.jsonl", server_memory(tmp_path).read_text()
    path.write_text(text)
    whole = run(import_source(subject.engine, WHO, path, "server_memory", Target("first"))).written
    path.write_text('{"type": "entity", "name": "' + "x" * (1 << 20) + '"}\n' + text)
    with pytest.raises(ImportRefused, match=r"line 1: is longer than 1 MB; split it; nothing was imported"):
        run(import_source(subject.engine, WHO, path, "server_memory", Target("second", all_to_agent=True)))
    assert "second" not in run(subject.engine.agent_names(WHO))
    done = run(
        import_source(subject.engine, WHO, path, "server_memory", Target("third", all_to_agent=True), skip_broken=True)
    )
    assert done.written == whole
    assert [str(each) for each in done.broken] == ["line 1: is longer than 1 MB; split it"]


@pytest.mark.parametrize("packed", [False, True])
def test_after_a_list_that_is_broken_the_next_file_is_read(
    packed: bool, subject: Subject, run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "chats"
    folder.mkdir()
    texts = [json.dumps([chatgpt_conversation(n)]) for n in range(3)]
    texts[1] = texts[1][:200]
    for n, text in enumerate(texts):
        (folder / f"conversations-00{n}.json").write_text(text)
    path = folder
    if packed:
        path = tmp_path / "chats.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, file.name)
    (alone := tmp_path / "alone.json").write_text(texts[0])
    each = run(import_source(subject.engine, WHO, alone, "chatgpt", Target("alone"), dry_run=True)).written["memory"]
    with pytest.raises(ImportRefused, match=r"conversations-001\.json line 1: is not valid JSON"):
        run(import_source(subject.engine, WHO, path, "chatgpt", Target("agent")))
    done = run(import_source(subject.engine, WHO, path, "chatgpt", Target("agent"), skip_broken=True))
    assert done.written["memory"] == 2 * each > 0
    assert [broken.where for broken in done.broken] == ["conversations-001.json line 1"]


def test_nothing_follows_a_file_that_is_all_there_is(tmp_path: Path) -> None:
    """A transcript of it is refused then, and not taken for the first half of a talk."""
    path = tmp_path / "list.json"
    path.write_text("[1, 2")
    found = []
    with pytest.raises(BrokenFile, match=r"list\.json line 1: ends in the middle of the list"):
        found += elements_of_each(Source(path), ["list.json"])
