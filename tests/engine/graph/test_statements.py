"""What a statement may say and what becomes of it: its names, its secrets, and what the ledger says of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commonplace.config import RedactionConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import SecretLeakage, ValidationError
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
    assert secret.encode() not in (tmp_path / "commonplace.db").read_bytes()


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
