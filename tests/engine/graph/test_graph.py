"""Statements: what is refused, who may make them, what the ledger keeps, and one line in time whoever writes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from server_process import environment
from tampering import traces

from commonplace.config import RedactionConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.sdk import Memory
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock, Subject, open_subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Forbidden, NotFound, SecretLeakage, ValidationError
from commonplace.wire.record import MAX_TERM_CHARS, Principal
from commonplace.wire.times import LAST_INSTANT

RANDOM = "q7" + "".join(Random(3).choices("kLm4TzR8vW2xB9", k=14))  # as an API key looks
FACT: dict[str, Any] = {"subject": "Alice", "predicate": "knows", "object": "Bob"}


@pytest.mark.parametrize(("field", "value"), [
    *((name, value) for name in ("subject", "predicate", "object", "provenance")
      for value in ("", " \t\n", "x" * (MAX_TERM_CHARS + 1), "half \ud800")),
    ("confidence", -0.1), ("confidence", 1.1), ("confidence", True), ("confidence", float("nan")),
    ("valid_from", -1), ("valid_from", LAST_INSTANT + 1), ("valid_from", 1.5), ("valid_from", True),
])  # fmt: skip
def test_what_is_no_statement_is_refused_by_name(subject: Subject, run: Any, field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        run(subject.engine.graph.assert_fact(WHO, "agent", **{**FACT, field: value}))
    assert refused.value.details == {"field": field}
    assert field in refused.value.message
    assert run(subject.engine.graph.counts(WHO, "agent"))["triples"] == 0
    assert run(subject.store.audit("local")) == []


@pytest.mark.parametrize(
    "text", ["x" * MAX_TERM_CHARS, "naïve café", "日本語", "nul\0byte", "a\nb", "'; DROP TABLE triples; --"]
)
def test_names_come_back_as_they_went(subject: Subject, run: Any, text: str) -> None:
    made = run(
        subject.engine.graph.assert_fact(
            WHO, "agent", subject=f" {text}\t", predicate=text, object=text, provenance=text
        )
    ).triple
    assert (made.subject, made.predicate, made.object, made.provenance) == (text,) * 4
    assert list(run(subject.engine.graph.query(WHO, "agent", text, predicate=text))) == [made]
    assert list(run(subject.engine.graph.query(WHO, "agent", f"  {text} "))) == [made]


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


def test_the_ledger_says_what_began_and_what_ended(subject: Subject, run: Any) -> None:
    first = run(subject.engine.graph.assert_fact(WHO, "agent", **FACT, confidence=0.5, provenance="said so")).triple
    subject.clock.advance(10)
    second = run(subject.engine.graph.assert_fact(Principal("walt"), "agent", **{**FACT, "object": "Carol"})).triple
    run(subject.engine.graph.retract(WHO, "agent", second))
    entries = run(subject.engine.ledger.entries(WHO))
    assert [(e.operation, e.agent_id, e.principal, e.seq) for e in entries] == [
        ("graph_assert", "agent", "local", 0), ("graph_assert", "agent", "walt", 0),
        ("graph_retract", "agent", "local", 0)]  # fmt: skip
    told = [[(p.memory_id, json.loads(p.payload)) for p in e.parts] for e in entries]
    opened = {**FACT, "valid_from": first.valid_from, "valid_to": None, "confidence": 0.5, "provenance": "said so"}
    assert told[0] == [(first.id, opened)]
    assert told[1][0] == (first.id, {**FACT, "valid_to": subject.clock()})
    assert told[1][1][0] == second.id
    assert run(subject.engine.ledger.verify(WHO)).first_bad is None
    run(subject.engine.graph.erase(WHO, "agent", "Alice"))
    assert "Carol" not in repr(run(subject.engine.ledger.entries(WHO)))
    assert run(subject.engine.ledger.verify(WHO)).entries == 4


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


@pytest.mark.parametrize("mode", ["redact", "reject"])
def test_a_secret_is_taken_out_of_everything_a_statement_says(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    secret = "-".join(["correct", "horse", "battery", "71"])
    monkeypatch.setenv("STAPLE", secret)
    config = RedactionConfig(mode=mode, secrets_env=("STAPLE",))

    async def tell() -> None:
        store = SqliteStore(tmp_path / "commonplace.db", clock)
        engine = await Engine.open(store, HashingEmbedder(), clock=clock, settings=Settings(redaction=config))
        told = {name: f"{name} {secret}" for name in ("subject", "predicate", "object", "provenance")}
        if mode == "reject":
            for name, text in told.items():
                with pytest.raises(SecretLeakage):
                    await engine.graph.assert_fact(WHO, "agent", **{**FACT, name: text})
        else:
            made = (await engine.graph.assert_fact(WHO, "agent", **told)).triple
            assert made.object.startswith("object <REDACTED:")
            assert (await engine.graph.counts(WHO, "agent"))["active"] == 1
        source = mint_id(clock())  # an id is none, however much it looks like a key
        assert (await engine.graph.assert_fact(WHO, "agent", **FACT, provenance=source)).triple.provenance == source
        await engine.close()

    asyncio.run(tell())
    assert traces(tmp_path, FACT["object"])
    assert traces(tmp_path, secret) == []


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
    async with Memory("crowd", data=sys.argv[1], embedder=open_embedder("hashing")) as memory:
        print("ready", flush=True)
        sys.stdin.readline()
        await asyncio.gather(*(memory.graph_assert("Alice", "is_at", f"{sys.argv[2]} {i}") for i in range(20)))

asyncio.run(main())
"""


@pytest.mark.process
def test_of_many_processes_at_once_one_statement_stands(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), str(n)], env=environment(tmp_path), stdin=subprocess.PIPE,
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


@pytest.mark.parametrize(
    ("subject", "predicate", "object"),
    [
        ("db", "password", "hunter22x"), ("db", "has_password", "swordfish"), ("db", "Password", "hunter22x"),
        ("router", "wifi password is", "hunter22x"), ("billing", "api_key", RANDOM),
        ("billing", "client-secret", RANDOM), ("the db password", "is", "hunter22x"),
        ("db_password", "=", "hunter22x"), ("db", "password", "<REDACTED:password>hunter22x"),
    ],
)  # fmt: skip
def test_a_predicate_names_what_its_object_is(
    subject: str, predicate: str, object: str, over: tuple[Subject, Any]
) -> None:
    there, run = over
    made = run(there.engine.graph.assert_fact(WHO, "agent", subject=subject, predicate=predicate, object=object))
    assert made.triple.object in ("<REDACTED:password>", "<REDACTED:secret>")
    (found,) = run(there.engine.graph.query(WHO, "agent", subject))
    assert found.object == made.triple.object
    audit = run(there.engine.ledger.entries(WHO, limit=100))
    assert object not in repr([part.payload for entry in audit for part in entry.parts])


def test_a_statement_of_a_password_is_refused_where_secrets_are() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        settings = Settings(redaction=RedactionConfig(mode="reject"))
        engine = await Engine.open(InMemory(clock), clock=clock, settings=settings)
        with pytest.raises(SecretLeakage) as refused:
            await engine.graph.assert_fact(WHO, "agent", subject="db", predicate="password", object="hunter22x")
        assert refused.value.details == {"labels": ["password"], "fields": ["object"]}
        assert await engine.graph.query(WHO, "agent", "db") == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "fact",
    [("db", "password", "required"), ("Bob", "likes", "hunter22x"), ("Bob", "is", "agent47"), ("a", "pass", "b")],
)
def test_other_statements_are_kept_as_they_are(fact: tuple[str, str, str], over: tuple[Subject, Any]) -> None:
    there, run = over
    subject, predicate, object = fact
    made = run(there.engine.graph.assert_fact(WHO, "agent", subject=subject, predicate=predicate, object=object))
    assert made.triple.object == object
