"""Whatever a source says is kept, named as left out, or broken: one value is changed, removed or added at a time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from foreign_documents import DOCUMENTS, written
from odd_values import Place, altered, places, removed, value_at

from commonplace.transfer.importers import importer, names
from commonplace.transfer.importers.source import Source, SourceMemory, SourceStatement
from commonplace.transfer.report import BrokenFile

#: The first four can be looked for in what was imported.
FOUND_AGAIN: list[Any] = ["odd-value", 10**30, ["odd-value"], {"odd-key": "odd-value"}]
ODD = [*FOUND_AGAIN, True, 0, -1, 7.25, [7.25], [[0]]]
SAYS_NOTHING: list[Any] = [None, "", [], {}]

#: What is left out whole, and why: whatever stands in it is told with it.
WHOLE: dict[str, dict[Place, str]] = {
    "chatgpt": {
        (0, "mapping", "c1-sys", "message"): "it is of the system or of a tool",
        (0, "mapping", "c1-old", "message"): "it is on a branch that was edited or regenerated away",
        (0, "mapping", "c1-pic", "message", "content", "parts", 0): "pictures and files are not imported",
        (0, "mapping", "c1-ask", "message", "metadata", "attachments", 0): "an attached file is not imported",
    },
    "claude": {
        (0, "summary"): "the summary of a conversation is not imported",
        (0, "chat_messages", 0, "files", 0): "pictures and files are not imported",
        (0, "chat_messages", 1, "content", 0): "a part of it is not text but thinking",
        (0, "chat_messages", 2): "it has no text",
    },
    "mem0": {("results", 2): "it has no text", ("relations", 1): "a relation without both its ends"},
}

#: Texts that are all there is of a memory: where they are missing, nothing is missed.
IS_A_MEMORY: set[Place] = {
    (1, "description"), (2, "conversations_memory"), (2, "project_memories", "p-1"),  # of Claude
    *((line, "observations", number) for line in (0, 2) for number in (0, 1)),  # of server-memory
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What an import says: what it takes in, and what it tells of the rest."""

    kept: list[str]
    told: list[tuple[str, str]]

    def reasons(self) -> Counter[str]:
        return Counter(reason for _, reason in self.told)

    def names_field(self, place: Place) -> bool:
        """Whether a field on the way to that place is one of those that are not read."""
        fields = {name for what, reason in self.told if reason.startswith("fields of ") for name in what.split(", ")}
        return not fields.isdisjoint(key for key in place if isinstance(key, str))


def outcome(name: str, path: Path) -> Outcome:
    source = Source(path)
    kept, told = [], []
    try:
        for item in importer(name).read(source):
            if isinstance(item, SourceMemory | SourceStatement):
                kept.append(json.dumps(asdict(item), sort_keys=True))
            else:
                told.append((getattr(item, "what", None) or getattr(item, "where", ""), item.reason))
    except BrokenFile as stop:
        told.append((stop.broken.where, stop.broken.reason))
    told += [(item.what, item.reason) for item in source.fields_left_out()]
    return Outcome(sorted(kept), told)


def is_told(before: Outcome, after: Outcome) -> bool:
    return bool(Counter(after.told) - Counter(before.told))


def is_kept(value: Any, without: Outcome, after: Outcome) -> bool:
    if value in FOUND_AGAIN:
        said = "".join(after.kept)
        parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
        return all(str(part) in said or str(float("inf" if isinstance(part, str) else part)) in said for part in parts)
    return after.kept != without.kept


def is_whole(name: str, place: Place, after: Outcome) -> bool:
    """Whether it is part of something that is left out whole, and that is still said."""
    for start, reason in WHOLE.get(name, {}).items():
        if place[: len(start)] == start and reason in [why for _, why in after.told]:
            return True
    return False


def is_record(name: str, place: Place) -> bool:
    """Whether it is, or holds, what a file consists of, and not a field of that."""
    if name == "amp":  # of whose state lists of anything but texts are broken
        return len(place) < 3 or place[2:4] in (("state", "decisions"), ("state", "flags"))
    records = ("mapping", "chat_messages", "docs", "results")
    is_one = isinstance(place[-1], int) if len(place) == 1 else place[-2] in records
    return is_one or place[-1] in (*records, "message", "predicate")


def silent(name: str, document: Any, folder: Path) -> list[str]:
    """The changes of values of which an import says nothing."""
    before = outcome(name, written(name, document, folder))
    found = []
    for place in places(document):
        if not place or (name == "amp" and len(place) < 3):  # a database has tables, and these have rows
            continue
        without = outcome(name, written(name, removed(document, place), folder))
        for value in ODD:
            if value == value_at(document, place):
                continue
            after = outcome(name, written(name, altered(document, place, value), folder))
            in_place_of_many = isinstance(value_at(document, place), list | dict) and value in FOUND_AGAIN
            fewer = len(after.kept) < len(before.kept) and not in_place_of_many
            kept = not fewer and is_kept(value, without, after)
            if not (is_told(before, after) or kept or after.names_field(place) or is_whole(name, place, after)):
                found.append(f"{place} = {value!r}")
    return found


def test_every_format_has_a_document() -> None:
    assert sorted(DOCUMENTS) == names()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_value_of_another_kind_is_kept_or_named_or_broken(name: str, tmp_path: Path) -> None:
    assert silent(name, DOCUMENTS[name](tmp_path), tmp_path) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_memory_is_lost_with_a_field_that_is_empty_or_missing(name: str, tmp_path: Path) -> None:
    """Ids, times, kinds and names may be missing; the rest of the record is taken in, or is said to be left out."""
    document = DOCUMENTS[name](tmp_path)
    before = outcome(name, written(name, document, tmp_path))
    lost = []
    for place in places(document):
        if not place or isinstance(value_at(document, place), list | dict) or place in IS_A_MEMORY:
            continue
        changes = {"removed": removed(document, place)}
        changes |= {repr(value): altered(document, place, value) for value in SAYS_NOTHING}
        for change, changed in changes.items():
            after = outcome(name, written(name, changed, tmp_path))
            if len(after.kept) < len(before.kept) and not is_told(before, after):
                lost.append(f"{place} {change}")
    assert lost == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_field_that_is_null_or_empty_is_not_named(name: str, tmp_path: Path) -> None:
    """It is as if it were not there."""
    document = DOCUMENTS[name](tmp_path)
    before = outcome(name, written(name, document, tmp_path)).reasons()
    named = []
    for place in places(document):
        if not place or is_record(name, place):
            continue
        without = outcome(name, written(name, removed(document, place), tmp_path)).reasons()
        for value in SAYS_NOTHING:
            if name == "amp" and value in ([], {}) and place[2] not in ("tags", "state"):
                continue  # a column is a text then
            after = outcome(name, written(name, altered(document, place, value), tmp_path))
            if after.names_field(place[:-1]):
                continue  # what it is in says something, and is not read
            if more := after.reasons() - (before | without):
                named.append(f"{place} = {value!r}: {list(more)}")
    assert named == []


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("value", [True, 0, "odd-value", {"a": ["odd-value"]}], ids=str)
def test_a_field_of_an_unknown_name_is_kept_or_named(name: str, value: Any, tmp_path: Path) -> None:
    document = DOCUMENTS[name](tmp_path)
    before = outcome(name, written(name, document, tmp_path))
    dropped = []
    for place in places(document):
        if not isinstance(value_at(document, place), dict) or (name == "amp" and len(place) < 2):
            continue
        after = outcome(name, written(name, altered(document, (*place, "unheard_of"), value), tmp_path))
        said = (json.dumps(value), json.dumps(json.dumps(value)))  # what is more than a list stays as written in notes
        kept = any("unheard_of" in line and any(each in line for each in said) for line in after.kept)
        named = after.names_field(("unheard_of",)) or is_told(before, after)
        if not (kept or named or after.names_field(place) or is_whole(name, place, after)):
            dropped.append(str(place))
    assert dropped == []
