"""A primary used as a replica says that it has, and has lost, nothing that its file does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from replica_house import AGENT, EVERYTHING, house, run

from commonplace.engine import Forget
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock


@pytest.mark.parametrize("replaced", [False, True])
@run
async def test_an_erasure_waits_where_a_copys_file_is_not_the_one_that_is_open(tmp_path: Path, replaced: bool) -> None:
    """It went to a file without a name: whoever puts a copy of it back has the memory again, and is never told."""
    clock, file, away = FakeClock(), tmp_path / "copy.db", tmp_path / "elsewhere.db"

    def stores() -> list[PrimaryCopy]:
        store = PrimaryCopy(SqliteStore(file, clock))
        store.name = "copy"
        return [store]

    async with house(clock=clock, primary=SqliteStore(tmp_path / "first.db", clock), stores=stores()) as h:
        id = await h.remember("Alice is allergic to peanuts")
        await h.settled()
    async with house(clock=clock, primary=SqliteStore(tmp_path / "first.db", clock), stores=stores()) as h:
        shutil.copy(file, away)
        file.unlink()
        if replaced:
            shutil.copy(away, file)
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.remember("Bob likes tea")
        await h.settled()
        assert [str(file) in each["error"] for each in (await h.waiting()).values()] == [True, True]
        assert h.engine.stores.failing(WHO)
    shutil.copy(away, file)
    clock.advance(600_000)
    async with house(clock=clock, primary=SqliteStore(tmp_path / "first.db", clock), stores=stores()) as h:
        await h.outbox.run_due()
        await h.settled()
        assert [memory.content for memory in (await h.copies[0].scan(EVERYTHING)).memories] == ["Bob likes tea"]
