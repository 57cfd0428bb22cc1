"""What fills places in a sequence takes as many as it is told, and leaves nothing that anybody could read."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.transfer import sequence_filler
from commonplace.engine.transfer.sequence_filler import SequenceFiller
from commonplace.stores.base import Reach
from commonplace.testing.subject import Subject

TENANT = "other"


def take(subject: Subject, run: Any, filler: SequenceFiller, *counts: int) -> int:
    """How many places were taken, in a unit of work for each count."""
    before = run(subject.store.sequence(TENANT))
    for count in counts:
        run(subject.store.transact(TENANT, lambda tx, count=count: filler.take_places(tx, "agent", count)))
    return int(run(subject.store.sequence(TENANT))) - before


@pytest.mark.parametrize("counts", [(2,), (5,), (1, 1), (3, 4), (1, 5, 1)])
@pytest.mark.parametrize("most", [2, 500])
def test_it_takes_as_many_places_as_it_is_told_and_is_gone_with_the_last(
    subject: Subject, run: Any, counts: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_filler, "_MOST_VERSIONS", most)
    filler = SequenceFiller(sum(counts))
    assert take(subject, run, filler, *counts) == sum(counts)
    assert (filler.left, filler.id) == (0, "")
    assert run(subject.store.scan(Reach(TENANT, ("agent",)))).memories == []


def test_what_was_erased_at_the_source_gives_the_first_places(subject: Subject, run: Any) -> None:
    ids = ["01977947-3800-729e-a907-e5e26cc71904", "01977947-3800-729e-a907-e5e26cc71905"]
    filler = SequenceFiller(2, erased=tuple(ids))
    assert take(subject, run, filler, 1) == 1
    assert filler.id == ids[0], "a mark of erasure is true of it"
    assert run(subject.store.history(TENANT, ids[0]))[0].content == "-"
    copied = SequenceFiller(2, gone=(ids[0],), erased=(ids[1],))
    assert take(subject, run, copied, 1) == 1
    assert run(subject.store.history(TENANT, ids[0])) == []
    assert (copied.left, copied.id) == (1, "")


def test_it_goes_on_where_another_one_had_come_to(subject: Subject, run: Any) -> None:
    filler, stopped = SequenceFiller(4), SequenceFiller(4)
    assert take(subject, run, stopped, 2) == 2
    filler.become(stopped)
    assert filler == stopped
    assert take(subject, run, filler, 2) == 2
    assert filler.progress(9).value == {"seq": 9, "filler": "", "version": 0, "used": 0}
