"""Dropping what waits for a store that is gone, and nothing that a process has recorded since."""

from __future__ import annotations

from typing import Any

import pytest
from replica_house import AGENT, House, house, run

from commonplace.engine import Forget
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.stores.base import Record
from commonplace.testing.subject import WHO
from commonplace.wire.errors import Conflict, Forbidden, NotFound
from commonplace.wire.record import Principal


async def _left_behind(h: House, more: bool = False) -> list[str]:
    """A change, or two, and a deletion that wait for a copy that is away."""
    ids = [await h.remember("Alice drinks tea"), await h.remember("Bob drinks milk")]
    await h.outbox.join()
    h.copies[0].down = "no route"
    await h.engine.forget(WHO, Forget(AGENT, [ids[0]], hard_delete=True))
    ids.append(await h.remember("Alice sings"))
    if more:
        await h.remember("Bob sings, too")
    await h.outbox.join()
    h.clock.advance(600_000)
    return [ids[0], ids[2]]


@run
async def test_what_waits_is_counted_and_dropped() -> None:
    async with house() as h:
        await _left_behind(h, more=True)
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            looked = await without.engine.stores.discard(WHO, "copy", dry_run=True)
            assert looked == {"dry_run": True, "store": "copy", "waiting": 3, "deletions": 1}
            assert len(await h.waiting()) == 3
            done = await without.engine.stores.discard(WHO, "copy")
            assert done == {"store": "copy", "waiting": 3, "deletions": 1}
            assert await h.waiting() == {}
            with pytest.raises(NotFound, match="nothing waits for a store 'copy'"):
                await without.engine.stores.discard(WHO, "copy")


@run
async def test_only_an_operator_discards_and_only_of_one_that_is_configured_no_more() -> None:
    async with house() as h:
        await _left_behind(h)
        with pytest.raises(Conflict, match="is configured"):
            await h.engine.stores.discard(WHO, "copy")
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            for who in (Principal(role="writer"), Principal("alice", "acme", "admin", ("*",))):
                with pytest.raises(Forbidden):
                    await without.engine.stores.discard(who, "copy")
        assert len(await h.waiting()) == 2


@pytest.mark.parametrize("change", [{"seq": 99}, {"turn": 1}, {"owner": "another"}])
@run
async def test_what_a_process_records_or_takes_in_hand_meanwhile_stays(change: dict[str, Any]) -> None:
    async with house() as h:
        erased, _ = await _left_behind(h)
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            core, transact = without.engine._core, without.engine._core.transact

            async def meanwhile(tenant: str, work: Any) -> Any:
                value = (await h.waiting())[erased] | change | {"until": h.clock() + 60_000 * ("owner" in change)}
                await h.primary.transact(tenant, lambda tx: tx.put_record(Record(kind_of("copy"), erased, value)))
                return await transact(tenant, work)

            core.transact = meanwhile  # type: ignore[method-assign]
            done = await without.engine.stores.discard(WHO, "copy")
            assert done == {"store": "copy", "waiting": 1, "deletions": 0}
            assert list(await h.waiting()) == [erased]


@run
async def test_nothing_is_discarded_while_a_process_delivers_it() -> None:
    async with house() as h:
        erased, _ = await _left_behind(h)
        value = (await h.waiting())[erased] | {"owner": "another", "until": h.clock() + 60_000}
        await h.primary.transact("local", lambda tx: tx.put_record(Record(kind_of("copy"), erased, value)))
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            assert (await without.engine.stores.discard(WHO, "copy", dry_run=True))["waiting"] == 2
            with pytest.raises(Conflict, match="a process may be delivering to the store copy"):
                await without.engine.stores.discard(WHO, "copy")
            assert len(await h.waiting()) == 2
            h.clock.advance(60_000)
            assert (await without.engine.stores.discard(WHO, "copy"))["waiting"] == 2


@run
async def test_a_store_without_an_address_is_said_to_be_resynced_too() -> None:
    """Such as an object of a program, of which the primary remembers nothing but what waits."""
    async with house() as h:
        await _left_behind(h)
        async with house(copies=0, primary=h.primary, clock=h.clock) as without:
            await without.engine.stores.discard(WHO, "copy")
        h.copies[0].down = None
        async with house(primary=h.primary, clock=h.clock, stores=h.copies) as back:
            assert "what waited for it was discarded" in (await back.engine.stores.list(WHO))[1]["last_error"]
            assert not (await back.engine.stores.examine())[0].ok
            assert (await back.engine.stores.resync(WHO, "copy"))["equal"]
            assert "last_error" not in (await back.engine.stores.list(WHO))[1]
            assert await h.copies[0].contents() == {"Bob drinks milk", "Alice sings"}
