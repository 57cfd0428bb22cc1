"""What was erased is known to a transaction that began after it was acknowledged."""

from __future__ import annotations

import pytest
from replica_house import AGENT, House, house, run

from commonplace.engine import Forget
from commonplace.engine.transfer.erasures import Erasures
from commonplace.testing.subject import WHO
from commonplace.wire.errors import Unavailable


async def _erase(h: House, id: str) -> None:
    await h.engine.forget(WHO, Forget(AGENT, [id], hard_delete=True))


@run
async def test_what_is_erased_after_the_ledger_was_read_is_known_in_the_next_transaction() -> None:
    async with house() as h:
        first, later, kept = [await h.remember(text) for text in ("one", "two", "three")]
        await _erase(h, first)
        erasures = Erasures(h.engine._core, "local")
        await erasures.read()
        await _erase(h, later)
        assert await erasures.erased_among([first, later, kept]) == {first}
        held = await erasures.transact(lambda tx: {id for id in (first, later, kept) if erasures.is_erased(tx, id)})
        assert held == {first, later}


@run
async def test_only_what_comes_after_an_entry_is_asked_for() -> None:
    async with house() as h:
        first, later = [await h.remember(text) for text in ("one", "two")]
        await _erase(h, first)
        size, _ = await h.primary.audit_head("local")
        erasures = Erasures(h.engine._core, "local", size)
        await _erase(h, later)
        held = await erasures.transact(lambda tx: {id for id in (first, later) if erasures.is_erased(tx, id)})
        assert held == {later}


@run
async def test_a_ledger_that_does_not_tell_of_what_was_erased_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a standby that is behind: it is asked for what another server has written."""
    async with house() as h:
        id = await h.remember("one")
        erasures = Erasures(h.engine._core, "local")
        await erasures.read()
        await _erase(h, id)

        async def nothing_new(*_: object, **__: object) -> list[object]:
            return []

        monkeypatch.setattr(h.primary, "audit", nothing_new)
        with pytest.raises(Unavailable, match="cannot be read that far"):
            await erasures.transact(lambda tx: None)
