"""`mem0://`: copies in mem0, kept word for word (`infer=False`) with vectors of our embedder.

`mem0://NAME` keeps them in a qdrant folder `mem0/NAME` of the data directory, `mem0:///absolute/folder` there, and
`mem0+postgresql://…` in a database with pgvector. mem0 mints ids of its own, so ours is in its metadata, and it is
asked in one thread: its local qdrant is not made for more.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from commonplace.stores.base import Candidate, Embed, Entry, Page, Reach, Search, StoreSettings, Vectors
from commonplace.stores.documents import to_copy, to_document
from commonplace.stores.health_checks import require_folder
from commonplace.stores.mixins import page_of
from commonplace.stores.urls import ENCODED, MEM0_IN_DATABASE, folder_of, split_options
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.filters import Condition
from commonplace.wire.record import Clock, Memory, system_clock
from commonplace.wire.shown_urls import shown_url

T = TypeVar("T")
_EVERYTHING = "commonplace"  # the run_id of all that is ours: mem0 finds nothing without an entity
_MOST = 100_000  # memories that are asked for at first; of a full answer there may be more
_MORE = 4  # times as many are asked for then: mem0 has no second page
_PAGE = 1000
_ORDERED = {"gt", "gte", "lt", "lte"}
#: Fields that mem0 can filter by, as it has them; the rest is read and compared.
_FIELDS = ("id", "type", "user_id", "created_at", "kind", "project", "session_id")


class Mem0Store:
    name = "mem0"
    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "vector"})

    def __init__(self, folder: Path, embed: Embed, database: str | None = None) -> None:
        self._made: dict[str, Vectors] = {}  # of texts that are about to be written or asked
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commonplace-mem0")
        self._lock = threading.Lock()
        self._embed = embed
        self._folder, self._database = folder, database
        self._mem0 = self._thread.submit(self._open, folder, database).result()

    def _open(self, folder: Path, database: str | None) -> Any:
        # It must neither phone home nor write into the home directory, and reads both when it is imported.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
        os.environ.setdefault("OPENAI_API_KEY", "unused: nothing is inferred")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        from mem0 import Memory as Mem0

        dimension = int(self._embed(["a first text"]).shape[1])
        given: dict[str, Any] = {"collection_name": "commonplace", "embedding_model_dims": dimension}
        if database is None:
            provider, place = "qdrant", f"folder {folder}"
            given |= {"path": str(folder / "qdrant"), "on_disk": True}
        else:
            provider, place = "pgvector", "database"
            # Without an index it looks at all of them: one that filters afterwards would miss what it has.
            given |= {"connection_string": database, "hnsw": False, "diskann": False}
        store = {"provider": provider, "config": given}
        try:
            if database is not None:  # its pool would go on trying for ever
                _require_database(database)
            opened = Mem0.from_config({"vector_store": store, "history_db_path": ":memory:"})
        except Unavailable:
            raise
        except Exception as error:  # another process has the folder, the database is down
            _refuse(place, database, error)
        opened.embedding_model = _OurEmbedder(self._vector)
        if hasattr(opened.vector_store, "_bm25_encoder"):
            # mem0's own sign for "there is none": else the first write downloads one for keywords, where fastembed is
            # installed, and waits 39 seconds where the hub cannot be reached.
            opened.vector_store._bm25_encoder = False
        opened.db.close()
        opened.db = _NoHistory()
        for old in folder.glob("history.db*"):  # of an earlier version: every text there ever was, also the erased
            old.unlink(missing_ok=True)
        return opened

    def _vector(self, text: str) -> list[float]:
        made = self._made.get(text)
        return [float(x) for x in (self._embed([text])[0] if made is None else made)]

    async def _run(self, work: Callable[[], T]) -> T:
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def put(self, entries: Sequence[Entry]) -> None:
        def work() -> None:
            for entry in entries:
                memory = entry.memory
                older = self._named(memory.tenant, [memory.id])
                if entry.vectors is not None:
                    mean = entry.vectors.mean(axis=0)
                    self._made[memory.content] = mean / (np.linalg.norm(mean) or 1.0)
                try:
                    self._mem0.add(
                        [{"role": "user", "content": memory.content}],
                        run_id=_EVERYTHING,
                        metadata={**_filterable(memory), "document": to_document(memory)},
                        infer=False,
                    )
                finally:
                    self._made.pop(memory.content, None)
                for found in older:  # only now: there is always one that can be found
                    self._mem0.delete(found["id"])

        await self._run(work)

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        held = map(self._memory, await self._run(lambda: self._named(tenant, ids)))
        found = {memory.id: memory for memory in held if memory.tenant == tenant}
        return [found[id] for id in ids if id in found]

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        def work() -> int:
            found = self._named(tenant, ids)
            for each in found:
                self._mem0.delete(each["id"])
            return len({each["metadata"]["our_id"] for each in found})

        return await self._run(work)

    async def search(self, search: Search) -> list[Candidate]:
        if search.vector is None:
            return []
        reach, text = search.reach, search.text or "?"
        native, is_all = _filters(reach)

        def nearest(agent: str) -> list[dict[str, Any]]:
            filters = {"run_id": _EVERYTHING, **_exactly(our_tenant=reach.tenant, our_agent=agent), **native}
            if is_all:
                most = 2 * search.limit + 20
                return _results(self._mem0.search(text, filters=filters, top_k=most, threshold=0.0))
            # What it cannot filter by is compared here, and must not have been cut off by then.
            return _whole(lambda most: self._mem0.search(text, filters=filters, top_k=most, threshold=0.0))

        def work() -> list[dict[str, Any]]:
            self._made[text] = search.vector  # type: ignore[assignment]
            try:
                return [hit for agent in reach.agents for hit in nearest(agent)]
            finally:
                self._made.pop(text, None)

        hits = [(self._memory(hit), hit.get("score")) for hit in await self._run(work)]
        near = [Candidate(memory, dense=score) for memory, score in hits if reach.admits(memory)]
        if len(reach.agents) > 1:  # or those of the first agent would stand before all others, and fill the cut
            near.sort(key=lambda candidate: -(candidate.dense or 0.0))
        return near[: search.limit]

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        held = [m for agent in reach.agents async for page in self.copy_pages(reach.tenant, agent) for m in page]
        return page_of(filter(reach.admits, held), limit, cursor, newest_first)

    async def copy_pages(self, tenant: str, agent_id: str) -> AsyncIterator[Sequence[Memory]]:
        found = await self._run(lambda: self._all(our_tenant=tenant, our_agent=agent_id))
        for start in range(0, len(found), _PAGE):
            yield [self._memory(each) for each in found[start : start + _PAGE]]

    async def agent_names(self, tenant: str) -> list[str]:
        found = await self._run(lambda: self._all(our_tenant=tenant))
        return sorted({self._memory(each).agent_id for each in found} - {""})

    async def health(self) -> dict[str, Any]:
        def work() -> None:
            if self._database is None:
                require_folder(self._folder / "qdrant")  # it answers from memory, whatever became of its files
            else:
                _require_database(self._database)  # its pool would wait half a minute for one that is gone
                self._mem0.vector_store.connection_pool.check()  # or the lost connections fail one after the other
            _results(self._mem0.get_all(filters={"run_id": _EVERYTHING}, top_k=1))

        await self._run(work)
        return {"status": "ok"}

    async def close(self) -> None:
        def work() -> None:
            held = self._mem0.vector_store
            client = getattr(held, "client", None) or getattr(held, "connection_pool", None)
            if client is not None:
                client.close()

        await self._run(work)
        self._thread.shutdown(wait=False)

    def _named(self, tenant: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        """mem0's copies of these memories, of which there may be more than one."""
        found = [each for id in ids for each in self._all(our_id=id, our_tenant=tenant)]
        return [each for each in found if (each.get("metadata") or {}).get("our_id") in ids]

    def _all(self, **fields: str) -> list[dict[str, Any]]:
        ours = {"run_id": _EVERYTHING, **_exactly(**fields)}
        return _whole(lambda most: self._mem0.get_all(filters=ours, top_k=most))

    def _memory(self, found: dict[str, Any]) -> Memory:
        document = (found.get("metadata") or {}).get("document")
        if isinstance(document, dict):
            document = {**document, "content": found.get("memory")}
        return to_copy(document, self.name, str(found["id"]))


class _OurEmbedder:
    """What mem0 calls an embedding model."""

    def __init__(self, vector: Callable[[str], list[float]]) -> None:
        self._vector = vector

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._vector(text)

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self._vector(text) for text in texts]


class _NoHistory:
    """In the place of mem0's history, which keeps the words of what is deleted, and the last ones it was given."""

    def add_history(self, *what: Any, **more: Any) -> None: ...

    def batch_add_history(self, records: Any) -> None: ...

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        return []

    def save_messages(self, messages: Any, session_scope: str) -> None: ...

    def get_last_messages(self, session_scope: str, limit: int = 10) -> list[dict[str, Any]]:
        return []

    def reset(self) -> None: ...

    def close(self) -> None: ...


def _filterable(memory: Memory) -> dict[str, Any]:
    fields = {f"our_{name}": getattr(memory, name) for name in _FIELDS if getattr(memory, name) is not None}
    return {**fields, "our_tenant": memory.tenant, "our_agent": memory.agent_id}


def _exactly(**fields: str) -> dict[str, Any]:
    """Filters by what these fields say: a * alone would be whatever there is, and one may be called so."""
    return {name: {"in": [value]} if value == "*" else value for name, value in fields.items()}


def _filters(reach: Reach) -> tuple[dict[str, Any], bool]:
    """What mem0 itself can see to before the cut, one condition on each field, and whether that is all of it."""
    filters: dict[str, Any] = {}
    for condition in reach.where:
        field = f"our_{condition.path[0]}" if condition.path else ""
        if len(condition.path) == 1 and condition.path[0] in _FIELDS and _is_native(condition):
            filters.setdefault(field, condition.value if condition.op == "eq" else {condition.op: condition.value})
    return filters, len(filters) == len(reach.where)


def _is_native(condition: Condition) -> bool:
    """Whether mem0 can compare it so: it fails at a value of another kind, and at texts in an order, and takes * for
    whatever there is."""
    value = condition.value
    if condition.op in _ORDERED:
        return condition.path[0] == "created_at" and isinstance(value, int | float) and not isinstance(value, bool)
    values = value if condition.op == "in" else [value] if condition.op == "eq" else []
    return bool(values) and any(all(type(each) is kind and each != "*" for each in values) for kind in (str, int))


def _whole(ask: Callable[[int], Any]) -> list[dict[str, Any]]:
    """All that there is, by asking for more for as long as an answer is as long as it may be."""
    most = _MOST
    while len(found := _results(ask(most))) >= most:
        most *= _MORE
    return found


def _require_database(database: str) -> None:
    """That someone answers there, and lets us in."""
    import psycopg

    try:
        psycopg.connect(database, connect_timeout=5).close()
    except psycopg.Error as error:
        _refuse("database", database, error)


def _refuse(place: str, database: str | None, error: Exception) -> NoReturn:
    """Errors about the address itself quote it, with its password: of those nothing is said."""
    why = " ".join(str(error).split())
    if database is not None:
        import psycopg

        if isinstance(error, psycopg.ProgrammingError) or database in why:
            raise Unavailable(f"mem0's {place} cannot be opened: its URL cannot be read", hint=ENCODED) from None
    raise Unavailable(f"mem0's {place} cannot be opened: {why}") from error


def _results(answer: Any) -> list[dict[str, Any]]:
    found = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(map(_is_found, found)):
        raise Unavailable("mem0 answered with something that is no list of memories")
    return found


def _is_found(each: Any) -> bool:
    named = isinstance(each, dict) and isinstance(each.get("id"), str)
    return named and isinstance(each.get("metadata"), dict | None) and isinstance(each.get("score"), int | float | None)


def database_identity(url: str) -> str | None:
    """The same for the same database on the same server, which a store of ours may be in beside mem0; None where it
    does not answer."""
    from commonplace.stores.postgres import database_identity as identity_of

    try:
        found = identity_of(url.removeprefix("mem0+"))
    except ValidationError:  # our own stores have to name their database: mem0 need not, and says itself what is wrong
        return None
    options = dict(parse_qsl(urlsplit(url).query)).get("options", "")  # which may name another schema for its tables
    return None if found is None else f"mem0/{found}/{options}"


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> Mem0Store:
    place = split_options(url)[0].removeprefix("mem0://")
    settings = settings or StoreSettings()
    if settings.embed is None:
        raise ValidationError('mem0:// needs an embedder; with embedder = "none" it has no vectors', field="stores")
    if url.startswith(f"{MEM0_IN_DATABASE}://"):
        own = (settings.folder or Path(tempfile.gettempdir())) / "mem0" / "settings"
        return Mem0Store(own, settings.embed, url.removeprefix("mem0+"))
    folder = folder_of(place, settings.folder / "mem0" if settings.folder is not None else None)
    if folder is None:
        raise ValidationError(
            f"{shown_url(url)} names no folder; write mem0://default, mem0:///absolute/folder or mem0+postgresql://…",
            field="stores",
        )
    return Mem0Store(folder, settings.embed)
