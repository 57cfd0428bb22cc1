"""Two copies of one memory in another: a comparison sees both, and a resync leaves the right one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memory_pair import AGENT, pair
from replica_house import run

from commonplace.stores.foreign_copies import to_metadata
from commonplace.stores.mixins import page_of
from commonplace.testing.subject import WHO
from commonplace.wire.record import Memory


@pytest.mark.parametrize("stale_last", [True, False])
@run
async def test_a_resync_puts_one_copy_in_the_place_of_two(tmp_path: Path, stale_last: bool) -> None:
    async with pair(tmp_path) as p:
        engine = await p.ours.engine()
        made = await p.ours.remember("Alice has a PIN")
        (held,) = (await engine.list(WHO, (AGENT,))).memories
        await p.theirs.forget(filter={"commonplace_id": made.id}, hard_delete=True)
        texts = ["Alice has a PIN", "Alice's PIN is 4711"]
        for text in texts if stale_last else texts[::-1]:
            p.clock.advance(1)
            await p.theirs.remember(text, metadata=to_metadata(held))
        assert sorted(await p.copies()) == texts
        done = await engine.stores.resync(WHO, "memory")
        assert (done["equal"], done["sent"], done["copies"]) == (True, 1, 1)
        assert await p.copies() == ["Alice has a PIN"]


@run
async def test_copies_of_what_is_gone_are_counted_once(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        engine = await p.ours.engine()
        await p.ours.remember("Alice has a PIN")
        (held,) = (await engine.list(WHO, (AGENT,))).memories
        gone = replace(held, id="0199-gone")
        for text in ("one", "two"):
            await p.theirs.remember(text, metadata=to_metadata(gone))
        done = await engine.stores.resync(WHO, "memory")
        assert (done["equal"], done["deleted"]) == (True, 1)
        assert await p.copies() == ["Alice has a PIN"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_copies_of_one_memory_are_on_one_page(newest_first: bool) -> None:
    held = [Memory(f"{n}", "local", AGENT, "semantic", text, created_at=n) for n in range(4) for text in ("a", "b")]
    found, cursor = [], None
    while True:
        page = page_of(held, 3, cursor, newest_first)
        found += page.memories
        if (cursor := page.next_cursor) is None:
            break
    assert sorted((m.id, m.content) for m in found) == [(m.id, m.content) for m in held]
