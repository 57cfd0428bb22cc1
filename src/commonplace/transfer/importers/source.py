"""What an importer reads from and what it gives. Importers decide nothing: what may be kept is the engine's to say."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from commonplace.engine import Draft
from commonplace.transfer.report import Broken as Broken, BrokenFile as BrokenFile

_HEAD = 65_536
_SECONDS_BEFORE = 100_000_000_000  # smaller numbers are seconds: as milliseconds they would be of 1973
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class SourceMemory:
    """A memory of another product. Its `draft` names no agent where the source knows none."""

    id: str  # as the source calls it; the memory's alias here
    draft: Draft
    created_at: int | None = None  # ms
    more: dict[str, Any] = field(default_factory=dict)  # of provenance, such as when the source last changed it


@dataclass(slots=True)
class SourceStatement:
    subject: str
    predicate: str
    object: str
    valid_from: int | None = None
    valid_to: int | None = None
    confidence: float = 1.0
    provenance: str | None = None
    agent: str = ""


@dataclass(slots=True)
class LeftOut:
    """Something of the source that is not imported."""

    what: str
    reason: str


Item = SourceMemory | SourceStatement | LeftOut | Broken


class Source:
    """A file, a zip or a folder; `position` of `size` bytes are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0

    @cached_property
    def is_zip(self) -> bool:
        return self.path.is_file() and zipfile.is_zipfile(self.path)

    @cached_property
    def members(self) -> list[str]:
        """The files in it, by their paths; of a file its own name."""
        if self.is_zip:
            with zipfile.ZipFile(self.path) as archive:
                return sorted(info.filename for info in archive.infolist() if not info.is_dir())
        if self.path.is_dir():
            return sorted(self._walk())
        return [self.path.name]

    @cached_property
    def size(self) -> int:
        if self.is_zip:
            with zipfile.ZipFile(self.path) as archive:
                return sum(info.file_size for info in archive.infolist())
        if self.path.is_dir():
            return sum((self.path / member).lstat().st_size for member in self.members)
        return self.path.stat().st_size

    def named(self, pattern: str) -> list[str]:
        """Members whose own name, without folders, matches."""
        wanted = re.compile(pattern)
        return [member for member in self.members if wanted.fullmatch(member.rpartition("/")[2])]

    @contextmanager
    def open(self, member: str) -> Iterator[BinaryIO]:
        try:
            if self.is_zip:
                with zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
                    yield _CountingFile(file, self)  # type: ignore[misc]
            else:
                path = self.path / member if self.path.is_dir() else self.path
                with path.open("rb") as file:
                    yield _CountingFile(file, self)  # type: ignore[misc]
        except (zipfile.BadZipFile, EOFError) as error:
            raise BrokenFile(member, f"the archive is damaged: {error}") from error

    def head(self, member: str) -> bytes:
        with self.open(member) as file:
            start = file.read(_HEAD)
        self.position = 0
        return start

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.path, followlinks=False):
            # What a tool keeps for itself, such as .git or .obsidian, holds no notes.
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in files:
                path = Path(folder, name)
                if not name.startswith(".") and not path.is_symlink() and path.is_file():
                    yield path.relative_to(self.path).as_posix()


class _CountingFile:
    """A file that tells its source how much of it was read."""

    def __init__(self, file: Any, source: Source) -> None:
        self._file, self._source = file, source

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self._source.position += len(data)
        return data

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self._source.position += len(line)
            yield line


def milliseconds(value: Any) -> int | None:
    """A time as sources write it: ISO text, or seconds or milliseconds since 1970; None where it is none."""
    try:
        if isinstance(value, bool) or value in (None, ""):
            return None
        if isinstance(value, (int, float)):
            number = value if value >= _SECONDS_BEFORE else value * 1000
            return round(number) if number > 0 else None
        moment = datetime.fromisoformat(str(value).strip())
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts_of(value: Any) -> list[str]:
    """A list of texts, whatever else may be in it."""
    listed = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(each.strip() for each in listed if isinstance(each, str) and each.strip()))


def label(text: str) -> str:
    """A source's own words, short enough for a sentence of ours."""
    return _UNSAFE.sub(" ", text)[:60]
