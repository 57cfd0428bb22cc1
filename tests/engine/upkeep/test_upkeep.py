"""Looking after a store: by whom, and what a status says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from commonplace.config import RedactionConfig
from commonplace.embedders.hashing import Hashing
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.types import Draft
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden
from commonplace.wire.record import Principal


@pytest.mark.parametrize("who", [
    Principal("a", "local", "reviewer"), Principal("a", "acme", "admin"), Principal("a", "local", "admin", ("ada",)),
])  # fmt: skip
def test_only_the_operator_looks_after_the_store(subject: Subject, run: Any, who: Principal, tmp_path: Path) -> None:
    engine = subject.engine
    for work in (engine.upkeep.doctor(who), engine.upkeep.backup(who, tmp_path / "b.db"), engine.upkeep.compact(who),
                 engine.upkeep.reindex(who, Hashing())):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)
    assert not (tmp_path / "b.db").exists()


def test_status_counts_the_reviews_its_reader_may_see(subject: Subject, run: Any) -> None:
    run(subject.engine.remember(WHO, Draft("agent", "semantic", "x"), approval={"content": "x"}))
    for who, count in ((WHO, 1), (Principal("a", role="reviewer"), 1), (Principal("a", role="reader"), 0)):
        assert run(subject.engine.upkeep.status(who))["pending_reviews"] == count


def open_engine(mode: str, store: Any = None) -> Engine:
    clock = FakeClock()
    settings = Settings(redaction=RedactionConfig(mode=mode))
    return asyncio.run(Engine.open(store or InMemory(clock), Hashing(), clock=clock, settings=settings))


def test_status_says_whether_redaction_is_on(subject: Subject, run: Any) -> None:
    assert run(subject.engine.upkeep.status(WHO))["redaction"] == {"mode": "redact", "registered": 0}
    off = open_engine("off")
    assert asyncio.run(off.upkeep.status(WHO))["redaction"]["mode"] == "off"
