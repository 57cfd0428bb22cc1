"""After closing, no erased byte is left in any file, whoever else had the store open."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.types import Draft
from commonplace.stores.base import Entry, Reach
from commonplace.stores.fixed_point import to_fixed
from commonplace.stores.sqlite import SqliteStore
from commonplace.stores.text import terms
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "commonplace.db"


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


MARK = "zyxwvut-erase-me-7391"


def files_with_mark(folder: Path, traces: tuple[bytes, ...]) -> list[str]:
    files = everything_in(folder).items()
    return [name for name, data in files if any(trace in data for trace in (MARK.encode(), *traces))]


def remember_mark(subject: Subject, run: Any) -> tuple[str, tuple[bytes, ...]]:
    """Its id, and what beside the mark must not be left of it: its vector and the tokens of two versions."""
    content = f"{MARK} is the secret"
    id = run(subject.remember(content, aliases=[MARK], metadata={"k": MARK}, tags=[MARK], title=MARK))
    run(subject.update(id, tags=["x"]))
    vector = HashingEmbedder().embed([f"{MARK}\n{content}"])
    tokens = [np.random.default_rng(seed).integers(0, 256, (9, 48), np.uint8) for seed in (1, 2)]
    for own in tokens:
        run(subject.store.put([Entry(run(subject.get(id)), vector, terms(content), 1, [own])]))
    return id, (to_fixed(vector).tobytes(), *(own.tobytes() for own in tokens))


def test_no_erased_byte_is_left_after_closing(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember_all([Draft("agent", "semantic", f"filler {i} " * 30) for i in range(150)]))
        id, traces = remember_mark(subject, run)
        run(subject.remember_all([Draft("agent", "semantic", f"more {i} " * 30) for i in range(150)]))
        run(subject.recall(MARK))
        assert all(any(trace in data for data in everything_in(path.parent).values()) for trace in traces)
        run(subject.forget(id, hard_delete=True))
        assert run(subject.recall(MARK, filter={"id": id})) == []
    assert files_with_mark(path.parent, traces) == []


def test_nor_when_it_lay_in_a_segment_long_since(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        id, traces = remember_mark(subject, run)
        for start in range(0, 1200, 400):
            run(subject.remember_all([Draft("agent", "semantic", f"filler {start + i}") for i in range(400)]))
            run(subject.recall("filler"))
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.recall(MARK))
        run(subject.forget(id, hard_delete=True))
    assert files_with_mark(path.parent, traces) == []


def test_nor_when_another_store_had_it_open(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        id, traces = remember_mark(subject, run)
        run(subject.remember_all([Draft("agent", "semantic", f"filler {i}") for i in range(150)]))
        other = SqliteStore(path, clock)
        assert len(run(other.get("local", [id]))) == 1
        assert run(other.scan(Reach("local", ("agent",)))).memories
        run(subject.forget(id, hard_delete=True))
        assert run(other.get("local", [id])) == []
    with asyncio.Runner() as runner:
        runner.run(other.close())
    assert files_with_mark(path.parent, traces) == []


_OTHER = """
import asyncio, sys
from pathlib import Path
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.types import Query
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Principal

async def main():
    engine = await Engine.open(SqliteStore(Path(sys.argv[1])), HashingEmbedder())
    for line in sys.stdin:
        found = await engine.recall(Principal(), Query(("agent",), line.strip(), k=50))
        print(" ".join(hit.memory.id for hit in found.hits), flush=True)
    await engine.close()

asyncio.run(main())
"""


def test_another_process_sees_each_change_at_its_next_read_and_leaves_no_erased_byte(path: Path) -> None:
    clock = FakeClock()
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("a harmless fact"))
        reader = subprocess.Popen(
            [sys.executable, "-c", _OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert reader.stdin is not None
        assert reader.stdout is not None

        def ask() -> list[str]:
            print(MARK, file=reader.stdin, flush=True)
            return reader.stdout.readline().split()

        assert len(ask()) == 1
        id, traces = remember_mark(subject, run)
        assert ask()[0] == id
        run(subject.forget(id))
        assert id not in ask()
        assert len(ask()) == 1
        run(subject.forget(id, hard_delete=True))
        assert id not in ask()
    reader.stdin.close()
    assert reader.wait(20) == 0
    reader.stdout.close()
    assert files_with_mark(path.parent, traces) == []


def test_two_stores_on_one_file_see_each_other(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (a, run):
        with_b = open_subject(SqliteStore(path, clock), clock)
        with with_b as (b, run_b):
            first = run(a.remember("written by one"))
            assert [m.id for m in run_b(b.recall("written"))] == [first]
            second = run_b(b.remember("written by the other"))
            assert {m.id for m in run(a.recall("written"))} == {first, second}
            run(a.update(second, content="rewritten by one"))
            assert run_b(b.recall("rewritten", k=1))[0].content == "rewritten by one"
            run_b(b.forget(first))
            assert [m.id for m in run(a.recall("written by one"))] == [second]
            run(a.forget(second, hard_delete=True))
            assert run_b(b.recall("rewritten")) == run_b(b.list()) == []
            assert run_b(b.store.sequence("local")) == run(a.store.sequence("local")) == 5
            assert run_b(b.engine.ledger.verify(WHO)).first_bad is None


def test_what_one_store_erased_takes_no_place_in_anothers_answers(path: Path, clock: FakeClock) -> None:
    """As it would if the other went on comparing the question with what is gone."""
    nearest = [Draft("agent", "semantic", f"the harbour report {i}", tags=["old"]) for i in range(60)]
    with open_subject(SqliteStore(path, clock), clock) as (a, run):
        run(a.remember_all(nearest))
        kept = set(run(a.remember_all([Draft("agent", "semantic", f"boats leave the harbour {i}") for i in range(3)])))
        with open_subject(SqliteStore(path, clock), clock) as (b, run_b):
            assert not kept & {m.id for m in run_b(b.recall("the harbour report", k=3))}
            run(a.forget(filter={"tags": "old"}, hard_delete=True))
            assert {m.id for m in run_b(b.recall("the harbour report", k=3))} == kept


@pytest.mark.slow
def test_nor_after_pages_were_split_joined_and_rewritten(path: Path, clock: FakeClock) -> None:
    """Rows of all sizes, changed and erased in no order, so that every kind of page is moved about."""
    dice = random.Random(3)

    def mark(i: int) -> str:
        return f"mk{i:04}zz"

    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        sizes = [dice.choice((3, 30, 400, 2500)) for _ in range(200)]
        drafts = [
            Draft("agent", "semantic", f"{mark(i)} " + "w " * size + mark(i), tags=[mark(i)], metadata={"k": mark(i)})
            for i, size in enumerate(sizes)
        ]
        ids = run(subject.remember_all(drafts))
        for i in dice.sample(range(200), 60):
            run(subject.update(ids[i], content=mark(i) + " z" * dice.choice((2, 50, 900, 3000))))
        erased = dice.sample(range(200), 100)
        for i in erased[:50]:
            run(subject.forget(ids[i], hard_delete=True))
        for i in set(range(200)) - set(erased):
            run(subject.update(ids[i], content=mark(i) + " y" * dice.choice((2, 50, 900))))
        run(subject.forget(*(ids[i] for i in erased[50:]), hard_delete=True))
    files = everything_in(path.parent)
    assert [(i, name) for i in erased for name, data in files.items() if mark(i).encode() in data] == []
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert {m.id for m in run(subject.list())} == {id for i, id in enumerate(ids) if i not in erased}
        assert run(subject.engine.ledger.verify(WHO)).first_bad is None
        assert subject.store._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


_CRASH = """
import asyncio, os, sys
from pathlib import Path
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine, Forget
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Principal

async def main():
    engine = await Engine.open(SqliteStore(Path(sys.argv[1])), HashingEmbedder())
    await engine.forget(Principal(), Forget("agent", (sys.argv[2],), hard_delete=True))
    os._exit(0)

asyncio.run(main())
"""


def test_nor_when_the_process_that_erased_it_died_at_once(path: Path, clock: FakeClock) -> None:
    """The next clean stop of anyone does what it left undone, in the segments, too."""
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        id, traces = remember_mark(subject, run)
        for start in range(0, 1500, 500):
            run(subject.remember_all([Draft("agent", "semantic", f"filler {start + i}") for i in range(500)]))
        run(subject.recall("filler"))
    subprocess.run([sys.executable, "-c", _CRASH, str(path), id], check=True, timeout=60)
    with open_subject(SqliteStore(path, clock), clock):
        pass
    assert files_with_mark(path.parent, traces) == []
