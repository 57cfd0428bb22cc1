"""Passages in one of our archives that are no copies, as whoever uses Letta may put there: they cost nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from replica_house import AGENT, house, run

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores.base import Reach, Search, StoreSettings
from commonplace.stores.documents import UnreadableCopy, to_document
from commonplace.stores.letta import LettaStore, instant_of
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.record import Memory

GOOD = Memory("0199-a", "local", AGENT, "semantic", "Alice drinks tea", created_at=1)
HURT = Memory("0199-b", "local", AGENT, "semantic", "Bob drinks tea", created_at=1)


def _passage(id: str, text: str, at: str, metadata: Any) -> dict[str, Any]:
    return {"id": id, "text": text, "created_at": instant_of(at).isoformat(), "metadata": metadata}


@pytest.fixture
def held() -> dict[str, dict[str, Any]]:
    """What the archive has: a copy, one of which a field cannot be read, and what a user of Letta wrote."""
    hurt = {**to_document(HURT), "expires_at": "soon"}
    passages = [
        _passage("p-good", GOOD.content, GOOD.id, {"commonplace": to_document(GOOD)}),
        _passage("p-hurt", HURT.content, HURT.id, {"commonplace": hurt}),
        _passage("p-own", "a note about tea", "own", None),
        _passage("p-odd", "a note about tea", "odd", {"commonplace": "garbage"}),
    ]
    return {passage["id"]: passage for passage in passages}


@pytest.fixture
def store(held: dict[str, dict[str, Any]]) -> Iterator[LettaStore]:
    """A server with the few routes that are asked here, so that nothing but these passages is in its answers."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            found: Any = [{"id": "archive-1", "name": "notes/local/agent"}]
            if self.command == "DELETE":
                found = held.pop(self.path.rpartition("/")[2])
            elif self.path.endswith("/passages"):
                found = held[f"p-{len(held)}"] = {"id": f"p-{len(held)}", **asked}
            elif self.command == "POST":
                first, last = asked.get("start_date", ""), asked.get("end_date", "9")
                found = [{"passage": p} for p in held.values() if first <= p["created_at"] <= last]
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *what: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"letta://127.0.0.1:{server.server_address[1]}/notes"
    opened = open_replica(url, FakeClock(), StoreSettings(embed=HashingEmbedder().embed))
    assert isinstance(opened, LettaStore)
    yield opened
    server.shutdown()
    server.server_close()


@run
async def test_a_search_and_a_scan_find_the_others(store: LettaStore) -> None:
    reach = Reach("local", (AGENT,))
    assert [each.memory.id for each in await store.search(Search(reach, "tea", None))] == [GOOD.id]
    assert [memory.id for memory in (await store.scan(reach)).memories] == [GOOD.id]
    assert await store.get_of("local", AGENT, [GOOD.id, HURT.id]) == [GOOD]


@run
async def test_one_with_the_id_of_a_copy_does_not_hide_it(store: LettaStore, held: dict[str, dict[str, Any]]) -> None:
    held["p-twin"] = _passage("p-twin", "a note about tea", GOOD.id, {"commonplace": {"id": GOOD.id}})
    assert await store.get_of("local", AGENT, [GOOD.id]) == [GOOD]


@run
async def test_a_resync_names_what_it_could_not_delete_and_counts_it_as_left(
    store: LettaStore, held: dict[str, dict[str, Any]]
) -> None:
    """A passage with a time of its own says an id, and is not where a copy of that id is looked for."""
    held["p-stray"] = _passage("p-stray", "a note about tea", "elsewhere", {"commonplace": {"id": "0199-c"}})
    moved = Memory("0199-d", "local", AGENT, "semantic", "a copy of a copy", created_at=1)
    held["p-moved"] = _passage("p-moved", moved.content, "elsewhere", {"commonplace": to_document(moved)})
    async with house(stores=[store]) as h:
        kept = await h.remember("Alice is allergic to peanuts")
        await h.settled()
        held["p-twin"] = _passage("p-twin", "a note about tea", "elsewhere", {"commonplace": {"id": kept}})
        done = await h.engine.stores.resync(WHO, "letta")
        strange = {"p-own", "p-odd", "p-stray", "p-moved", "p-twin"}
        assert not {"p-good", "p-hurt"} & set(held)
        assert strange <= set(held)
        assert (done["equal"], done["deleted"], done["memories"], done["copies"]) == (False, 2, 1, 6)
        named = [each["id"] for each in done["unreadable"]]
        assert sorted(named) == ["0199-d", "p-odd", "p-own", "p-stray", "p-twin"]
        for each in strange:
            del held[each]
        done = await h.engine.stores.resync(WHO, "letta")
        assert (done["equal"], done["deleted"], "unreadable" in done) == (True, 0, False)


@run
async def test_a_listing_for_a_resync_names_them(store: LettaStore) -> None:
    found = [memory async for page in store.copy_pages("local", AGENT) for memory in page]
    assert {memory.store_id for memory in found if isinstance(memory, UnreadableCopy)} == {"p-own", "p-odd"}
    assert sorted(memory.id for memory in found if not isinstance(memory, UnreadableCopy)) == [GOOD.id, HURT.id]


@run
async def test_a_damaged_copy_can_be_deleted_and_a_note_is_not(
    store: LettaStore, held: dict[str, dict[str, Any]]
) -> None:
    assert await store.delete_of("local", AGENT, [GOOD.id, HURT.id]) == 2
    assert await store.delete_of("local", AGENT, ["", "own"]) == 0
    assert set(held) == {"p-own", "p-odd"}
