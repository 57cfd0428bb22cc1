from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from commonplace.engine.outbox import deliveries
from commonplace.engine.outbox.deliveries import (
    LAST_RETRY_MS,
    Change,
    DeliveryReport,
    RecordingTransaction,
    retry_delay,
)
from commonplace.stores.base import Record
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import FakeClock
from commonplace.wire.record import Memory


def transact(store: InMemory, work: Any) -> Any:
    return asyncio.run(store.transact("local", work))


@pytest.mark.parametrize(
    ("attempts", "least", "most"), [(1, 500, 1500), (2, 1000, 3000), (5, 8000, 24000), (50, 150_000, 450_000)]
)
def test_delays_double_and_are_spread(attempts: int, least: int, most: int) -> None:
    delays = {retry_delay(attempts, random.Random(seed)) for seed in range(50)}
    assert least <= min(delays) < max(delays) <= most
    assert len(delays) > 20
    assert max(delays) <= 1.5 * LAST_RETRY_MS


def test_what_has_changed_since_it_was_delivered_stays() -> None:
    store = InMemory(FakeClock())
    change = Change("m", "agent", "semantic", 4, None)
    assert transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "me", 10, 100))
    assert transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (3, 0)}, 10)) == ["m"]
    assert transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (4, 0), "never": (1, 0)}, 10)) == []
    assert asyncio.run(store.records("local", "outbox/copy")) == []


def test_a_lease_keeps_others_away_until_it_runs_out() -> None:
    store = InMemory(FakeClock())
    change = Change("m", "agent", "semantic", 1, None)
    transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "me", 10, 100))
    assert transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "other", 50, 100)) == {}
    claimed = transact(store, lambda tx: deliveries.claim(tx, "copy", ["m", "none"], "other", 110, 100))
    assert {id: deliveries.order_of(value) for id, value in claimed.items()} == {"m": (1, 0)}
    assert transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "me", 120, 100)) == {}


def test_what_was_sent_after_another_took_it_over_is_sent_once_more_when_that_has_ended() -> None:
    """The other may have sent its newer state before, and would settle it as delivered."""
    store = InMemory(FakeClock())
    change = Change("m", "agent", "semantic", 1, None)
    transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "other", 10, 100))
    for owner in ("other", "me"):
        transact(store, lambda tx, owner=owner: deliveries.requeue_overtaken(tx, "copy", [change], owner, 20))
    assert transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (1, 0)}, 30)) == []
    (kept,) = asyncio.run(store.records("local", "outbox/copy"))
    assert (kept.value["due"], kept.value["owner"]) == (110, None)
    transact(store, lambda tx: deliveries.requeue_overtaken(tx, "copy", [change], "other", 120))
    transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (1, 0)}, 120))
    assert asyncio.run(store.records("local", "outbox/copy")) == []


@pytest.mark.parametrize(("owner", "until", "taken"), [("me", 110, False), (None, 0, False), ("other", 110, True)])
def test_what_failed_is_let_go_of_unless_another_has_taken_it_over(owner: Any, until: int, taken: bool) -> None:
    """Without its owner a third process would deliver it beside the one that has it in hand."""
    store = InMemory(FakeClock())
    value = {"agent": "agent", "seq": 1, "at": 10, "attempts": 0, "due": 10, "owner": owner, "until": until}
    transact(store, lambda tx: tx.put_record(Record("outbox/copy", "m", value)))
    chance = random.Random()
    transact(store, lambda tx: deliveries.postpone(tx, "copy", ["m", "never"], "down", "me", 20, chance))
    (held,) = asyncio.run(store.records("local", "outbox/copy"))
    assert (held.value == value) is taken
    if not taken:
        assert (held.value["owner"], held.value["error"], held.value["attempts"]) == (None, "down", 1)


def test_what_an_earlier_write_may_overtake_is_kept_until_it_no_longer_can() -> None:
    store = InMemory(FakeClock())
    older, newer = Change("m", "agent", "semantic", 1, None), Change("m", "agent", "semantic", 2, None)

    def held() -> dict[str, Any]:
        return asyncio.run(store.records("local", "outbox/copy"))[0].value

    transact(store, lambda tx: deliveries.record_change(tx, "copy", older, "me", 10, 100))
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": 70, "never": 70}, 10))
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": 40}, 10))
    transact(store, lambda tx: deliveries.record_change(tx, "copy", newer, "me", 20, 100))
    assert held()["doubt"] == 70
    assert transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (2, 0)}, 30)) == []
    assert (held()["due"], held()["owner"], held()["attempts"], "error" in held()) == (70, None, 0, False)
    assert transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "other", 69, 100)) == {}
    assert set(transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "other", 70, 100))) == {"m"}
    transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (2, 0)}, 70))
    assert asyncio.run(store.records("local", "outbox/copy")) == []


def test_times_from_before_the_clock_was_set_back_keep_nothing_waiting() -> None:
    """A day ahead of the clock, nothing would be delivered for a day: no erasure either."""
    store, day = InMemory(FakeClock()), 24 * 3_600_000
    change, now, lease = Change("m", "agent", "semantic", 1, None), 10, deliveries.FURTHEST_MS

    def held() -> dict[str, Any]:
        return asyncio.run(store.records("local", "outbox/copy"))[0].value

    transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "gone", day, lease))
    assert not deliveries.is_due(held(), None, day + lease - 1)
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": day + 60}, day))
    assert set(transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "me", now, lease))) == {"m"}
    transact(store, lambda tx: deliveries.postpone(tx, "copy", ["m"], "down", "me", day, random.Random()))
    assert transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "me", now, lease))
    assert "doubt" not in held()
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": day + 60}, day))
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": 70}, now))
    assert held()["doubt"] == 70
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": day + 60}, day))
    order = deliveries.order_of(held())
    transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": order}, now))
    assert asyncio.run(store.records("local", "outbox/copy")) == []


def test_under_whom_else_a_copy_may_be_is_known_until_it_is_delivered() -> None:
    """An import may bring an id back as another agent's while its erasure waits; some stores delete by agent."""
    store = InMemory(FakeClock())
    for seq, agent in ((1, "alice"), (2, "bob"), (3, "alice"), (4, "carol")):
        change = Change("m", agent, "semantic", seq, None)
        transact(store, lambda tx, c=change: deliveries.record_change(tx, "copy", c, "me", 10, 100))
    assert change.former_agents == ("alice", "bob")
    (claimed,) = transact(store, lambda tx: deliveries.claim(tx, "copy", ["m"], "me", 20, 100)).values()
    assert deliveries.agents_of(claimed) == ["carol", "alice", "bob"]
    transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (4, 0)}, 30))
    last = Change("m", "alice", "semantic", 5, None)
    transact(store, lambda tx: deliveries.record_change(tx, "copy", last, "me", 40, 100))
    assert last.former_agents == ()


def test_a_report_counts_by_store() -> None:
    report = DeliveryReport()
    report.add("copy", ["a", "b"], None)
    report.add("copy", ["c"], "down")
    assert report.of(["a", "c", "elsewhere"]) == {"copy": (1, "down")}
    assert report.of(["a", "b"]) == {"copy": (2, None)}


def test_what_waits_has_waited_since_the_first_change_of_it() -> None:
    store = InMemory(FakeClock())
    for seq, now in ((1, 10), (2, 20)):
        change = Change("m", "agent", "semantic", seq, None)
        transact(store, lambda tx, c=change, n=now: deliveries.record_change(tx, "copy", c, "me", n, 100))
    (held,) = asyncio.run(store.records("local", "outbox/copy"))
    assert (held.value["at"], held.value["seq"]) == (10, 2)


def test_why_it_failed_is_no_longer_said_once_it_is_delivered_and_only_in_doubt() -> None:
    store = InMemory(FakeClock())
    change = Change("m", "agent", "semantic", 1, None)
    transact(store, lambda tx: deliveries.record_change(tx, "copy", change, "me", 10, 100))
    transact(store, lambda tx: deliveries.note_doubt(tx, "copy", {"m": 9_000}, 10))
    transact(store, lambda tx: deliveries.postpone(tx, "copy", ["m"], "down", "me", 20, random.Random()))
    transact(store, lambda tx: deliveries.settle(tx, "copy", {"m": (1, 0)}, 30))
    (held,) = asyncio.run(store.records("local", "outbox/copy"))
    assert (held.value["due"], held.value["attempts"], "error" in held.value) == (9_000, 0, False)


@pytest.mark.parametrize(("expires_at", "current"), [(None, True), (11, True), (10, False), (9, False)])
def test_what_expires_now_is_to_be_nowhere(expires_at: int | None, current: bool) -> None:
    memory = Memory("m", "local", "agent", "semantic", "brief", created_at=1, expires_at=expires_at)
    assert deliveries.is_current(memory, 10) is current


def test_erasing_what_was_never_written_is_told_to_nobody() -> None:
    def erased(tx: Any) -> dict[str, Change]:
        recording = RecordingTransaction(tx)
        recording.erase("never")
        return recording.changes

    assert transact(InMemory(FakeClock()), erased) == {}


def test_a_report_within_another_is_part_of_it() -> None:
    outer = DeliveryReport()
    DeliveryReport(outer=outer).add("copy", ["a"], "down")
    assert outer.problems() == {"copy": "down"}
