"""Stores of known size, loaded once into the cache folder and opened from there by every benchmark.

The loader writes what `remember` writes (versions, vectors, audit entries, through the same transaction verbs) and
differs only in how much shares one commit. An agent `small` of a thousand memories lies scattered among the rows
of `big` in every store of at least a hundred thousand.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import apsw

from bench.speed.material import Material, known_embedder
from bench.speed.report import Progress
from commonplace.engine.memory import write
from commonplace.engine.memory.passages import indexed_text
from commonplace.engine.types import Draft
from commonplace.sdk import Memory
from commonplace.stores.base import Entry, Transaction, Vectors
from commonplace.stores.sqlite import SqliteStore, schema
from commonplace.stores.sqlite.files import StoreFiles
from commonplace.stores.text import ANALYSER, terms
from commonplace.stores.token_vectors import Codes
from commonplace.wire.record import Principal, system_clock

BIG, SMALL = "big", "small"
SMALL_SIZE = 1000
WITH_SMALL = 100_000
BYTES_PER_MEMORY = 9_000  # of disk, with the tables that are measured against, and while segments merge
_GROUP = 1000
_FORMAT = 3  # raise it when what is loaded here changes; a change of the schema is noticed by itself
_ME = Principal()


@functools.cache
def _schema() -> str:
    """What a store loaded earlier must have been made with."""
    db = apsw.Connection(":memory:")
    for step in schema.MIGRATIONS:
        step(db)
    tables = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema ORDER BY name")]
    db.close()
    return blake2b(repr((tables, ANALYSER)).encode(), digest_size=8).hexdigest()


@dataclass(slots=True, frozen=True)
class Kept:
    """One store in the cache."""

    folder: Path
    size: int

    @property
    def database(self) -> Path:
        return self.folder / "commonplace.db"


def enough_room(cache: Path, size: int) -> bool:
    cache.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(cache).free > 1.2 * size * BYTES_PER_MEMORY


def kept(cache: Path, material: Material, size: int) -> Kept:
    """The store of that size, loaded now if it is not there yet."""
    return _loaded(Kept(cache / f"store-{size}", size), material, small=size >= WITH_SMALL)


def small_alone(cache: Path, material: Material) -> Kept:
    """The agent `small` in a file of its own, with the same memories it has in the large ones."""
    return _loaded(Kept(cache / "store-small", SMALL_SIZE), material, small=True, big=False)


def _loaded(store: Kept, material: Material, *, small: bool, big: bool = True) -> Kept:
    mark = store.folder / "complete.json"
    made = {"format": _FORMAT, "schema": _schema(), "embedder": material.embedder, "texts": len(material.texts)}
    if not (mark.exists() and json.loads(mark.read_text()) == made):
        shutil.rmtree(store.folder, ignore_errors=True)
        with ThreadPoolExecutor(1) as aside:  # a benchmark may ask for a store from inside its own event loop
            aside.submit(asyncio.run, _load(store, material, small=small, big=big)).result()
        mark.write_text(json.dumps(made))
    return store


async def _load(store: Kept, material: Material, *, small: bool, big: bool = True) -> None:
    primary = SqliteStore(store.database)
    info = await primary.adopt_embedder(material.embedder, material.dimension)
    progress = Progress(f"loading {store.size:,} memories (once)", store.size)
    apart = max(store.size // SMALL_SIZE, 1)
    now = system_clock()  # of all: how recent each is counts in recall, and loading more takes longer

    def entries(start: int, end: int) -> Iterator[Entry]:
        vectors = material.some_vectors(start, end)
        for number in range(start, end):
            content = material.text(number)
            if big:
                tokens = material.some_tokens(number)
                yield _entry(Draft(BIG, "semantic", content), vectors[number - start], tokens, now, info.generation)
            if small and number % apart == 0 and number // apart < SMALL_SIZE:
                own = number // apart
                vector = material.some_vectors(own, own + 1)[0]
                draft = Draft(SMALL, "semantic", material.text(own))
                yield _entry(draft, vector, material.some_tokens(own), now, info.generation)

    def work(tx: Transaction, batch: list[Entry]) -> None:
        for entry in batch:
            write.write(tx, _ME, entry, "remember")

    waiting: asyncio.Task[None] | None = None
    for start in range(0, store.size, _GROUP):
        batch = list(entries(start, min(start + _GROUP, store.size)))
        if waiting is not None:
            await waiting
        # One group is written while the next is prepared.
        waiting = asyncio.ensure_future(primary.transact(_ME.tenant, lambda tx, batch=batch: work(tx, batch)))
        await asyncio.sleep(0)
        progress(start)
    if waiting is not None:
        await waiting
    await primary.warm()
    await primary.close()
    progress.close()


def _entry(draft: Draft, vector: Vectors, tokens: Sequence[Codes] | None, now: int, generation: int) -> Entry:
    memory = write.new_memory(_ME, draft, now)
    return Entry(memory, vector[None, :], terms(indexed_text(memory)), generation, tokens)


@contextlib.asynccontextmanager
async def opened(store: Kept, material: Material, agent: str = BIG) -> AsyncIterator[Memory]:
    """As a program would use it, with a query's embedding already known."""
    async with Memory(agent, data=store.folder, embedder=known_embedder(material)) as memory:
        yield memory


def size_on_disk(store: Kept) -> dict[str, int]:
    files = StoreFiles(store.database)
    segments = [file for file in files.segments.rglob("*") if file.is_file()]
    database = sum(file.stat().st_size for file in (files.database, files.wal) if file.exists())
    return {"database": database, "segments": sum(file.stat().st_size for file in segments)}


def fts_table(cache: Path, material: Material, size: int) -> apsw.Connection:
    """Plain FTS5 over the same texts, nothing else beside it."""
    path = cache / f"fts-{size}.db"
    db = apsw.Connection(str(path))
    if db.pragma("user_version") != _FORMAT:
        db.execute("DROP TABLE IF EXISTS texts")
        db.execute("CREATE VIRTUAL TABLE texts USING fts5(content, content='', tokenize='porter')")
        progress = Progress(f"loading FTS5 with {size:,} texts (once)", size)
        with db:
            for number in range(size):
                db.execute("INSERT INTO texts(rowid, content) VALUES(?, ?)", (number + 1, material.text(number)))
                progress(number)
            db.execute("INSERT INTO texts(texts) VALUES('optimize')")
        progress.close()
        db.pragma("user_version", _FORMAT)
    return db


def vec_table(cache: Path, material: Material, size: int) -> apsw.Connection:
    """sqlite-vec's float32 table of the same vectors, partitioned by agent."""
    import sqlite_vec  # type: ignore[import-untyped]

    path = cache / f"vec-{size}.db"
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.enable_load_extension(False)
    if db.pragma("user_version") != _FORMAT:
        db.execute("DROP TABLE IF EXISTS vectors")
        db.execute(
            f"CREATE VIRTUAL TABLE vectors USING vec0(agent TEXT PARTITION KEY, embedding float[{material.dimension}])"
        )
        progress = Progress(f"loading sqlite-vec with {size:,} vectors (once)", size)
        with db:
            for start in range(0, size, _GROUP):
                block = material.some_vectors(start, min(start + _GROUP, size))
                for i, vector in enumerate(block):
                    row = (start + i + 1, BIG, vector.tobytes())
                    db.execute("INSERT INTO vectors(rowid, agent, embedding) VALUES(?, ?, ?)", row)
                progress(start)
        progress.close()
        db.pragma("user_version", _FORMAT)
    return db
