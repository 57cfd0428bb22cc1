"""Reading an export back. A file is read twice: once to find out whether all of it is right, once to take it in."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import io
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from commonplace.engine import MERGED_IN_A_CIRCLE, Engine, Erasures, Outcome, Palace, Progress, Triple
from commonplace.stores.graph import LEAP_MS
from commonplace.transfer import records
from commonplace.transfer.bounded_lines import bounded_lines
from commonplace.transfer.report import Broken, ImportRefused, ImportReport
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.record import Memory, Principal
from commonplace.wire.strict_json import InvalidJson, decode
from commonplace.wire.times import iso

Parsed = list[Memory] | Triple | Palace

_BATCH = 64  # memories of one unit of work
_BATCH_CHARS = 1_000_000
#: Of a line of a file that is not whole; all versions of a memory are one line, so that of a whole one has no bound.
_LONGEST = 256 << 20
_LONGEST_MANIFEST = 4096
_PIECE = 1 << 20


class ExportReader:
    """The records of a file with the number of their line; what is wrong is handed to `broken` and left out."""

    def __init__(
        self, file: BinaryIO, now: int, broken: Callable[[Broken], None], circular: Collection[int] | None = None
    ) -> None:
        """`circular` are lines that an earlier reading found: only at the end of the file are they known. Without them
        this is that reading."""
        self._file, self._now, self._broken, self._circular = file, now, broken, circular
        self._survivors: dict[str, tuple[int, str]] = {}  # of those that became part of another, where and of which
        self.size = file.seek(0, io.SEEK_END)
        self._start = _start_of(file)
        self.position = self._start

    def __iter__(self) -> Iterator[tuple[int, Parsed]]:
        digest, lines, counts = hashlib.sha256(), 0, Counter[str]()
        ended = False
        self._file.seek(self._start)
        read = bounded_lines(self._file, _LONGEST, allowed=self._is_whole, passed=self._pass_over)
        for number, line in enumerate(read, start=1):
            self.position += len(line or b"")
            if ended:
                self._broken(Broken(f"line {number}", "there is something after the manifest"))
                return
            try:
                if line is None:
                    raise ValidationError(f"is longer than {_LONGEST >> 20} MB, and the file is not whole")
                document = _document(line)
                if number == 1:
                    _check_header(document)
                elif document.get("record") == "manifest":
                    ended = True
                    self._check_manifest(number, document, digest.hexdigest(), lines, counts)
                else:
                    parsed = _parse(document)
                    _count(counts, parsed)
                    if isinstance(parsed, list):
                        _check_time(parsed[-1], self._now)
                    if self._circular is not None and number in self._circular:
                        raise ValidationError(MERGED_IN_A_CIRCLE)
                    if self._circular is None and isinstance(parsed, list):
                        self._note_survivor(number, parsed[-1])
                    yield number, parsed
            except Fault as fault:
                self._broken(Broken(f"line {number}", fault.message))
                if number == 1:
                    return  # whatever follows, it is not a file of ours
            digest.update(line or b"")
            lines += 1
        if not ended:
            self._broken(Broken(f"line {lines + 1}", "the file ends without its manifest: part of it is missing"))

    def _pass_over(self, piece: bytes) -> None:
        self.position += len(piece)

    def _is_whole(self) -> bool:
        """Whether all of the file is as an export wrote it: then a long line is a long history, and not the rest of a
        file on a damaged disk."""
        at = self._file.tell()
        start = self._file.seek(max(0, self.size - _LONGEST_MANIFEST))
        end = self._file.read()
        manifest = end.rstrip().rfind(b"\n") + 1
        digest, left = hashlib.sha256(), start + manifest - self._start
        self._file.seek(self._start)
        while left > 0 and (piece := self._file.read(min(left, _PIECE))):
            digest.update(piece)
            left -= len(piece)
        self._file.seek(at)
        return f'"sha256":"{digest.hexdigest()}"'.encode() in end[manifest:].replace(b" ", b"")

    def _note_survivor(self, number: int, memory: Memory) -> None:
        if memory.merged_into is not None:
            self._survivors[memory.id] = (number, memory.merged_into)

    def circular_lines(self) -> set[int]:
        """Of memories that became part of each other in a circle: nobody could ever take them apart again."""
        found: set[int] = set()
        passed: dict[str, str] = {}  # each id, by the one the walk began at that came to it first
        for start in self._survivors:
            id = start
            while id in self._survivors and id not in passed:
                passed[id] = start
                id = self._survivors[id][1]
            while passed.get(id) == start and self._survivors[id][0] not in found:
                found.add(self._survivors[id][0])
                id = self._survivors[id][1]
        return found

    def _check_manifest(self, number: int, said: dict[str, Any], digest: str, lines: int, counts: Counter[str]) -> None:
        if said.get("lines") != lines:
            said_of = f"there are {lines} lines before the manifest, which speaks of {said.get('lines')!r}"
            self._broken(Broken(f"line {number}", said_of))
        elif said.get("sha256") != digest:
            self._broken(Broken(f"line {number}", "the hash of the manifest differs: a line was changed"))
        elif not isinstance(amounts := said.get("counts"), dict) or {k: v for k, v in amounts.items() if v} != counts:
            self._broken(Broken(f"line {number}", "the counts of the manifest differ from what is there"))


def _start_of(file: BinaryIO) -> int:
    """Behind the mark that Windows puts at the beginning of a text: the hash of the manifest is without it."""
    file.seek(0)
    return len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0


def is_export(start: bytes) -> bool:
    """Whether a file that begins so is one of ours. An archive may have the beginning of one in it, as it is."""
    begins = start[:400].removeprefix(codecs.BOM_UTF8).lstrip()
    return begins.startswith(b"{") and f'"format":"{records.FORMAT}"'.encode() in begins.replace(b" ", b"")


def spool(file: BinaryIO, folder: Path) -> Path:
    """A copy of what comes through a pipe: it has to be read twice."""
    place = folder / "stdin"
    with place.open("wb") as copy:
        shutil.copyfileobj(file, copy)
    return place


async def import_export(
    engine: Engine, who: Principal, source: Path | BinaryIO, *, skip_broken: bool = False, dry_run: bool = False,
    restore_erased: bool = False, progress: Progress | None = None,
) -> ImportReport:  # fmt: skip
    """Take in a file of ours: all of it or, with `skip_broken`, what of it is right."""
    report = ImportReport("commonplace", dry_run, hide=engine.redactor.shown)
    erased = await engine.imports.erasures(who, restore=restore_erased)  # of the time before it is read
    with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
        # All of it at one go: a server has others to answer meanwhile.
        reader = ExportReader(file, engine.clock(), report.add_broken)
        circular = await asyncio.to_thread(_read_through, reader, report.add_broken)
        if report.broken_count and not skip_broken:
            raise ImportRefused(source.name if isinstance(source, Path) else "the body", report)
        await _take_in(engine, who, file, report, circular, erased, progress)
    return report


def _read_through(reader: ExportReader, broken: Callable[[Broken], None]) -> set[int]:
    for _ in reader:
        pass
    circular = reader.circular_lines()
    for number in sorted(circular):
        broken(Broken(f"line {number}", MERGED_IN_A_CIRCLE))
    return circular


async def _take_in(
    engine: Engine, who: Principal, file: BinaryIO, report: ImportReport, circular: Collection[int],
    erased: Erasures, progress: Progress | None,
) -> None:  # fmt: skip
    dry_run = report.dry_run
    report.broken.clear()
    report.broken_count = 0
    reader = ExportReader(file, engine.clock(), report.add_broken, circular)
    batch: list[tuple[int, list[Memory]]] = []
    chars = 0
    ended: dict[str, int] = {}

    async def flush() -> None:
        outcomes = await engine.imports.memories(who, [each for _, each in batch], erased, dry_run=dry_run)
        for (number, versions), outcome in zip(batch, outcomes, strict=True):
            _note(report, "memory", outcome, f"line {number}: {versions[-1].id}")
            if outcome.result == "written":
                report.agents[versions[-1].agent_id] += 1
        batch.clear()

    for number, parsed in reader:
        if isinstance(parsed, list):
            batch.append((number, parsed))
            chars += sum(len(version.content) for version in parsed)
            if len(batch) < _BATCH and chars < _BATCH_CHARS:
                continue
        if batch:
            await flush()
            chars = 0
        if isinstance(parsed, Triple):
            done = await engine.imports.statement(who, parsed, erased, dry_run=dry_run, ended=ended)
            _note(report, "statement", done, f"line {number}: {parsed.subject} {parsed.predicate}")
        elif isinstance(parsed, Palace):
            done = await engine.imports.palace(who, parsed, dry_run=dry_run)
            _note(report, "palace", done, f"line {number}: {parsed.name}")
        if progress is not None:
            progress(reader.position, reader.size)
    if batch:
        await flush()
    if progress is not None:
        progress(reader.size, reader.size)


def _note(report: ImportReport, kind: str, outcome: Outcome, what: str) -> None:
    if outcome.result == "left_out":
        report.left_out.add(outcome.reason, what)
        return
    (report.written if outcome.result == "written" else report.known)[kind] += 1
    report.redacted.update(outcome.redacted)


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = decode(line)
    except InvalidJson as error:
        raise ValidationError(f"is {error}") from error
    if not isinstance(document, dict):
        raise ValidationError("is not a JSON object")
    return document


def _check_header(document: dict[str, Any]) -> None:
    if document.get("format") != records.FORMAT:
        raise ValidationError("is not the header of an export; files of other kinds need `commonplace import --format`")
    version = document.get("version")
    if version != records.VERSION:
        raise ValidationError(
            f"is of another version of the format than {records.VERSION}, the only one known here: upgrade Commonplace "
            f"to import it; it says {version!r}"
        )


def _parse(document: dict[str, Any]) -> Parsed:
    match document.get("record"):
        case "memory":
            return records.memory_versions(document)
        case "statement":
            return records.statement(document)
        case "palace":
            return records.palace(document)
    raise ValidationError(f"is a record of an unknown kind: {document.get('record')!r}")


def _check_time(memory: Memory, now: int) -> None:
    """What the doctor would find is named here, where it can be put right: the history is compared by its times, so
    that it could not be imported again if it were dated anew here."""
    if memory.created_at > now + LEAP_MS:
        raise ValidationError(
            f"created_at is {iso(memory.created_at)}, and the clock here says {iso(now)}: set the clock that is wrong; "
            "`commonplace doctor` where it is from dates the memory anew",
            field="created_at",
        )


def _count(counts: Counter[str], parsed: Parsed) -> None:
    if isinstance(parsed, list):
        counts.update(memory=1, version=len(parsed))
    else:
        counts["statement" if isinstance(parsed, Triple) else "palace"] += 1
