"""Memories of another server that carry our keys and are no copies that can be read: anyone who may write there can
store one, and it must cost neither a recall nor a resync more than itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from memory_pair import pair
from replica_house import AGENT, house, run

from commonplace.dialects.memorywire import Memorywire
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Draft, Engine, Query
from commonplace.stores.documents import UnreadableCopy, to_copy
from commonplace.stores.foreign import ForeignStore
from commonplace.stores.foreign_copies import to_metadata
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock
from commonplace.wire.models import RecallHit
from commonplace.wire.record import Memory

_ID = "01977421-0000-7000-8000-000000000000"
_GOOD: dict[str, Any] = to_metadata(Memory(_ID, "local", AGENT, "semantic", "", created_at=1))


def _with(**fields: Any) -> dict[str, Any]:
    return {**_GOOD, "commonplace": {**_GOOD["commonplace"], **fields}}


#: What nobody can know to be a copy of ours, so that it stays and is named.
DOUBTFUL: dict[str, dict[str, Any]] = {
    "garbage": {"commonplace_id": "zzz", "commonplace_tenant": "local", "commonplace": "garbage"},
    "no fields": {"commonplace_id": "zzz", "commonplace_tenant": "local"},
    "no id": {**_GOOD, "commonplace_id": 5},
    "another id inside": _with(id="01977421-0000-7000-8000-00000000000f"),
    "another tenant inside": _with(tenant="acme"),
}
#: What says in both places whose it is, and of which something else cannot be read.
DAMAGED: dict[str, dict[str, Any]] = {
    "an unknown type": _with(type="telepathic"),
    "a time in words": _with(created_at="yesterday"),
    "an unknown status": _with(status="lost"),
}


class Unlisted(Memorywire):
    """A store that cannot be listed, and so is asked by recalls."""

    capabilities = frozenset({"semantic", "episodic", "procedural", "emotional", "fts", "vector"})


@pytest.mark.parametrize("metadata", [*DOUBTFUL.values(), *DAMAGED.values()], ids=[*DOUBTFUL, *DAMAGED])
@run
async def test_one_that_cannot_be_read_costs_a_recall_nothing_else(metadata: dict[str, Any]) -> None:
    clock = FakeClock()
    remote = await Engine.open(InMemory(clock), HashingEmbedder(), clock=clock)
    async with house(clock=clock, stores=[ForeignStore(Unlisted(remote, WHO), "peer")]) as h:
        id = await h.remember("peanuts are bad for Alice")
        await h.settled()
        await remote.remember(WHO, Draft(AGENT, "semantic", "peanuts", metadata=metadata))
        for _ in range(4):  # three failures would have opened its breaker
            found = await h.engine.recall(WHO, Query((AGENT,), "peanuts", 5, quorum=2, min_score=0, explain=True))
            assert [hit.memory.id for hit in found.hits] == [id]
            assert found.errors == {}
            listed = isinstance(metadata["commonplace_id"], str)
            assert (found.explain or {})["stores"]["peer"]["unknown"] == int(listed)
        with h.engine.reporting() as report:
            later = await h.remember("walnuts, too")
        assert report.outcomes[later] == {"peer": None}
    await remote.close()


@pytest.mark.parametrize("metadata", DOUBTFUL.values(), ids=DOUBTFUL)
@run
async def test_a_resync_leaves_what_may_not_be_ours_and_names_it(tmp_path: Path, metadata: dict[str, Any]) -> None:
    async with pair(tmp_path) as p:
        await p.ours.remember("peanuts are bad for Alice", agent_id=AGENT)
        poison = await p.theirs.remember("peanuts", agent_id=AGENT, metadata=metadata)
        await p.ours.resync("memory")  # of everything else it is equal now
        said = await p.ours.resync("memory", dry_run=True)
        assert (said["equal"], [each["id"] for each in said["unreadable"]]) == (False, [poison.id])
        done = await p.ours.resync("memory")
        assert done["unreadable"] == [{"tenant": "local", "agent_id": AGENT, "id": poison.id}]
        assert not done["equal"]
        held = {m["id"] for m in (await p.theirs.list(agent_id=AGENT))["memories"]}
        assert poison.id in held
        await p.theirs.forget(ids=[poison.id], agent_id=AGENT, hard_delete=True)
        done = await p.ours.resync("memory")
        assert (done["equal"], done["copies"]) == (True, 1)
        assert "unreadable" not in done


def test_one_that_names_no_tenant_is_of_none() -> None:
    """Not of one that has the name which a missing value has in Python."""
    store = ForeignStore(Unlisted(None, WHO), "peer")  # type: ignore[arg-type]
    for own in (None, {"id": _ID}):
        hit = RecallHit(
            id="p-1", type="semantic", content="x", score=1.0, metadata={"commonplace_id": _ID, "commonplace": own}
        )
        assert store._memory(hit, AGENT).tenant == ""


@pytest.mark.parametrize(
    "id", ["\ud800", "a\0b", "a b", "", "a" * 3_000_000], ids=["half", "NUL", "blank", "none", "huge"]
)
def test_what_is_no_id_of_ours_is_known_by_theirs(id: str) -> None:
    store = ForeignStore(Unlisted(None, WHO), "peer")  # type: ignore[arg-type]
    held = to_metadata(Memory(id, "local", AGENT, "semantic", "", created_at=1))
    copy = store._memory(RecallHit(id="p-1", type="semantic", content="x", score=1.0, metadata=held), AGENT)
    assert isinstance(copy, UnreadableCopy)
    assert (copy.id, copy.store_id) == ("", "p-1")
    known = to_copy({**held["commonplace"], "content": "x"}, "letta", "p-1")
    assert isinstance(known, UnreadableCopy)
    assert (known.id, known.store_id) == ("", "p-1")


@pytest.mark.parametrize("metadata", DAMAGED.values(), ids=DAMAGED)
@run
async def test_a_resync_deletes_a_damaged_copy(tmp_path: Path, metadata: dict[str, Any]) -> None:
    async with pair(tmp_path) as p:
        await p.ours.remember("peanuts are bad for Alice", agent_id=AGENT)
        await p.theirs.remember("peanuts", agent_id=AGENT, metadata=metadata)
        await p.theirs.remember("their own peanuts", agent_id=AGENT)
        done = await p.ours.resync("memory")
        assert (done["equal"], done["deleted"], done["copies"]) == (True, 1, 1)
        held = {m["content"] for m in (await p.theirs.list(agent_id=AGENT))["memories"]}
        assert held == {"peanuts are bad for Alice", "their own peanuts"}


@run
async def test_what_has_the_id_of_a_memory_of_ours_gives_way_to_the_copy(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        kept = await p.ours.remember("peanuts are bad for Alice", agent_id=AGENT)
        garbage = {"commonplace_id": kept.id, "commonplace_tenant": "local", "commonplace": "garbage"}
        await p.theirs.remember("peanuts are good for Alice", agent_id=AGENT, metadata=garbage)
        done = await p.ours.resync("memory")
        assert (done["equal"], done["sent"], done["copies"]) == (True, 1, 1)
        held = {m["content"] for m in (await p.theirs.list(agent_id=AGENT))["memories"]}
        assert held == {"peanuts are bad for Alice"}


@run
async def test_a_copy_of_what_is_gone_is_deleted_whatever_else_has_its_id(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        await p.ours.remember("peanuts are bad for Alice", agent_id=AGENT)
        for metadata in (_GOOD, {**_GOOD, "commonplace": "garbage"}):
            await p.theirs.remember("peanuts", agent_id=AGENT, metadata=metadata)
        done = await p.ours.resync("memory")
        assert (done["equal"], done["copies"]) == (True, 1)
        assert await p.copies() == ["peanuts are bad for Alice"]
