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
    has_value,
    label,
    milliseconds,
    mistyped_fields,
    noted_times,
    odd_texts,
    text_of,
    texts_of,
)
from commonplace.transfer.report import BrokenFile
from commonplace.wire.strict_json import InvalidJson, decode

NAME, TITLE = "amp", "AMP (Nellie's SQLite file)"
_MAGIC = b"SQLite format 3\x00"
_TABLES = ("lessons", "checkpoints")
_TEXTS = {
    "lessons": ("title", "content", "severity", "agent", "repo"),
    "checkpoints": ("working_on", "session_id", "agent", "repo"),
}
_JSON = {"lessons": "tags", "checkpoints": "state"}
_TIMES = ("created_at", "updated_at")
_OURS = {"tenants", "scopes", "versions"}


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
        if tables >= _OURS:
            raise BrokenFile(
                source.path.name,
                "is a store of Commonplace: `commonplace migrate --from FILE --to URL` copies all of one, "
                "`commonplace export` some of it into a file that can be imported",
            )
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
    known = ("id", *_TEXTS[table], _JSON[table], *_TIMES)
    for name in given:
        if name not in known:
            yield LeftOut(f"{table}.{label(name)}", "a column that is not read")
    names = [name for name in given if name in known]
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
        yield from _record(table, dict(zip(names, texts, strict=True)), f"{table} row {number}")


def _record(table: str, row: dict[str, Any], place: str) -> Iterator[Item]:
    if row.get("id") in (None, ""):
        yield Broken(place, "has no id")
        return
    id, where = str(row["id"]), label(f"{table} {row['id']}")
    texts = {name: text for name in _TEXTS[table] if (text := text_of(row.get(name)))}
    said = "content" if table == "lessons" else "working_on"
    if not texts.get(said, "").strip():
        yield LeftOut(where, "it has no text") if said == "content" else Broken(where, "working_on must be a text")
        return
    try:
        known = _decoded(row.get(_JSON[table]))
    except InvalidJson as error:
        yield Broken(where, f"what stands in {_JSON[table]} is {error}")
        return
    if table == "checkpoints" and (wrong := _wrong_state(known if has_value(known) else {})):
        yield Broken(where, wrong)
        return
    yield from mistyped_fields(row, where, texts=_TEXTS[table], times=_TIMES)
    at = milliseconds(row.get("created_at"))
    record: dict[str, Any] = {"type": table.removesuffix("s"), "event_time": at}
    record |= {"project" if name == "repo" else name: text for name, text in texts.items()}
    if table == "lessons":
        yield from odd_texts(known, where, "one of its tags")
        record["tags"] = texts_of(known)
    else:
        record["state"] = known or {}
    record = {name: value for name, value in record.items() if value not in (None, [])}
    yield SourceMemory(id, to_draft(record), at, noted_times(updated_at=row.get("updated_at")))


def _decoded(cell: Any) -> Any:
    """What a column of JSON says; a number in it is one, too."""
    return decode(cell, unique_keys=True) if isinstance(cell, str) and cell else None if cell == "" else cell


def _wrong_state(state: Any) -> str | None:
    if not isinstance(state, dict):
        return "state must be an object"
    for name in STATE_LISTS:
        said = state.get(name)
        if has_value(said) and not (isinstance(said, list) and all(isinstance(each, str) for each in said)):
            return f"{name} of its state must be a list of texts"
    return None
