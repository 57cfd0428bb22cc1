"""`cognee://`: copies in Cognee, one dataset for each tenant and agent, as chunks that its vector search finds.

`cognee://NAME?embeddings=URL&model=NAME` keeps Cognee's files in `cognee/NAME` of the data directory, `cognee:///folder`
there. No LLM is asked: a text is added, cut and indexed, and no graph of entities is made of it. Cognee's `data_id` is
made from ours; everything that a memory is, its text as well, is in the external metadata, which comes back with every
hit.
Cognee has one configuration for a whole process and an event loop of its own, so both are opened once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

from commonplace.stores.base import Candidate, Entry, Page, Reach, Search, StoreSettings
from commonplace.stores.documents import to_copy, to_document
from commonplace.stores.health_checks import EmbeddingsEndpoint, require_file, require_folder
from commonplace.stores.mixins import page_of
from commonplace.stores.urls import folder_of, split_options
from commonplace.wire.errors import OperatorActionRequired, Unavailable, ValidationError
from commonplace.wire.http_client import DEFAULT_URL
from commonplace.wire.record import Clock, Memory, system_clock
from commonplace.wire.shown_urls import shown_url

T = TypeVar("T")
_DOCUMENT = "commonplace"  # under which our fields are in the external metadata
_PREFIX = "commonplace_"  # of the names of our datasets
_CHUNK_TOKENS = 8191  # longer texts are cut, and found by any of their parts
_MORE = 4  # times as many chunks are asked for where too few of them are in reach
_PAGE = 1000
_DATABASE = Path("system", "databases", "cognee_db")  # of its datasets, in its folder
_ACCESS_CONTROL = "ENABLE_BACKEND_ACCESS_CONTROL"
#: A name whose tokens Cognee can count without asking anyone; an endpoint of ours does not look at it.
_MODEL = "text-embedding-3-small"


class CogneeStore:
    """`PerAgentStore`: a dataset is of one agent."""

    name = "cognee"
    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "vector"})

    def __init__(self, library: Library, endpoint: EmbeddingsEndpoint) -> None:
        self._library = library
        self._endpoint = endpoint  # the one that Cognee asks, for a look of our own: it would try for minutes

    async def put(self, entries: Sequence[Entry]) -> None:
        groups: dict[tuple[str, str], dict[str, Memory]] = {}
        for entry in entries:
            groups.setdefault((entry.memory.tenant, entry.memory.agent_id), {})[entry.memory.id] = entry.memory
        for (tenant, agent), memories in groups.items():
            await self._library.run(partial(self._library.put, _dataset(tenant, agent), list(memories.values())))

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        raise Unavailable("cognee has to be told whose memories are meant")

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        raise Unavailable("cognee has to be told whose memories are meant")

    async def get_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> list[Memory]:
        rows = await self._library.run(partial(self._library.rows_of, _dataset(tenant, agent_id), ids))
        found = {memory.id: memory for memory in map(_of_row, rows) if memory.tenant == tenant}
        return [found[id] for id in ids if id in found]

    async def delete_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> int:
        return await self._library.run(partial(self._library.delete, _dataset(tenant, agent_id), ids))

    async def search(self, search: Search) -> list[Candidate]:
        reach = search.reach
        found = [candidate for agent in reach.agents for candidate in await self._nearest(agent, search)]
        if len(reach.agents) > 1:  # or those of the first agent would stand before all others, and fill the cut
            found.sort(key=lambda candidate: -(candidate.dense or 0.0))
        return found[: search.limit]

    async def _nearest(self, agent: str, search: Search) -> Sequence[Candidate]:
        """Of one agent. Cognee filters by nothing but the dataset, and a long memory has several chunks: where too few
        of the nearest are in reach, more are asked for, until there are no more."""
        name, text = _dataset(search.reach.tenant, agent), search.text or "?"
        most = 2 * search.limit + 20
        while True:
            hits = await self._library.run(partial(self._library.search, name, text, most))
            near: dict[str, Candidate] = {}
            for hit in hits:
                memory = _of_hit(hit)
                distance = hit.get("score")
                dense = 1.0 - distance if isinstance(distance, float) else None
                if search.reach.admits(memory):
                    near.setdefault(memory.id, Candidate(memory, dense=dense))
            if len(near) >= search.limit or len(hits) < most:
                return list(near.values())
            most *= _MORE

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        held = [m for agent in reach.agents async for page in self.copy_pages(reach.tenant, agent) for m in page]
        return page_of(filter(reach.admits, held), limit, cursor, newest_first)

    async def copy_pages(self, tenant: str, agent_id: str) -> AsyncIterator[Sequence[Memory]]:
        # At once: pages by their number, which Cognee has, leave something out when another is deleted meanwhile.
        rows = await self._library.run(partial(self._library.rows, _dataset(tenant, agent_id)))
        for start in range(0, len(rows), _PAGE):
            yield [_of_row(row) for row in rows[start : start + _PAGE]]

    async def agent_names(self, tenant: str) -> list[str]:
        firsts = map(_of_row, await self._library.run(self._library.firsts))
        return sorted({memory.agent_id for memory in firsts if memory.tenant == tenant})

    async def health(self) -> dict[str, Any]:
        await self._library.look()
        await self._endpoint.require()
        return {"status": "ok"}

    async def close(self) -> None:
        """Cognee stays open for whoever opens it again in this process."""
        self._endpoint.close()


class Library:
    """Cognee itself, in a thread with a loop of its own; one thing is done after the other there."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="commonplace-cognee", daemon=True).start()
        self._turn = asyncio.Lock()
        self._is_set_up = False
        self._folder = folder
        self._has_file = False  # with its datasets, as far as is known
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.environ.update(settings)  # read when it is imported
        import cognee

        self._cognee: Any = cognee

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def in_turn() -> T:
            async with self._turn:
                if not self._is_set_up:
                    from cognee.modules.engine.operations.setup import setup

                    await setup()  # its tables, where there are none yet
                    self._is_set_up = True
                return await work()

        # Shielded: whoever waits no longer must not stop Cognee between two of its databases.
        return await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(in_turn(), self._loop)))

    async def look(self) -> None:
        """Whether its files can be written and its database of datasets be read. One that is busy is not asked for the
        latter: that would wait for its turn, and be taken for one that is gone."""
        await asyncio.to_thread(require_folder, self._folder)
        if self._turn.locked():
            return
        database = self._folder / _DATABASE
        if self._has_file:  # before Cognee looks: it would begin an empty one
            require_file(database)
        try:
            await self.run(self._cognee.datasets.list_datasets)
        except Exception as error:
            said = f"its databases cannot be read: {type(error).__name__}; put {self._folder} back from a backup"
            raise Unavailable(f"{said}, or name an empty folder and resync it") from error
        self._has_file = database.exists()  # there is none where the environment names another kind of database

    async def put(self, name: str, memories: Sequence[Memory]) -> None:
        from cognee.modules.pipelines.tasks.task import Task
        from cognee.tasks.documents import classify_documents, extract_chunks_from_documents
        from cognee.tasks.ingestion.data_item import DataItem
        from cognee.tasks.storage import add_data_points

        await self.delete(name, [memory.id for memory in memories])
        # Literally: a text that looks like a path or an address would be read from there.
        items = [
            DataItem(
                data=memory.content,
                literal_text=True,
                data_id=data_id(name, memory.id),
                external_metadata={_DOCUMENT: to_document(memory)},
            )
            for memory in memories
        ]
        again = {"incremental_loading": False, "data_cache": False, "skip_connection_test": True}
        _completed(await self._cognee.add(items, dataset_name=name, **again))
        rows = await self.rows_of(name, [memory.id for memory in memories])
        tasks = [
            Task(classify_documents),
            Task(extract_chunks_from_documents, max_chunk_size=_CHUNK_TOKENS),
            Task(add_data_points),
        ]
        done = await self._cognee.run_custom_pipeline(tasks=tasks, data=rows, dataset=await self.dataset(name), **again)
        for info in done.values() if isinstance(done, dict) else [done]:
            _completed(info)

    async def delete(self, name: str, ids: Sequence[str]) -> int:
        there = await self.rows_of(name, ids)
        for row in there:
            await self._cognee.datasets.delete_data(dataset_id=await self.dataset(name), data_id=row.id)
        return len(there)

    async def rows(self, name: str) -> list[Any]:
        dataset = await self.dataset(name)
        return [] if dataset is None else list(await self._cognee.datasets.list_data(dataset))

    async def rows_of(self, name: str, ids: Sequence[str]) -> list[Any]:
        """Those of these memories, looked up by their ids: a large dataset is not read for each group of a resync."""
        from cognee.modules.data.methods import get_data
        from cognee.modules.users.methods import get_default_user

        dataset = await self.dataset(name)
        if dataset is None:
            return []
        user = await get_default_user()
        found = [await get_data(user.id, data_id(name, id), dataset) for id in dict.fromkeys(ids)]
        return [row for row in found if row is not None]

    async def search(self, name: str, text: str, most: int) -> list[dict[str, Any]]:
        dataset = await self.dataset(name)
        if dataset is None or not await self._cognee.datasets.has_data(dataset):
            return []
        kind = self._cognee.SearchType.CHUNKS
        answer = await self._cognee.search(text, query_type=kind, dataset_ids=[dataset], top_k=most)
        found = [hit for each in _listed(answer) for hit in _listed(each.get("search_result"))]
        return found

    async def firsts(self) -> list[Any]:
        """One of each of our datasets that can be read: whose it is stands in its metadata, and not in its name. Where
        the first is somebody's own, all of that dataset."""
        from cognee.modules.data.methods import get_dataset_data

        datasets = [each for each in await self._cognee.datasets.list_datasets() if each.name.startswith(_PREFIX)]
        found: list[Any] = []
        for id in (UUID(str(each.id)) for each in datasets):
            rows = await get_dataset_data(id, limit=1)
            is_odd = any(not _of_row(row).tenant for row in rows)
            found += await self._cognee.datasets.list_data(id) if is_odd else rows
        return found

    async def dataset(self, name: str) -> UUID | None:
        found = await self._cognee.datasets.list_datasets()
        return next((UUID(str(each.id)) for each in found if each.name == name), None)


def data_id(dataset: str, id: str) -> UUID:
    """What Cognee calls this memory: it has an id once for all datasets, and ours is another's as well where two
    tenants imported the same."""
    return uuid5(NAMESPACE_URL, f"commonplace:{dataset}:{id}")


def _dataset(tenant: str, agent: str) -> str:
    # Cognee allows few characters in a name; whose it is stands in the metadata.
    return f"{_PREFIX}{hashlib.sha256(json.dumps([tenant, agent]).encode()).hexdigest()[:32]}"


def _completed(info: Any) -> None:
    if "Errored" in type(info).__name__:
        raise Unavailable("cognee did not take it; its log says why")


def _listed(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Unavailable("cognee answered with something that is no list")
    return found


def _of_hit(hit: dict[str, Any]) -> Memory:
    metadata = None
    with suppress(TypeError, ValueError):
        metadata = json.loads(hit.get("external_metadata") or "null")
    return _memory(metadata, str(hit.get("id") or ""))


def _of_row(row: Any) -> Memory:
    return _memory(row.external_metadata, str(row.id))


def _memory(metadata: Any, store_id: str) -> Memory:
    return to_copy(metadata.get(_DOCUMENT) if isinstance(metadata, dict) else None, "cognee", store_id)


#: The one that is open in this process, by what it was opened with.
_open: dict[tuple[Path, str, str, int], Library] = {}


def _library(folder: Path, endpoint: str, model: str, dimension: int) -> Library:
    key = (folder, endpoint, model, dimension)
    for other in _open:
        if other != key:
            raise Unavailable(f"Cognee is open in this process with {other[0]}, and can have one folder only")
    if key not in _open:
        _open[key] = Library(folder, _settings(folder, endpoint, model, dimension))
    return _open[key]


def _settings(folder: Path, endpoint: str, model: str, dimension: int) -> dict[str, str]:
    from importlib.util import find_spec

    counted = find_spec("litellm")
    tokenizers = Path(counted.origin or "").parent / "litellm_core_utils" / "tokenizers" if counted else folder
    settings = {"TELEMETRY_DISABLED": "1", "COGNEE_SKIP_CONNECTION_TEST": "true", _ACCESS_CONTROL: "true"}
    settings |= {"TIKTOKEN_CACHE_DIR": str(tokenizers), "LLM_API_KEY": "unused: nothing is inferred"}
    settings |= {"EMBEDDING_PROVIDER": "openai_compatible", "EMBEDDING_ENDPOINT": endpoint, "EMBEDDING_MODEL": model}
    settings |= {"EMBEDDING_DIMENSIONS": str(dimension), "EMBEDDING_API_KEY": "unused: the endpoint is ours"}
    for name in ("DATA_ROOT_DIRECTORY", "SYSTEM_ROOT_DIRECTORY", "CACHE_ROOT_DIRECTORY"):
        settings[name] = str(folder / name.partition("_")[0].lower())
    settings |= {"COGNEE_LOGS_DIR": str(folder / "logs"), "LOG_LEVEL": "ERROR"}
    return settings


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> CogneeStore:
    address, given = split_options(url)
    place = address.removeprefix("cognee://")
    settings = settings or StoreSettings()
    if settings.embed is None:
        raise ValidationError(
            'cognee:// needs an embedder; with embedder = "none" nobody makes its vectors', field="stores"
        )
    if os.environ.get(_ACCESS_CONTROL, "true").lower() != "true":
        raise OperatorActionRequired(
            f"with {_ACCESS_CONTROL} off Cognee shows one dataset's texts in another; leave it unset"
        )
    folder = folder_of(place, settings.folder / "cognee" if settings.folder is not None else None)
    if folder is None:
        raise ValidationError(
            f"{shown_url(url)} names no folder; write cognee://default or cognee:///absolute/folder", field="stores"
        )
    endpoint = given.get("embeddings") or f"{DEFAULT_URL}/v1"
    dimension = int(settings.embed(["a first text"]).shape[1])
    model = given.get("model") or _MODEL
    look = EmbeddingsEndpoint(endpoint, model, dimension, settings.timeout)
    return CogneeStore(_library(folder, endpoint, model, dimension), look)
