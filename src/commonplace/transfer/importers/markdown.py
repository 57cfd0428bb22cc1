"""Notes in Markdown with front matter, as basic-memory and Obsidian keep them: a file or a folder of them.

A note is one memory, its text as it stands. Links to other notes tie it to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from commonplace.engine import Draft
from commonplace.transfer.importers.front_matter import split
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    has_value,
    milliseconds,
    text_of,
    texts_of,
)
from commonplace.transfer.report import BrokenFile
from commonplace.wire.record import MAX_CONTENT_CHARS

NAME, TITLE = "markdown", "Markdown notes (basic-memory, Obsidian)"
_NOTES = r"(?s).*\.(?i:md|markdown)"
_LINK = re.compile(r"\[\[([^\]|#\n]{1,200})(?:[#|][^\]\n]*)?\]\]")
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_CREATED, _CHANGED = ("created", "created_at", "date"), ("modified", "updated", "updated_at", "last_modified")
_MAX_LINKS = 64
_FIRST_EPOCH = 100_000_000  # below it a number is a day or a year, and no time of 1973 or later in seconds


def matches(source: Source) -> bool:
    return bool(source.named(_NOTES)) and not source.is_zip


def read(source: Source) -> Iterator[Item]:
    notes = source.named(_NOTES)
    ids = _ids(source, notes)
    for member in source.members:
        if member not in ids:
            yield LeftOut(member, "it is not Markdown", is_incidental=True)
            continue
        text = _text(source, member)
        if isinstance(text, Broken | LeftOut):
            yield text
            continue
        yield from _note(source, member, text, ids)


def _ids(source: Source, notes: list[str]) -> dict[str, str]:
    """What each note is called by its path, and where no two share it, by its title and its file name."""
    found: dict[str, str] = {}
    names: dict[str, set[str]] = {}
    for member in notes:
        text = _text(source, member)
        fields, body = split(text) if isinstance(text, str) else ({}, "")
        stem = member.rpartition("/")[2].rpartition(".")[0]
        found[member] = _written(fields.get("permalink")) or member.rpartition(".")[0]
        for name in (_title(fields, body, stem), stem, found[member]):
            names.setdefault(name.casefold(), set()).add(found[member])
    source.position = 0
    return found | {f"[[{name}]]": next(iter(ids)) for name, ids in names.items() if len(ids) == 1}


def _text(source: Source, member: str) -> str | Broken | LeftOut:
    try:
        with source.open(member) as file:
            data = file.read(4 * MAX_CONTENT_CHARS + 1)
    except BrokenFile as stop:
        return stop.broken
    if len(data) > 4 * MAX_CONTENT_CHARS:
        return LeftOut(member, f"it is longer than the {MAX_CONTENT_CHARS:,} characters of a memory")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Broken(f"{member} line {line}", "is not UTF-8 text")


def _note(source: Source, member: str, text: str, ids: dict[str, str]) -> Iterator[Item]:
    fields, body = split(text)
    body = body.strip()
    if not body:
        yield LeftOut(member, "it has no text")
        return
    stem = member.rpartition("/")[2].rpartition(".")[0]
    at = _time(fields, _CREATED) or source.changed_at(member)
    linked = [ids.get(f"[[{name.strip().casefold()}]]") for name in _LINK.findall(body)]
    references = [id for id in dict.fromkeys(linked) if id and id != ids[member]][:_MAX_LINKS]
    if None in linked and len(source.members) == 1:  # of a folder, no note has that name yet
        yield LeftOut(member, "what it links to is not tied to it: import the folder, or the zip, that has both")
    lifted = _lifted(fields)
    metadata = {name: value for name, value in fields.items() if name not in lifted and value is not None}
    if references and has_value(metadata.get("references")):
        yield LeftOut(member, "its own field references is not kept: the notes that it links to take its place")
    metadata |= {"references": references} if references else {}
    changed = _time(fields, _CHANGED)
    draft = Draft(
        "", "semantic", body, kind="note", title=_title(fields, body, stem), tags=_tags(fields.get("tags")),
        metadata=metadata, source=member, event_time=_time(fields, _CREATED),
    )  # fmt: skip
    yield SourceMemory(ids[member], draft, at, {} if changed is None else {"updated_at": changed})


def _lifted(fields: dict[str, Any]) -> set[str]:
    """The fields that have a place of their own here. What cannot be read as such, or is a second time where one has a
    place, is metadata: as it was written."""
    lifted = {name for name in ("title", "permalink") if _written(fields.get(name)) or not has_value(fields.get(name))}
    tags = fields.get("tags")
    if all(_written(tag) or not has_value(tag) for tag in (tags if isinstance(tags, list) else [tags])):
        lifted.add("tags")
    for names in (_CREATED, _CHANGED):
        lifted.update([name for name in names if _instant(fields.get(name)) is not None][:1])
    return lifted


def _title(fields: dict[str, Any], body: str, stem: str) -> str:
    heading = _HEADING.search(body)
    return _written(fields.get("title")) or (heading[1].strip() if heading else stem)


def _tags(value: Any) -> list[str]:
    listed = re.split(r"[,\s]+", value) if isinstance(value, str) else value
    named = [_written(tag) for tag in (listed if isinstance(listed, list) else [listed])]
    return [tag.removeprefix("#") for tag in texts_of(named)]


def _time(fields: dict[str, Any], names: tuple[str, ...]) -> int | None:
    return next((at for name in names if (at := _instant(fields.get(name))) is not None), None)


def _instant(value: Any) -> int | None:
    """As `milliseconds`, of what people write by hand: 20240501 is a day, and 2024 no number of seconds since 1970."""
    if not isinstance(value, int) or isinstance(value, bool) or value >= _FIRST_EPOCH:
        return milliseconds(value)
    try:
        return milliseconds(datetime.strptime(f"{value:08}", "%Y%m%d").date().isoformat())
    except ValueError:
        return None


def _written(value: Any) -> str:
    """A field as it was written, also where it is a number by itself: a title may be 1984."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else text_of(value)
