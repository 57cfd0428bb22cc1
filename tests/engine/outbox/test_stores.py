from __future__ import annotations

import pytest
from replica_house import house, run

from commonplace.engine import Draft
from commonplace.engine.outbox.deliveries import kind_of
from commonplace.testing.subject import WHO
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Principal, Role


@run
async def test_they_are_listed_with_what_waits_for_them() -> None:
    async with house(copies=2) as h:
        h.copies[0].down = "no route"
        await h.remember("words")
        await h.outbox.join()
        h.clock.advance(4_000)
        primary, first, second = await h.engine.stores.list(WHO)
        assert (primary["name"], primary["role"], primary["status"]) == (h.primary.name, "primary", "ok")
        assert (first["status"], first["waiting"], first["failing"], first["behind_ms"]) == ("degraded", 1, 1, 4_000)
        assert first["error"] == first["last_error"] == "no route"
        assert (second["status"], second["waiting"]) == ("ok", 0)
        assert "semantic" in second["capabilities"]


@run
async def test_only_an_operator_resyncs_and_only_what_is_there() -> None:
    async with house() as h:
        with pytest.raises(NotFound, match="there is no store 'mem0' with copies; there are: copy"):
            await h.engine.stores.resync(WHO, "mem0")
        with pytest.raises(Forbidden):
            await h.engine.stores.resync(Principal(role="writer"), "copy")


@pytest.mark.parametrize("role", ["reader", "writer", "reviewer", "admin"])
@run
async def test_a_status_shows_their_details_from_reviewers_upwards(role: Role) -> None:
    async with house() as h:
        found = await h.engine.upkeep.status(Principal("alice", "local", role, ("*",)))
        assert ("stores" in found) is (role in ("reviewer", "admin"))


@run
async def test_no_tenant_is_told_another_ones_words() -> None:
    async with house() as h:
        h.copies[0].refuses = "merger"  # and says so
        await h.engine.remember(
            Principal("alice", "acme", "writer", ("*",)), Draft("a", "semantic", "the merger price")
        )
        await h.outbox.join()
        bob = Principal("bob", "other", "admin", ("*",))
        shown = [await h.engine.health(), await h.engine.upkeep.status(bob), await h.engine.stores.list(bob)]
        assert "RuntimeError" in repr(shown[0])
        assert "merger" not in repr(shown)
        assert "merger" not in repr(await h.primary.records("acme", kind_of("copy")))
