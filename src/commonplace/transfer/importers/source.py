"""What an importer reads from and what it gives. Importers decide nothing: what may be kept is the engine's to say."""

from __future__ import annotations

import codecs
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from commonplace.engine import Draft
from commonplace.transfer.report import Broken as Broken, BrokenFile as BrokenFile

_HEAD = 65_536
_NAMES = 100  # of fields that are not read: a file may have one of its own in every line
_SECONDS_BEFORE = 100_000_000_000  # smaller numbers are seconds: as milliseconds they would be of 1973
_LAST_INSTANT = 253_402_300_799_999  # of the year 9999
_NUMBER = re.compile(r"([0-9]{9,10}|[0-9]{13})(\.[0-9]{1,9})?")  # other lengths may be a date without signs
#: What reading a zip may end in; the last two where it is encrypted or packed in a way that is not known here.
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_NO_DATE = (1980, 1, 1, 0, 0, 0)  # of a file in an archive whose maker knew none
_ARCHIVE = b"PK\x03\x04"  # how each begins, also one whose end with its directory is missing
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
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
    is_incidental: bool = False  # a file or a field beside what the format is about


Item = SourceMemory | SourceStatement | LeftOut | Broken


class Source:
    """A file, a zip or a folder; `position` of `size` bytes are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self.unreadable: list[Broken] = []  # what of it could not be looked at, known once its members are
        self._unread: set[str] = set()
        self._fields: dict[str, dict[str, None]] = {}  # the first names of those that are not read
        self._more: set[str] = set()  # of what there are others

    @cached_property
    def is_zip(self) -> bool:
        return self.path.is_file() and (zipfile.is_zipfile(self.path) or self._begins_as_archive())

    def _begins_as_archive(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return file.read(len(_ARCHIVE)) == _ARCHIVE
        except OSError:  # reading it says so
            return False

    @cached_property
    def members(self) -> list[str]:
        """The files in it, by their paths; of a file its own name."""
        if self.is_zip:
            counts = Counter(name for name in self._archive.namelist() if name and not name.endswith("/"))
            for name, count in counts.items():
                if count > 1:
                    why = f"is in the archive {count} times, and only the last can be read; pack it again"
                    self.unreadable.append(Broken(label(name), why))
            return sorted(counts)
        if self.path.is_dir():
            return sorted(self._walk())
        return [self.path.name]

    @cached_property
    def size(self) -> int:
        if self.is_zip:
            return sum(info.file_size for info in self._archive.infolist() if info.filename not in self._unread)
        if self.path.is_dir():
            return sum(map(self._size_of, set(self.members).difference(self._unread)))
        return self.path.stat().st_size

    def _size_of(self, member: str) -> int:
        try:
            return (self.path / member).lstat().st_size
        except OSError:  # it is gone by now, or was moved: reading it says so
            return 0

    def changed_at(self, member: str) -> int | None:
        """When a file was last written, in ms; None of one that is gone by now, or of which an archive does not say."""
        try:
            if self.is_zip:  # whose own time is that of the download
                said = self._archive.getinfo(member).date_time
                return None if said == _NO_DATE else int(datetime(*said, tzinfo=UTC).timestamp()) * 1000
            return round((self.path / member if self.path.is_dir() else self.path).stat().st_mtime * 1000)
        except (OSError, ValueError):  # the latter of a date that is none
            return None

    def named(self, pattern: str) -> list[str]:
        """Members whose own name, without folders, matches."""
        wanted = re.compile(pattern)
        return [member for member in self.members if wanted.fullmatch(member.rpartition("/")[2])]

    def others(self, read: list[str]) -> Iterator[LeftOut]:
        """The files in it that a format does not read."""
        self._unread = set(self.members).difference(read)  # which `size` leaves out: nobody will have read them
        for member in self.members:
            if member in self._unread:
                yield LeftOut(label(member), "a file that is not read", is_incidental=True)

    def note_unread_fields(self, of: str, element: dict[str, Any], read: Collection[str]) -> None:
        """Notes the fields of an element that a format does not read; those that say nothing are not missed."""
        names = self._fields.setdefault(of, {})
        for name in (label(name) for name, value in element.items() if name not in read and has_value(value)):
            if len(names) < _NAMES:
                names[name] = None
            elif name not in names:
                self._more.add(of)

    def fields_left_out(self) -> Iterator[LeftOut]:
        """The fields that were not read so far, by what they are of: each name once, however often it is there."""
        for of, names in self._fields.items():
            if names:
                more = " and others" if of in self._more else ""
                yield LeftOut(f"{', '.join(names)}{more}", f"fields of {of} that are not read", is_incidental=True)

    def single(self) -> str:
        """The file of a format that is one file."""
        if len(self.members) != 1:
            raise BrokenFile(self.path.name, "holds several files, or none; name the one that is to be imported")
        return self.members[0]

    @contextmanager
    def open(self, member: str) -> Iterator[BinaryIO]:
        if not self.is_zip:
            path = self.path / member if self.path.is_dir() else self.path
            try:
                opened = path.open("rb")
            except OSError as error:
                raise BrokenFile(label(member), _unreadable(error)) from error
            with opened:
                yield _text(_CountingFile(opened, self, member))
            return
        try:
            packed = self._archive.open(member)
        except (*_DAMAGES, KeyError) as error:
            raise _damaged(member, error) from error
        with packed:
            yield _text(_CountingFile(packed, self, member))

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        """Kept open until nobody has this source any more: with each opening all that it lists would be read again."""
        try:
            return zipfile.ZipFile(self.path)
        except _DAMAGES as error:
            why = "the archive is damaged, or a part of it is missing; fetch it again"
            raise BrokenFile(label(self.path.name), why) from error

    def head(self, member: str) -> bytes:
        with self.open(member) as file:
            start = file.read(_HEAD)
        self.position = 0
        return start

    def heads(self, members: list[str]) -> Iterator[bytes]:
        """Of each that can be read; raises BrokenFile where none of them can."""
        stopped, found = None, False
        for member in members:
            try:
                start = self.head(member)
            except BrokenFile as stop:
                stopped = stop
                continue
            found = True
            yield start
        if stopped is not None and not found:
            raise stopped

    def _walk(self) -> Iterator[str]:
        def note(error: OSError) -> None:
            where = Path(error.filename or self.path)
            if where == self.path:
                raise BrokenFile(label(self.path.name), f"the folder {_unreadable(error)}") from error
            self.unreadable.append(Broken(self._named(where), f"the folder {_unreadable(error)}"))

        for folder, folders, files in os.walk(self.path, followlinks=False, onerror=note):
            # What a tool keeps for itself, such as .git or .obsidian, holds no notes.
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(folder, name) for name in files if not name.startswith(".")):
                try:
                    is_member = not path.is_symlink() and path.is_file()
                except OSError as error:  # in a folder whose names may be listed, and no more
                    self.unreadable.append(Broken(self._named(path), _unreadable(error)))
                    continue
                if is_member:
                    yield path.relative_to(self.path).as_posix()

    def _named(self, path: Path) -> str:
        return label(path.relative_to(self.path).as_posix() if path.is_relative_to(self.path) else path.name)


class _CountingFile:
    """A file that tells its source how much of it was read."""

    def __init__(self, file: Any, source: Source, member: str) -> None:
        self._file, self._source, self._member = file, source, member

    def read(self, size: int = -1) -> bytes:
        return self._counted(lambda: self._file.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self._counted(lambda: self._file.readline(size))

    def skip_byte_order_mark(self) -> None:
        start = self.read(len(codecs.BOM_UTF8))
        if start[:2] in _UTF_16:
            raise BrokenFile(label(self._member), "is UTF-16 text; save it as UTF-8")
        if start != codecs.BOM_UTF8:  # which Windows puts there
            self._file.seek(0)
            self._source.position -= len(start)

    def _counted(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
        except _DAMAGES as error:
            raise _damaged(self._member, error) from error
        except OSError as error:
            raise BrokenFile(label(self._member), _unreadable(error)) from error
        self._source.position += len(data)
        return data


def _text(file: _CountingFile) -> BinaryIO:
    """From where its text begins."""
    file.skip_byte_order_mark()
    return file  # type: ignore[return-value]


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {error.strerror or 'unknown reason'}"


def _damaged(member: str, error: Exception) -> BrokenFile:
    state = "cannot be read" if isinstance(error, RuntimeError) else "is damaged"
    return BrokenFile(
        label(member), f"the archive {state}: {_UNSAFE.sub(' ', str(error))[:200] or type(error).__name__}"
    )


def milliseconds(value: Any) -> int | None:
    """A time as sources write it: ISO text, or seconds or milliseconds since 1970; None where it is none."""
    # Before anything reads it as a date: 1712042400123 would be a day of the year 1712.
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = value if value >= _SECONDS_BEFORE else value * 1000
            return round(number) if 0 < number <= _LAST_INSTANT else None
        moment = datetime.fromisoformat(text_of(value).strip())
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def has_value(value: Any) -> bool:
    """Whether something stands there: a null, or a text, list or object that is empty, says nothing."""
    return value not in (None, "", [], {})


def mistyped_fields(
    element: dict[str, Any], where: str, *, texts: Iterable[str] = (), times: Iterable[str] = (),
    objects: Iterable[str] = (), lists: Iterable[str] = (),
) -> Iterator[LeftOut]:  # fmt: skip
    """The fields of a record whose values are of another kind than the format has, and so are not kept with it."""
    for kind, names in (("text", texts), ("time", times), ("object", objects), ("list", lists)):
        for name in names:
            if has_value(element.get(name)) and not _is_kind(kind, element[name]):
                yield LeftOut(where, f"its {name} is no {kind}; the rest is read")


def _is_kind(kind: str, value: Any) -> bool:
    if kind == "time":
        return milliseconds(value) is not None
    return isinstance(value, {"text": str, "object": dict, "list": list}[kind])


def odd_texts(listed: Any, where: str, what: str) -> Iterator[LeftOut]:
    """Of what should be a list of texts, or one, those that are none."""
    for each in listed if isinstance(listed, list) else [listed]:
        if has_value(each) and not isinstance(each, str):
            yield LeftOut(where, f"{what} is no text; the rest is read")


def with_unknown(
    metadata: dict[str, Any], element: dict[str, Any], read: Collection[str], where: str
) -> tuple[dict[str, Any], list[LeftOut]]:
    """The metadata of a memory with the fields that the format does not name, and those whose names are taken."""
    unknown = {name: value for name, value in element.items() if name not in read and value is not None}
    taken = [
        name for name, value in unknown.items() if name in metadata and metadata[name] != value and has_value(value)
    ]
    clashes = [LeftOut(where, f"its {label(name)} is in its metadata, too, and that is kept") for name in taken]
    return unknown | metadata, clashes


def noted_times(**times: Any) -> dict[str, int]:
    """Those of the times that can be read, by their names."""
    read = {name: milliseconds(value) for name, value in times.items()}
    return {name: at for name, at in read.items() if at is not None}


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """A list of texts, whatever else may be in it."""
    listed = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(each.strip() for each in listed if isinstance(each, str) and each.strip()))


def label(text: str) -> str:
    """A source's own words, short enough for a sentence of ours."""
    return _UNSAFE.sub(" ", text)[:60]
