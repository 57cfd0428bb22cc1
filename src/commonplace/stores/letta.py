"""`letta://`: copies in a Letta server, as passages of its archives, one archive for each tenant and agent.

`letta://HOST[:PORT]/NAME?embeddings=URL&model=NAME&token_env=VARIABLE`, or `letta+https://…`; NAME begins the names of
the archives. Letta mints ids of its own and makes its own vectors, by an endpoint such as our server's `/v1`; what a
memory is besides its text is in the metadata, which it keeps as it is. It gives no more than a hundred passages at a
time, filters them by tags only afterwards, and its scores say nothing. What it does filter by first is the time: so a
passage's time is made from our id, and says where to look for it. There is no second page of one time, so times are
spread widely enough that nobody can find a hundred ids with the same one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import numpy as np

from commonplace.stores.base import Candidate, Entry, Page, Reach, Search, StoreSettings, Vectors
from commonplace.stores.documents import to_copy, to_document
from commonplace.stores.mixins import page_of
from commonplace.stores.urls import split_options, token_advice, token_of
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.http_client import DEFAULT_URL, JsonClient
from commonplace.wire.record import Clock, Memory, system_clock
from commonplace.wire.shown_urls import shown_url

#: JSON is parsed in one go that no other thread can interrupt: a large answer, to whatever, would stop everyone.
_MAX_ANSWER = 4 << 20
_MAX_HEALTH = 64 << 10
#: So much more for each passage that it was asked for: a text of 260,000 characters and 4,096 numbers of its vector.
_MAX_PASSAGE = 512 << 10
_CONNECTIONS = 4
_PAGE = 100  # passages: the most that Letta gives
_DOCUMENT = "commonplace"  # under which our fields are in a passage's metadata
_TEXT = frozenset({"content"})
_NOT_FOUND = 404
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = 4_000_000_000 * 1_000_000  # microseconds, until 2096


class LettaStore:
    """`PerAgentStore`: an archive is of one agent."""

    name = "letta"
    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "vector"})

    def __init__(self, client: JsonClient, prefix: str, embedding: dict[str, Any]) -> None:
        self._client = client
        self._prefix = prefix
        self._embedding = embedding
        self._archives: dict[tuple[str, str], list[str]] = {}  # as they were last listed
        self._making = asyncio.Lock()
        # Of four passages that were made at once Letta 0.16.8 often never answered for one, and was no quicker.
        self._writing = asyncio.Lock()

    async def put(self, entries: Sequence[Entry]) -> None:
        last = {entry.memory.id: entry.memory for entry in entries}
        for tenant, agent in dict.fromkeys((memory.tenant, memory.agent_id) for memory in last.values()):
            await self._archives_of(tenant, agent, anew=True)
        for memory in last.values():
            await self._put(memory)

    async def _put(self, memory: Memory) -> None:
        archives = await self._archives_of(memory.tenant, memory.agent_id) or await self._make_archive(memory)
        archive = archives[0]  # the same for everyone who knows all of them
        older = [(each, passage) for each in archives for passage in await self._copies(each, memory.id)]
        passage = {
            "text": memory.content,
            "metadata": {_DOCUMENT: to_document(memory, without=_TEXT)},
            "tags": [f"{name}:{value}" for name in ("type", "user_id") if (value := getattr(memory, name))],
            "created_at": instant_of(memory.id).isoformat(),
        }
        async with self._writing:
            made = await self._client.call("POST", f"/v1/archives/{archive}/passages", passage)
        for holder, passage_there in older:  # only now: there is always one that can be found
            await self._delete(holder, passage_there)
        if len(older) >= _PAGE:
            for each in archives:
                await self._delete_copies(each, memory.id, but=_text(made, "id"))

    async def get(self, tenant: str, ids: Sequence[str]) -> list[Memory]:
        raise Unavailable("letta has to be told whose memories are meant")

    async def delete(self, tenant: str, ids: Sequence[str]) -> int:
        raise Unavailable("letta has to be told whose memories are meant")

    async def get_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> list[Memory]:
        archives = await self._archives_of(tenant, agent_id)
        named = [passage for archive in archives for passage in await self._named(archive, ids)]
        found = {m.id: m for m in map(self._memory, named) if m.tenant == tenant}
        return [found[id] for id in ids if id in found]

    async def delete_of(self, tenant: str, agent_id: str, ids: Sequence[str]) -> int:
        gone = set[str]()
        for archive in await self._archives_of(tenant, agent_id, anew=True):
            found = await self._named(archive, ids)
            for passage in found:
                await self._delete(archive, passage)
            copies = Counter(self._memory(passage).id for passage in found)
            for id, count in copies.items():
                if count >= _PAGE:
                    await self._delete_copies(archive, id)
            gone |= copies.keys()
        return len(gone)

    async def search(self, search: Search) -> list[Candidate]:
        lists: list[list[Memory]] = []
        for agent in search.reach.agents:
            archives = await self._archives_of(search.reach.tenant, agent)
            lists += [await self._nearest(archive, search) for archive in archives]
        # Letta gives no scores to compare, so each agent's best in turn: one after the other, the first agent's would
        # fill the cut.
        in_turn = [memory for row in zip_longest(*lists) for memory in row if memory is not None]
        return [Candidate(memory) for memory in in_turn[: search.limit]]

    async def _nearest(self, archive: str, search: Search) -> list[Memory]:
        """The nearest within reach. Where too few of them are among the first hundred, the others follow, by their
        vectors, which come with every passage."""
        hits = await self._passages(archive, query=search.text or "?")
        if len(hits) >= _PAGE and sum(search.reach.admits(self._memory(hit)) for hit in hits) < search.limit:
            others = [each for each in await self._all(archive) if search.reach.admits(self._memory(each))]
            hits += sorted(others, key=lambda each: -_cosine(each, search.vector))
        near = {m.id: m for m in map(self._memory, hits) if search.reach.admits(m)}
        return list(near.values())[: search.limit]

    async def scan(
        self, reach: Reach, *, limit: int = 100, cursor: str | None = None, newest_first: bool = True
    ) -> Page:
        held = [m for agent in reach.agents async for page in self.copy_pages(reach.tenant, agent) for m in page]
        return page_of(filter(reach.admits, held), limit, cursor, newest_first)

    async def copy_pages(self, tenant: str, agent_id: str) -> AsyncIterator[Sequence[Memory]]:
        for archive in await self._archives_of(tenant, agent_id, anew=True):
            async for page in self._pages(archive):
                yield [self._memory(passage) for passage in page]

    async def agent_names(self, tenant: str) -> list[str]:
        start = self._archive_name(tenant, "")
        found: dict[str, str] = {}  # names of archives, by their ids
        page: list[dict[str, Any]] = []
        while not found or len(page) >= _PAGE:
            query = urlencode({"limit": _PAGE, **({"after": _text(page[-1], "id")} if page else {})})
            page = _listed(await self._client.exchange("GET", f"/v1/archives/?{query}"))
            if all(_text(each, "id") in found for each in page):
                break
            found |= {_text(each, "id"): str(each.get("name") or "") for each in page}
        quoted = {name.removeprefix(start) for name in found.values() if name.startswith(start)}
        return sorted(unquote(name, errors="surrogatepass") for name in quoted)

    async def health(self) -> dict[str, Any]:
        found = await self._client.call("GET", "/v1/health/", max_bytes=_MAX_HEALTH)
        if found.get("status") != "ok":
            raise Unavailable("it answers, but not as a Letta server does")
        # That says nothing of its database, nor of the endpoint that makes its vectors, which only it can reach.
        query = urlencode({"limit": _PAGE})
        try:
            held = _listed(await self._client.exchange("GET", f"/v1/archives/?{query}"))
        except Unavailable as fault:
            raise Unavailable(f"it answers, but lists no archives: {fault.summary}; is its database there?") from None
        ours = [_text(each, "id") for each in held if str(each.get("name") or "").startswith(f"{self._prefix}/")]
        await self._require_embeddings(ours[:1])
        return {"status": "ok"}

    async def _require_embeddings(self, listed: Sequence[str]) -> None:
        """By asking one archive: of those that are known the first that is still there, else one of the `listed`."""
        known = [(whose, archive) for whose, archives in self._archives.items() for archive in archives]
        for whose, archive in [*known, *((None, each) for each in listed)]:
            try:
                await self._passages(archive, query="health", limit=1)
            except Unavailable as fault:
                if whose is not None and fault.details.get("status") == _NOT_FOUND:  # deleted there
                    self._archives.pop(whose, None)
                    continue
                endpoint = shown_url(str(self._embedding["embedding_config"]["embedding_endpoint"]), ())
                raise Unavailable(
                    f"it answers, but finds nothing by meaning: {fault.summary}; can it reach its embeddings at "
                    f"{endpoint}?"
                ) from None
            return

    async def close(self) -> None:
        self._client.close()

    # archives and passages

    async def _archives_of(self, tenant: str, agent_id: str, *, anew: bool = False) -> list[str]:
        """This agent's. There are two where two processes made one at once: whoever writes, erases or compares lists
        them `anew`, or a copy in the other would stay as it is."""
        if anew or (tenant, agent_id) not in self._archives:
            query = urlencode({"name": self._archive_name(tenant, agent_id), "limit": 100})
            found = await self._client.exchange("GET", f"/v1/archives/?{query}")
            if not (ids := sorted(_text(each, "id") for each in _listed(found))):
                self._archives.pop((tenant, agent_id), None)
                return []
            self._archives[tenant, agent_id] = ids
        return self._archives[tenant, agent_id]

    async def _make_archive(self, memory: Memory) -> list[str]:
        async with self._making:
            if not (there := await self._archives_of(memory.tenant, memory.agent_id)):
                name = self._archive_name(memory.tenant, memory.agent_id)
                made = await self._client.call("POST", "/v1/archives/", {"name": name, **self._embedding})
                _text(made, "id")
                there = await self._archives_of(memory.tenant, memory.agent_id)
        if not there:
            raise Unavailable("letta did not make an archive")
        return there

    def _archive_name(self, tenant: str, agent_id: str) -> str:
        # Quoted: the agent eu/bot of acme is not the agent bot of acme/eu.
        return "/".join([self._prefix, *(quote(part, safe="", errors="surrogatepass") for part in (tenant, agent_id))])

    async def _named(self, archive: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Its copies of these memories, of which there may be more than one."""
        # Each by its time, however many there are: every group of an erasure would read the whole archive.
        return [passage for id in dict.fromkeys(ids) for passage in await self._copies(archive, id)]

    async def _copies(self, archive: str, id: str) -> list[dict[str, Any]]:
        at = instant_of(id).isoformat()
        found = await self._passages(archive, start_date=at, end_date=at)
        self._require_one(found)
        return [passage for passage in found if self._memory(passage).id == id]

    async def _delete_copies(self, archive: str, id: str, but: str | None = None) -> None:
        """All that there are, a hundred at a time, except for the passage `but`."""
        before: set[str] = set()
        while True:
            found = {_text(passage, "id"): passage for passage in await self._copies(archive, id)}
            doomed = found.keys() - {but}
            if doomed & before:
                raise Unavailable("letta still shows what it said it had deleted")
            for each in doomed:
                await self._delete(archive, found[each])
            if len(found) < _PAGE:
                return
            before = doomed

    def _require_one(self, found: list[dict[str, Any]]) -> None:
        """Raises where a full page of one time has several memories: others may be hidden behind it, and whoever
        was told that there are none would take them for deleted."""
        if len(found) >= _PAGE and len({self._memory(passage).id for passage in found}) > 1:
            raise Unavailable("letta has more passages of one time than it shows, so some may not be found")

    async def _all(self, archive: str) -> list[dict[str, Any]]:
        return [passage async for page in self._pages(archive) for passage in page]

    async def _pages(self, archive: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Every passage once, by their times: each page begins with the time at which the one before ended."""
        seen: set[str] = set()
        after = _EPOCH - timedelta(days=1)
        while True:
            page = await self._passages(archive, start_date=after.isoformat())
            last = max((_time(passage) for passage in page), default=after)
            if last == after:
                self._require_one(page)
            after = last + _MICROSECOND if last == after else last
            yield [passage for passage in page if _text(passage, "id") not in seen]
            seen |= {_text(passage, "id") for passage in page}
            if len(page) < _PAGE:
                return

    async def _passages(self, archive: str, **asked: str | int) -> list[dict[str, Any]]:
        """Nearest first where there is a `query`, else oldest first."""
        asked_for = {"archive_id": archive, "limit": _PAGE, **asked}
        most = _MAX_ANSWER + int(asked_for["limit"]) * _MAX_PASSAGE
        found = _listed(await self._client.exchange("POST", "/v1/passages/search", asked_for, max_bytes=most))
        passages = [each.get("passage") for each in found]
        if not all(isinstance(passage, dict) for passage in passages):
            raise Unavailable("letta answered with something that is no passage")
        return [passage for passage in passages if isinstance(passage, dict)]

    async def _delete(self, archive: str, passage: dict[str, Any]) -> None:
        try:
            await self._client.exchange("DELETE", f"/v1/archives/{archive}/passages/{_text(passage, 'id')}")
        except Unavailable as fault:
            if fault.details.get("status") != _NOT_FOUND:  # whoever was there first has done it
                raise

    def _memory(self, passage: dict[str, Any]) -> Memory:
        own = passage.get("metadata")
        document = own.get(_DOCUMENT) if isinstance(own, dict) else None
        if isinstance(document, dict):
            document = {**document, "content": passage.get("text")}
        return to_copy(document, self.name, _text(passage, "id"))


def _listed(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Unavailable("letta answered with something that is no list")
    return found


def _text(document: dict[str, Any], name: str) -> str:
    if not isinstance(document.get(name), str):
        raise Unavailable(f"letta answered with something that has no {name}")
    return str(document[name])


def _time(passage: dict[str, Any]) -> datetime:
    try:
        at = datetime.fromisoformat(_text(passage, "created_at"))
    except ValueError:
        raise Unavailable("letta answered with something that is no time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _cosine(passage: dict[str, Any], vector: Vectors | None) -> float:
    """With the vector that Letta has of it, which it fills up with zeros."""
    given = passage.get("embedding")
    if vector is None or not isinstance(given, list) or len(given) < len(vector):
        return 0.0
    try:
        held = np.array(given[: len(vector)], np.float32)
    except (TypeError, ValueError):
        raise Unavailable("letta answered with a vector that is none") from None
    return float(held @ vector / (np.linalg.norm(held) or 1.0))


def instant_of(id: str) -> datetime:
    """The time of the passage with the copy of this memory, made up from its id alone: in the time that an id says, or
    by a checksum, anyone could put as many ids as Letta shows, and hide those of others behind them."""
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()
    return _EPOCH + timedelta(microseconds=int.from_bytes(digest[:16]) % _TIMES)


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> LettaStore:
    address, given = split_options(url)
    settings = settings or StoreSettings()
    if settings.embed is None:
        raise ValidationError(
            'letta:// needs an embedder; with embedder = "none" nobody makes its vectors', field="stores"
        )
    parts = urlsplit(address)
    prefix = parts.path.strip("/") or "commonplace"
    if not parts.netloc:
        raise ValidationError(
            f"{shown_url(url)} names no server; write for example letta://127.0.0.1:8283", field="stores"
        )
    scheme = "https" if url.startswith("letta+https://") else "http"
    client = JsonClient(
        f"{scheme}://{parts.netloc}",
        token_of(given),
        settings.timeout,
        _CONNECTIONS,
        _MAX_ANSWER,
        is_quoted=False,
        token_advice=token_advice(given, "a token that it takes"),
        ours=False,
    )
    endpoint = {
        "embedding_endpoint_type": "openai",
        "embedding_endpoint": given.get("embeddings") or f"{DEFAULT_URL}/v1",
        "embedding_model": given.get("model") or "commonplace",
        "embedding_dim": int(settings.embed(["a first text"]).shape[1]),
        "embedding_chunk_size": 300,
    }
    return LettaStore(client, prefix, {"embedding_config": endpoint})
