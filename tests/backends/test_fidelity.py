"""How each product keeps what a memory has (the paper's Table 2), seen in the product's own record of one: a property
of its own, its metadata, or nothing that could be read back. The table in docs/conformance.md is what they found.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
import pytest
from products import FIDELITY_FIELDS, PARAMETERS, Product
from psycopg.rows import dict_row

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.plugins import open_replica
from commonplace.stores import cognee
from commonplace.stores.base import Entry, Store, StoreSettings
from commonplace.stores.documents import OUR_ID
from commonplace.stores.optional import PerAgentStore
from commonplace.stores.text import terms
from commonplace.testing import FakeClock
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

#: Where a product has what it does not know of itself.
SINKS = {"metadata", "tags", "external_metadata"}
_ROW = (
    "SELECT m.*, s.agent_id, t.name AS tenant FROM memories m JOIN scopes s ON s.id = m.scope_id "
    "JOIN tenants t ON t.id = s.tenant_id WHERE m.id = "
)

Record = dict[str, Any]


def place_of(field: str, value: Any, record: Record, sinks: set[str]) -> str | None:
    if any(name not in sinks and _is(value, held) for name, held in record.items()):
        return "native"
    # What is beside the user's own is not lost by it.
    own = record.get("metadata") if field == "metadata" else None
    if isinstance(own, dict) and value.items() <= own.items():
        return "native"
    return "encoded" if any(_holds(record.get(name), value) for name in sinks) else None


def _is(value: Any, held: Any) -> bool:
    if isinstance(held, str) and not isinstance(value, str):
        try:
            held = json.loads(held)
        except ValueError:
            return False
    return type(held) is type(value) and held == value


def _holds(held: Any, value: Any) -> bool:
    if _is(value, held) or (isinstance(held, str) and isinstance(value, str) and held.endswith(f":{value}")):
        return True  # the latter is a tag of Letta's
    if isinstance(held, dict):
        held = list(held.values())
    return isinstance(held, list) and any(_holds(each, value) for each in held)


# what each product has of it


async def in_sqlite(store: Any, memory: Memory, folder: Path) -> Record:
    with closing(sqlite3.connect(folder / "m.db")) as db:
        db.row_factory = sqlite3.Row
        return dict(db.execute(f"{_ROW} ?", (memory.id,)).fetchone())


async def in_postgres(store: Any, memory: Memory, folder: Path) -> Record:
    with psycopg.connect(**store._primary.address.parameters, row_factory=dict_row) as db:
        found = db.execute(f"{_ROW} %s".encode(), (memory.id,)).fetchone()
        assert found is not None
        return dict(found)


async def in_mem0(store: Any, memory: Memory, folder: Path) -> Record:
    (found,) = await store._run(lambda: store._named(memory.tenant, [memory.id]))
    return dict(found)


async def in_letta(store: Any, memory: Memory, folder: Path) -> Record:
    (archive,) = await store._archives_of(memory.tenant, memory.agent_id)
    (passage,) = await store._copies(archive, memory.id)
    named = await store._client.call("GET", f"/v1/archives/{archive}")
    _, tenant, agent = named["name"].split("/")
    return {**passage, "archive of": unquote(tenant), "archive for": unquote(agent)}


async def in_cognee(store: Any, memory: Memory, folder: Path) -> Record:
    dataset = cognee._dataset(memory.tenant, memory.agent_id)
    (row,) = await store._library.run(partial(store._library.rows, dataset))
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


async def on_server(store: Any, memory: Memory, folder: Path) -> Record:
    asked = {"agent_id": memory.agent_id, "filter": {OUR_ID: [memory.id]}, "limit": 1, "cursor": None}
    (found,) = (await store._server.list_page(**asked))["memories"]
    return dict(found)


#: By the beginning of the product's name, and what of its record it does not know of itself.
LOOK: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "sqlite": (in_sqlite, set()),
    "sqlite-vec": (in_sqlite, set()),
    "postgresql": (in_postgres, set()),
    "mem0": (in_mem0, SINKS),
    "letta": (in_letta, SINKS),
    "cognee": (in_cognee, SINKS),
    "memorywire+http": (on_server, SINKS),
}


@pytest.fixture(params=PARAMETERS)
def product(request: pytest.FixtureRequest) -> Product:
    found: Product = request.param
    if (why := found.missing()) is not None:
        pytest.skip(why)
    return found


def a_memory(clock: FakeClock) -> Memory:
    """Each field with a value that no other has."""
    at = clock.advance(DAY_MS)
    return Memory(
        mint_id(at), f"tenant-{mint_id(at)[-12:]}", f"agent-{mint_id(at)[-12:]}", "emotional", "Alice moved to Lisbon",
        user_id="alice", project="home", tags=["a b", "ü"], metadata={"deep": {"er": [1, 2.5, {"x": None}]}, "n": 1},
        confidence=0.25, importance=0.75, source="letter", expires_at=at + 40_000 * DAY_MS, created_at=at,
        updated_at=at, version=1, provenance={"dialect": "memorywire", "chain": ["x"]},
    )  # fmt: skip


async def read_back(store: Store, memory: Memory) -> Memory:
    if isinstance(store, PerAgentStore):
        (kept,) = await store.get_of(memory.tenant, memory.agent_id, [memory.id])
    else:
        (kept,) = await store.get(memory.tenant, [memory.id])
    return kept


def test_nothing_that_a_memory_has_is_lost(
    product: Product, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    look, sinks = LOOK[product.name.split()[0]]
    clock, embedder = FakeClock(), HashingEmbedder()
    memory = a_memory(clock)
    entry = Entry(memory, embedder.embed([memory.content]), terms(memory.content), 1)

    async def work() -> dict[str, str]:
        store = open_replica(
            product.url(tmp_path), clock, StoreSettings(folder=tmp_path, embed=embedder.embed, timeout=60)
        )
        await store.put([entry])
        kept, record = await read_back(store, memory), await look(store, memory, tmp_path)
        await store.close()
        found = {}
        for field in FIDELITY_FIELDS:
            value = getattr(memory, field)
            is_lost = getattr(kept, field) != value
            found[field] = "lossy" if is_lost else place_of(field, value, record, sinks) or f"not in {record!r:.2000}"
        return found

    places = asyncio.run(work())
    record_property("fidelity", places)
    assert {field: place for field, place in places.items() if place not in ("native", "encoded")} == {}
