"""Agents that another memory has copies of and the primary does not know, as after a restore of an older backup."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_pair import pair
from replica_house import run

from commonplace.stores.foreign import ForeignStore, listing_of
from commonplace.testing.subject import WHO
from commonplace.wire.errors import NotFound, Unavailable


@run
async def test_a_resync_after_a_restore_finds_agents_that_began_since(tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    async with pair(tmp_path) as p:
        await p.ours.remember("first")
        await p.ours.backup(backup)
        await p.ours.remember("of an agent that began later", agent_id="newcomer")
        await p.theirs.remember("their own", agent_id="neighbour")
        await p.reopen_ours(backup)
        done = await (await p.ours.engine()).stores.resync(WHO, "memory")
        assert (done["equal"], done["deleted"]) == (True, 1)
        assert (await p.theirs.list(agent_id="newcomer"))["memories"] == []
        assert [m["content"] for m in (await p.theirs.list(agent_id="neighbour"))["memories"]] == ["their own"]
        assert await p.copies() == ["first"]


class Unlisted:
    """A server of the binding that has no status."""

    lists_by_filter = True

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def list(self, **asked: object) -> dict[str, object]:
        raise AssertionError

    async def status(self) -> dict[str, object]:
        raise self._fault


@pytest.mark.parametrize("fault", [NotFound("no such page"), Unavailable("it answered 404", status=404)])
@run
async def test_a_server_that_does_not_say_whose_memories_it_has_names_nobody(fault: Exception) -> None:
    theirs = Unlisted(fault)
    store = ForeignStore(theirs, "peer", listing_of(theirs))  # type: ignore[arg-type]
    assert await store.agent_names("local") == []


@run
async def test_a_server_that_is_away_is_not_taken_for_one_without_agents() -> None:
    theirs = Unlisted(Unavailable("it answered 503", status=503))
    store = ForeignStore(theirs, "peer", listing_of(theirs))  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="503"):
        await store.agent_names("local")
