"""Nellie, the reference server of AMP: the lessons and checkpoints of its SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.dialects.amp.records import STATE_LISTS, to_draft
from commonplace.transfer.importers.source import (
    Broken,
    Item,
    LeftOut,
    Source,
    SourceMemory,
    label,
    milliseconds,
    text_of,
    texts_of,
)
from commonplace.transfer.report import BrokenFile
from commonplace.wire.strict_json import InvalidJson, decode

NAME, TITLE = "amp", "AMP (Nellie's SQLite file)"
_MAGIC = b"SQLite format 3\x00"
_TABLES = ("lessons", "checkpoints")
_READ = frozenset(
    ("id", "title", "content", "tags", "severity", "agent", "repo", "created_at", "updated_at", "session_id",
     "working_on", "state")
)  # fmt: skip


def matches(source: Source) -> bool:
    return len(source.members) == 1 and source.head(source.members[0]).startswith(_MAGIC)


def read(source: Source) -> Iterator[Item]:
    import apsw

    source.single()
    try:
        uri = source.path.resolve().as_uri().replace("file://", "file:") + "?mode=ro"
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        raise BrokenFile(source.path.name, f"cannot be opened: {error}") from None
    try:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables.intersection(_TABLES):
            raise BrokenFile(source.path.name, "has neither lessons nor checkpoints: it is not Nellie's")
        for number, table in enumerate(_TABLES, 1):
            if table in tables:
                yield from _rows(db, table)
            source.position = source.size * number // len(_TABLES)  # SQLite reads it, and does not say how far
        for table in sorted(tables.difference(_TABLES, ("chunks",))):
            if not table.startswith("sqlite_"):
                yield LeftOut(f"table {label(table)}", "a table that is not read")
        if "chunks" in tables and (count := next(db.execute("SELECT count(*) FROM chunks"))[0]):
            yield LeftOut(
                f"{count:,} rows of chunks", "indexed code is not imported: it is made of files that are there"
            )
    except apsw.Error as error:
        raise BrokenFile(source.path.name, f"is damaged: {error}") from None
    finally:
        db.close()


def _rows(db: Any, table: str) -> Iterator[Item]:
    given = [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    for name in given:
        if name not in _READ:
            yield LeftOut(f"{table}.{label(name)}", "a column that is not read")
    names = [name for name in given if name in _READ]
    if not names:
        return
    # As bytes: of one text that is none, SQLite's reader would keep all that come after it, too.
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
    columns = ", ".join(f"CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in quoted)
    for number, row in enumerate(db.execute(f"SELECT {columns} FROM {table} ORDER BY rowid"), 1):
        try:
            texts = [cell.decode("utf-8") if isinstance(cell, bytes) else cell for cell in row]
        except UnicodeDecodeError:
            yield Broken(f"{table} row {number}", "is not UTF-8 text")
            continue
        yield _record(table, dict(zip(names, texts, strict=True)))


def _record(table: str, row: dict[str, Any]) -> Item:
    id, where = str(row.get("id")), label(f"{table} {row.get('id')}")
    try:
        known = {"tags": decode(text_of(row.get("tags")) or "[]"), "state": decode(text_of(row.get("state")) or "{}")}
    except InvalidJson as error:
        return Broken(where, f"its tags or state are {error}")
    at = milliseconds(row.get("created_at"))
    record: dict[str, Any] = {"type": table.removesuffix("s"), "tags": texts_of(known["tags"]), "event_time": at}
    record |= {"agent": agent} if (agent := text_of(row.get("agent"))) else {}
    record |= {"project": project} if (project := text_of(row.get("repo"))) else {}
    if table == "lessons":
        record |= {name: text_of(row.get(name)) for name in ("title", "content", "severity") if text_of(row.get(name))}
        if not text_of(row.get("content")).strip():
            return LeftOut(where, "it has no text")
    else:
        record |= {"working_on": text_of(row.get("working_on")), "state": known["state"]}
        record |= {"session_id": session} if (session := text_of(row.get("session_id"))) else {}
        if not isinstance(known["state"], dict) or not record["working_on"].strip():
            return Broken(where, "working_on must be a text and state an object")
        for name in STATE_LISTS:
            said = known["state"].get(name)
            if said and not (isinstance(said, list) and all(isinstance(each, str) for each in said)):
                return Broken(where, f"{name} of its state must be a list of texts")
    record = {name: value for name, value in record.items() if value not in (None, [])}
    changed = milliseconds(row.get("updated_at"))
    return SourceMemory(id, to_draft(record), at, {} if changed is None else {"updated_at": changed})
