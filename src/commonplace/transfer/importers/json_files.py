"""The JSON documents in the files of a source, one after another. What cannot be read is named, and what follows it is
read where it can be told where that begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.transfer.bounded_lines import bounded_lines
from commonplace.transfer.importers.json_stream import elements
from commonplace.transfer.importers.source import Source
from commonplace.transfer.report import Broken, BrokenFile
from commonplace.wire.strict_json import InvalidJson, decode

MAX_LINE_BYTES = 64 << 20  # an archive of kilobytes may hold a line that no memory is large enough for


def documents_by_line(source: Source, member: str) -> Iterator[tuple[str, Any] | Broken]:
    """The document in each line, with its place."""
    with source.open(member) as file:
        for number, line in enumerate(bounded_lines(file, MAX_LINE_BYTES), start=1):
            where = f"line {number}"
            if line is None:
                yield Broken(where, f"is longer than {MAX_LINE_BYTES >> 20} MB; split it")
            elif line.strip():
                try:
                    yield where, decode(line, unique_keys=True)
                except InvalidJson as error:
                    yield Broken(where, f"is {error}")


def elements_of_each(source: Source, members: list[str]) -> Iterator[tuple[str, Any] | Broken]:
    """The elements of the list in each file, with their places. Within a list nothing can be told apart after what is
    broken; the next file begins anew."""
    for member in members:
        try:
            with source.open(member) as file:
                for line, element in elements(file, member):
                    yield f"{member} line {line}", element
        except BrokenFile as stop:
            if len(members) == 1:
                raise
            yield stop.broken
