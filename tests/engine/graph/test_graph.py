"""The graph: what cannot be asked, who may read and write, what an erasure leaves, one line in time whoever writes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from server_process import environment
from tampering import traces

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.sdk import Memory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.record import Principal

FACT: dict[str, Any] = {"subject": "Alice", "predicate": "knows", "object": "Bob"}


def test_what_cannot_be_asked_is_refused(subject: Subject, run: Any) -> None:
    for work in (
        subject.engine.graph.query(WHO, "agent", " "),
        subject.engine.graph.query(WHO, "agent", "Alice", as_of=-1),
        subject.engine.graph.query(WHO, "agent", "Alice", predicate=""),
        subject.engine.graph.path(WHO, "agent", "", "Bob"),
        subject.engine.graph.path(WHO, "agent", "Alice", "Bob", max_hops=0),
        subject.engine.graph.path(WHO, "agent", "Alice", "Bob", max_hops=7),
        subject.engine.graph.erase(WHO, "agent", " "),
        subject.engine.graph.path(WHO, "agent", "Alice", "Bob", max_hops=1.5),
        subject.engine.graph.neighbours(WHO, "agent", "x", 4),
        subject.engine.graph.neighbours(WHO, "agent", "x", "1"),
        *(
            ask(WHO, "agent", text)
            for ask in (
                subject.engine.graph.query,
                subject.engine.graph.history,
                subject.engine.graph.erase,
                subject.engine.graph.preview_erase,
            )
            for text in ("half \ud800", None, 7, b"x")
        ),
        subject.engine.graph.path(WHO, "agent", "Alice", "half \ud800"),
        subject.engine.graph.retract(WHO, "agent", ("half \ud800", "knows")),
        subject.engine.graph.neighbours(WHO, "agent", "half \ud800", 1),
    ):
        with pytest.raises(ValidationError):
            run(work)
    with pytest.raises(NotFound):
        run(subject.engine.graph.neighbours(WHO, "agent", "x", 1))
    with pytest.raises(NotFound):
        run(subject.engine.graph.retract(WHO, "agent", "x"))


def test_names_are_exact_in_statements_and_folded_on_the_way(subject: Subject, run: Any) -> None:
    run(subject.engine.graph.assert_fact(WHO, "agent", **FACT))
    run(subject.engine.graph.assert_fact(WHO, "agent", subject="ALICE", predicate="knows", object="Carol"))
    assert [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Alice"))] == ["Bob"]
    assert list(run(subject.engine.graph.query(WHO, "agent", "alice"))) == []
    assert len(run(subject.engine.graph.path(WHO, "agent", "bob", "carol"))) == 2


READER = Principal("ruth", role="reader")
ELSEWHERE = Principal("walt", role="admin", agents=("other",))


@pytest.mark.parametrize(("who", "may_read"), [(READER, True), (ELSEWHERE, False)])
def test_readers_read_writers_write_and_agents_are_walls(
    subject: Subject, run: Any, who: Principal, may_read: bool
) -> None:
    made = run(subject.engine.graph.assert_fact(WHO, "agent", **FACT)).triple
    kept = run(subject.remember("x"))
    g = subject.engine.graph
    writes = [
        g.assert_fact(who, "agent", **FACT), g.retract(who, "agent", made), g.erase(who, "agent", "Alice"),
        g.preview_erase(who, "agent", "Alice"),
    ]  # fmt: skip
    reads = [
        g.query(who, "agent", "Alice"), g.history(who, "agent", "Alice"),
        g.path(who, "agent", "Alice", "Bob"), g.counts(who, "agent"), g.neighbours(who, "agent", kept, 1),
    ]  # fmt: skip
    for work in writes + ([] if may_read else reads):
        with pytest.raises(Forbidden):
            run(work)
    for work in reads if may_read else ():
        run(work)
    assert list(run(g.query(WHO, "agent", "Alice"))) == [made]


def test_what_is_stated_changes_neither_sequence_nor_snapshots(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x"))
    before = run(subject.store.sequence("local"))
    subject.clock.advance(5)
    run(subject.engine.graph.assert_fact(WHO, "agent", **FACT))
    assert run(subject.store.sequence("local")) == run(subject.store.sequence("local", subject.clock())) == before
    assert [m.id for m in run(subject.list(as_of=subject.clock()))] == [id]
    assert run(subject.store.agents("local")) == {"agent": 1}


def test_an_agent_that_only_states_things_has_no_memories(subject: Subject, run: Any) -> None:
    run(subject.engine.graph.assert_fact(WHO, "agent", **FACT))
    assert run(subject.engine.upkeep.status(WHO))["agents"] == {}
    assert run(subject.recall("Alice")) == run(subject.list()) == []


def test_no_byte_of_an_erased_statement_is_left_after_closing(tmp_path: Path, clock: FakeClock) -> None:
    mark = "zyxwvut-erase-me-7391"
    path = tmp_path / "data" / "commonplace.db"

    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        for i in range(60):
            run(
                subject.engine.graph.assert_fact(
                    WHO, "agent", subject=f"filler {i}", predicate="is", object="there" * 20
                )
            )
            clock.advance(1)
            run(subject.engine.graph.assert_fact(WHO, "agent", subject=mark, predicate="is", object=f"{mark} {i}"))
        source = run(subject.remember("a source"))
        run(
            subject.engine.graph.assert_fact(
                WHO, "agent", subject="Bob", predicate="is", object=mark, provenance=source
            )
        )
        assert traces(path.parent, mark)
        assert len(run(subject.engine.graph.erase(WHO, "agent", mark)).ids) == 60
        run(subject.forget(source, hard_delete=True))
    assert traces(path.parent, mark) == []


_WRITER = """
import asyncio, sys
from commonplace.embedders.hashing import open_embedder
from commonplace.sdk import Memory

async def main():
    async with Memory("crowd", embedder=open_embedder("hashing")) as memory:
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(memory.graph_assert("Alice", "is_at", f"{sys.argv[1]} {i}") for i in range(20)))

asyncio.run(main())
"""


@pytest.mark.process
def test_of_many_processes_at_once_one_statement_stands(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(n)], env=environment(tmp_path), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(3)
    ]  # fmt: skip
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in writers:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err

    async def look() -> None:
        async with Memory("crowd", data=tmp_path, embedder=HashingEmbedder()) as memory:
            history = (await memory.graph_history("Alice"))["triples"]
            assert len(history) == 60
            assert len((await memory.graph_query("Alice"))["triples"]) == 1
            assert sum(t["valid_to"] is None for t in history) == 1
            real = [t for t in history if t["valid_to"] is None or t["valid_to"] > t["valid_from"]]
            assert all(a["valid_to"] == b["valid_from"] for a, b in pairwise(real))
            assert (await memory.verify_audit())["ok"]
            assert [f for f in await memory.doctor(repair=False) if not f["ok"]] == []

    asyncio.run(look())


def test_a_day_later_the_answer_for_that_day_is_the_same(subject: Subject, run: Any) -> None:
    for n, object in enumerate(("Rome", "Oslo", "Bern")):
        run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="lives_in", object=object))
        subject.clock.advance(DAY_MS)
        for day in range(n + 1):
            at = subject.clock() - (n + 1 - day) * DAY_MS
            then = [t.object for t in run(subject.engine.graph.query(WHO, "agent", "Alice", as_of=at))]
            assert then == [("Rome", "Oslo", "Bern")[day]]
