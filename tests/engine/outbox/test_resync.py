from __future__ import annotations

from dataclasses import replace
from typing import Any

from replica_house import AGENT, Flaky, house, run

from commonplace.engine import Forget
from commonplace.engine.ledger import audit
from commonplace.engine.outbox.courier import DOUBT_MS
from commonplace.engine.outbox.resync import differences, digest
from commonplace.stores.base import Entry
from commonplace.testing.subject import DAY_MS, WHO
from commonplace.wire.record import Memory


def _memory(id: str, content: str = "words") -> Memory:
    return Memory(id, "local", AGENT, "semantic", content, created_at=1)


def test_a_digest_is_of_what_they_say_and_not_of_their_order() -> None:
    one, two = _memory("a"), _memory("b")
    assert digest([one, two]) == digest([two, one]) != digest([one])
    assert digest([replace(one, content="Words")]) != digest([one])
    assert digest([replace(one, seq=7, recalls=3, demotion=0.25)]) == digest([one])


def test_what_differs_is_told_apart() -> None:
    held = [_memory("same"), _memory("changed"), _memory("missing")]
    copies = [_memory("same"), _memory("changed", "other"), _memory("extra")]
    wrong, extra = differences(held, copies)
    assert ([m.id for m in wrong], [m.id for m in extra]) == (["changed", "missing"], ["extra"])


@run
async def test_a_replica_that_differs_in_every_way_becomes_equal() -> None:
    async with house() as h:
        ids = [await h.remember(f"fact {n}") for n in range(6)]
        await h.outbox.join()
        copy = h.copies[0]
        await copy.delete("local", ids[:1])
        (changed,) = await copy.get("local", ids[1:2])
        await copy.put([Entry(replace(changed, content="altered"), None, b"")])
        await copy.put([Entry(_memory("0199-invented", "an invention"), None, b"")])
        copy.down = "for a moment"
        await h.engine.forget(WHO, Forget(AGENT, [ids[2]]))
        await h.remember("written meanwhile")
        await h.outbox.join()
        copy.down = None
        seen: list[tuple[int, int]] = []
        done = await h.engine.stores.resync(WHO, "copy", lambda at, of: seen.append((at, of)))
        assert done["equal"]
        assert (done["memories"], done["copies"], done["sent"], done["deleted"]) == (6, 6, 3, 2)
        assert done["hash"] == done["copies_hash"]
        assert seen[-1] == (6, 6)
        assert await h.equal()
        (doubtful,) = await h.waiting()  # its write was not confirmed: what comes of it is looked at once more
        h.clock.advance(DOUBT_MS)
        await h.outbox.run_due()
        assert await h.waiting() == {}
        assert [m.content for m in await copy.get("local", [doubtful])] == ["written meanwhile"]
        assert (await h.engine.stores.resync(WHO, "copy"))["sent"] == 0


@run
async def test_what_has_expired_is_no_longer_there_afterwards() -> None:
    async with house() as h:
        await h.remember("brief", expires_at=h.clock() + DAY_MS)
        await h.remember("lasting")
        h.clock.advance(2 * DAY_MS)
        assert (await h.engine.stores.resync(WHO, "copy"))["deleted"] == 1
        assert await h.copies[0].contents() == {"lasting"}


@run
async def test_an_agent_whose_memories_are_all_erased_is_looked_at_too() -> None:
    """What was erased while the store was not attached, of an agent that the primary has nothing else of."""
    async with house() as h:
        id = await h.remember("Carol's diary")
        await h.outbox.join()
        (copy,) = await h.copies[0].get("local", [id])
        await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))
        await h.outbox.join()
        await h.copies[0].put([Entry(copy, None, b"")])
        assert await h.primary.agent_names("local") == []
        _cannot_list_agents(h.copies[0])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"]) == (True, 1)
        assert await h.copies[0].contents() == set()


def _cannot_list_agents(store: Flaky) -> None:
    async def agent_names(tenant: str) -> list[str]:
        return []

    store.agent_names = agent_names  # type: ignore[method-assign]


@run
async def test_an_agent_that_only_the_replica_has_is_looked_at_where_it_can_list_them() -> None:
    async with house() as h:
        await h.remember("words")
        await h.copies[0].put([Entry(replace(_memory("0199-invented"), agent_id="unheard of"), None, b"")])
        done = await h.engine.stores.resync(WHO, "copy")
        assert (done["equal"], done["deleted"], done["copies"]) == (True, 1, 1)
        assert await h.copies[0].get("local", ["0199-invented"]) == []


@run
async def test_entries_of_all_agents_name_none() -> None:
    """A product may read * as any agent: nothing may be asked, let alone deleted, by that name."""
    async with house() as h:
        await h.remember("words")
        await h.engine.policies.replace(WHO, [])  # in the ledger under *
        assert "*" in await audit.agents_in(h.primary, "local")
        asked: list[str] = []
        scan = h.copies[0].scan

        async def noted(reach: Any, **how: Any) -> Any:
            asked.extend(reach.agents)
            return await scan(reach, **how)

        h.copies[0].scan = noted  # type: ignore[method-assign]
        assert (await h.engine.stores.resync(WHO, "copy"))["equal"]
        assert set(asked) == {AGENT}
