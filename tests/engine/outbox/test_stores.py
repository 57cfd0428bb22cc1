from __future__ import annotations

import pytest
from replica_house import house, run

from commonplace.testing.subject import WHO
from commonplace.wire.errors import Forbidden, NotFound
from commonplace.wire.record import Principal


@run
async def test_they_are_listed_with_what_waits_for_them() -> None:
    async with house(copies=2) as h:
        h.copies[0].down = "no route"
        await h.remember("words")
        await h.outbox.join()
        h.clock.advance(4_000)
        primary, first, second = await h.engine.stores.list(WHO)
        assert (primary["name"], primary["role"], primary["status"]) == ("memory", "primary", "ok")
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
