"""A history is read once, however many batches of a migration ask for it, and memory holds no more than is said."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.transfer import migration, source_histories
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.source_histories import SourceHistories
from commonplace.testing.subject import WHO, Subject


class Counted:
    """The store, and whose histories it was asked for."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        real = store.history

        async def history(tenant: str, id: str) -> Any:
            self.asked.append(id)
            return await real(tenant, id)

        monkeypatch.setattr(store, "history", history, raising=False)


def test_a_history_is_not_read_anew_for_every_batch_of_its_versions(
    subject: Subject, run: Any, target: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "_BATCH", 2)
    other, wait = target
    id = run(subject.remember("version 1"))
    for n in range(2, 31):
        run(subject.update(id, content=f"version {n}"))
    counted = Counted(subject.store, monkeypatch)
    wait(Migration(WHO, subject.store, other.store, HashingEmbedder()).run())
    assert [each.content for each in wait(other.store.history("local", id))][-1] == "version 30"
    assert len(counted.asked) == 3  # to plan it, to copy and to compare


def test_what_was_asked_for_longest_ago_makes_room(subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [run(subject.remember(f"note {n}")) for n in range(3)]
    counted = Counted(subject.store, monkeypatch)
    monkeypatch.setattr(source_histories, "_HELD_CHARS", 2_100)  # of two with their texts
    histories = SourceHistories(subject.store)
    for n in (0, 1, 0, 2, 0, 1):
        (held,) = run(histories.of("local", ids[n])).values()
        assert held.content == f"note {n}"
    assert counted.asked == [ids[n] for n in (0, 1, 2, 1)]
