"""Runs: what one sees from its start to its end, who may use it, when it idles out, and secrets it must not keep."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest

from commonplace.config import RedactionConfig
from commonplace.engine import Engine
from commonplace.engine.core import Settings
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.runs import (
    IDLE_MS,
    MAX_SECRET_CHARS,
    MAX_SECRETS,
    RUNS,
    TOUCHED_MS,
    Run,
    check_secrets,
    kind,
)
from commonplace.engine.types import Snapshot
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Forbidden, NotFound, SecretLeakage, ValidationError
from commonplace.wire.record import Principal

SCOPE = MemoryScope("ada")
SECRETS = {"pin": "plain words only the run knows"}


def start(subject: Subject, run: Any, who: Principal = WHO, **options: Any) -> Run:
    started: Run = run(subject.engine.runs.start(who, **options))
    return started


def records(subject: Subject, run: Any) -> list[str]:
    return [record.key for record in run(subject.store.records("local", RUNS))]


@pytest.mark.parametrize(
    ("agent", "who", "may"),
    [
        ("ada", Principal("x", agents=("ada",)), True),
        ("ada", Principal("owner", agents=("bea",)), False),
        (None, Principal("owner", agents=("bea",)), True),
        (None, Principal("x", agents=("ada",)), False),
        (None, Principal("x"), True),
    ],
)
def test_to_whom_a_run_is_open(agent: str | None, who: Principal, may: bool) -> None:
    assert Run("run_x", "local", "owner", Snapshot(1, 2), 0, agent=agent).open_to(who) is may


def test_a_run_begins_with_what_is_there(subject: Subject, run: Any) -> None:
    run(subject.remember("x"))
    made = start(subject, run, ref="ada", scope=SCOPE)
    assert re.fullmatch(r"run_[0-9a-f]{32}", made.id)
    assert (made.snapshot, made.used) == (Snapshot(1, subject.clock()), subject.clock())
    assert (made.owner, made.tenant, made.ref, made.agent, made.has_secrets) == ("local", "local", "ada", "ada", False)
    assert run(subject.engine.runs.find(WHO, made.id)) == made
    assert records(subject, run) == [made.id]


def test_a_run_sees_what_was_there_when_it_began(subject: Subject, run: Any) -> None:
    id = run(subject.remember("before", "ada", project="garden"))
    made = start(subject, run)
    subject.clock.advance(5)
    run(subject.engine.update_with(WHO, "ada", id, lambda m: replace(m, content="after")))
    later = run(subject.remember("later", "ada"))
    read = subject.engine.runs.read
    assert run(read(WHO, SCOPE, id, made.snapshot)).content == "before"
    assert run(read(WHO, SCOPE, id, None)).content == "after"
    assert run(read(WHO, SCOPE, later, made.snapshot)) is None
    assert run(read(WHO, MemoryScope("ada", "zoo"), id, None)) is None
    assert run(read(WHO, MemoryScope("bea"), id, None)) is None


def test_a_run_reads_by_our_ids_alone(subject: Subject, run: Any) -> None:
    run(subject.remember("x", "ada", aliases=["note"]))
    assert run(subject.engine.runs.read(WHO, SCOPE, "note", None)) is None


@pytest.mark.parametrize("id", ["", "run_", "run_x", "run_" + "0" * 32, "run_" + "0" * 31 + "\n", "x" * 500])
def test_a_run_that_never_was_is_unknown(subject: Subject, run: Any, id: str) -> None:
    with pytest.raises(NotFound) as unknown:
        run(subject.engine.runs.find(WHO, id))
    assert unknown.value.message == f"no run {id[:80]}, or it has ended; `POST /openwop/runs` starts one"


def test_a_run_of_another_is_as_unknown_as_none(subject: Subject, run: Any) -> None:
    made = start(subject, run, scope=SCOPE)
    for who in (Principal("x", agents=("bea",)), Principal("x", "acme")):
        for work in (subject.engine.runs.find(who, made.id), subject.engine.runs.use(who, made.id),
                     subject.engine.runs.end(who, made.id)):  # fmt: skip
            with pytest.raises(NotFound):
                run(work)
    assert run(subject.engine.runs.find(WHO, made.id)) == made


def test_a_run_that_ended_leaves_nothing(subject: Subject, run: Any) -> None:
    made = start(subject, run, secrets=SECRETS)
    run(subject.engine.run_notes.add(WHO, made, "scratchpad", SCOPE, "a note"))
    run(subject.engine.runs.keep_outcome(WHO, made, {"text": "an outcome"}, ()))
    run(subject.engine.runs.end(WHO, made.id))
    with pytest.raises(NotFound):
        run(subject.engine.runs.find(WHO, made.id))
    assert records(subject, run) == []
    for part in ("", "scratchpad", "conversation", "outcome"):
        assert run(subject.store.records("local", kind(made.id, part))) == []
    with pytest.raises(SecretLeakage):
        subject.engine.runs.secrets_of(made)


def test_who_did_not_start_it_ends_it_as_a_writer_only(subject: Subject, run: Any) -> None:
    owner, reader = Principal("owner", role="reader"), Principal("other", role="reader")
    mine, theirs = start(subject, run, owner), start(subject, run, owner)
    with pytest.raises(Forbidden):
        run(subject.engine.runs.end(reader, theirs.id))
    run(subject.engine.runs.end(owner, mine.id))
    run(subject.engine.runs.end(Principal("other", role="writer"), theirs.id))


def test_a_run_idles_out_after_seven_days_without_use(subject: Subject, run: Any) -> None:
    used, idle = start(subject, run), start(subject, run)
    subject.clock.advance(IDLE_MS - 1)
    run(subject.engine.runs.use(WHO, used.id))
    subject.clock.advance(1)
    assert run(subject.engine.runs.find(WHO, used.id)).id == used.id
    with pytest.raises(NotFound):
        run(subject.engine.runs.use(WHO, idle.id))
    assert records(subject, run) == [used.id]


def test_a_use_is_written_down_once_an_hour(subject: Subject, run: Any) -> None:
    made = start(subject, run)
    began = subject.clock()

    def written() -> int:
        (record,) = run(subject.store.records("local", RUNS))
        return int(record.value["used"])

    subject.clock.advance(TOUCHED_MS - 1)
    run(subject.engine.runs.use(WHO, made.id))
    assert written() == began
    subject.clock.advance(1)
    assert run(subject.engine.runs.use(WHO, made.id)).used == began
    assert written() == subject.clock()
    assert run(subject.engine.runs.find(WHO, made.id)).used == subject.clock()


def test_a_sweep_ends_idle_runs_and_finishes_what_an_end_left(subject: Subject, run: Any) -> None:
    idle, left = start(subject, run), start(subject, run)
    run(subject.engine.run_notes.add(WHO, left, "scratchpad", SCOPE, "a note"))

    def stop_halfway(tx: Any) -> None:
        tx.drop_record(kind(left.id), "run")
        record = tx.record(RUNS, left.id)
        tx.put_record(type(record)(RUNS, left.id, {"used": tx.now + IDLE_MS, "ended": True}))

    run(subject.engine._core.transact("local", stop_halfway))
    subject.clock.advance(IDLE_MS)
    kept = start(subject, run)  # which tidies by itself
    assert records(subject, run) == [kept.id]
    assert run(subject.store.records("local", kind(left.id, "scratchpad"))) == []
    assert run(subject.engine.runs.sweep("local")) == 0
    assert run(subject.engine.runs.sweep("acme")) == 0
    with pytest.raises(NotFound):
        run(subject.engine.runs.find(WHO, idle.id))


def test_secrets_of_a_run_that_another_process_ended_are_dropped(subject: Subject, run: Any) -> None:
    made = start(subject, run, secrets=SECRETS)
    assert subject.engine.runs.secrets_of(made) is not None

    def end_elsewhere(tx: Any) -> None:
        tx.drop_record(kind(made.id), "run")
        tx.drop_record(RUNS, made.id)

    run(subject.engine._core.transact("local", end_elsewhere))
    run(subject.engine.runs.sweep("local"))
    assert subject.engine.runs._secrets == {}


def test_an_outcome_is_kept_with_its_run_and_goes_with_what_it_quotes(subject: Subject, run: Any) -> None:
    runs = subject.engine.runs
    made, id = start(subject, run), run(subject.remember("quoted"))
    assert run(runs.outcome(WHO, made)) is None
    run(runs.keep_outcome(WHO, made, {"text": "it says quoted"}, [id]))
    assert run(runs.outcome(WHO, made)) == {"text": "it says quoted"}
    run(subject.forget(id, hard_delete=True))
    assert run(runs.outcome(WHO, made)) is None
    run(runs.end(WHO, made.id))
    with pytest.raises(NotFound):
        run(runs.keep_outcome(WHO, made, {}, ()))


# secrets


def test_secrets_are_held_in_memory_and_nowhere_else(subject: Subject, run: Any) -> None:
    runs = subject.engine.runs
    made, plain = start(subject, run, secrets=SECRETS), start(subject, run)
    held = runs.secrets_of(made)
    assert held is not None
    assert subject.engine.redactor.text(f"it is {SECRETS['pin']}", held)[0] == "it is <REDACTED:pin>"
    assert (made.has_secrets, plain.has_secrets) == (True, False)
    assert runs.secrets_of(plain) is runs.secrets_of(None) is None
    assert SECRETS["pin"] not in repr(run(subject.store.records("local", kind(made.id))))


def test_a_run_that_an_earlier_version_kept_still_has_its_secrets(subject: Subject, run: Any) -> None:
    made = start(subject, run, secrets=SECRETS)
    (kept,) = run(subject.store.records("local", kind(made.id)))
    assert kept.value == {
        "id": made.id, "tenant": "local", "owner": "local", "used": made.used, "ref": None, "agent": None,
        "guarded": True, "seq": made.snapshot.seq, "at": made.snapshot.at,
    }  # fmt: skip
    assert run(subject.engine.runs.find(WHO, made.id)) == made


def test_after_a_restart_what_a_guarded_run_writes_can_no_longer_be_checked(subject: Subject, run: Any) -> None:
    made = start(subject, run, secrets=SECRETS)
    restarted = Engine(subject.engine._core)
    again = run(restarted.runs.find(WHO, made.id))
    with pytest.raises(SecretLeakage, match="gone since the server was restarted"):
        restarted.runs.secrets_of(again)


def test_a_handle_that_holds_one_of_the_secrets_is_refused(subject: Subject, run: Any) -> None:
    with pytest.raises(SecretLeakage):
        start(subject, run, ref=f"x {SECRETS['pin']}", secrets=SECRETS)
    assert records(subject, run) == []


def test_where_redaction_is_off_no_secret_could_be_kept_out() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        settings = Settings(redaction=RedactionConfig(mode="off"))
        engine = await Engine.open(InMemory(clock), clock=clock, settings=settings)
        with pytest.raises(ValidationError, match="redaction is off"):
            await engine.runs.start(WHO, secrets=SECRETS)
        assert not (await engine.runs.start(WHO)).has_secrets
        await engine.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "secrets must be an object of labels and values"),
        ("text", "secrets must be an object of labels and values"),
        ({str(n): "x" * 8 for n in range(MAX_SECRETS + 1)}, "secrets must hold at most 100, not 101"),
        ({"": "x" * 8}, "a label in secrets must be 1 to 64 of the characters"),
        ({"a b": "x" * 8}, "a label in secrets must be 1 to 64 of the characters"),
        ({"x" * 65: "x" * 8}, "a label in secrets must be 1 to 64 of the characters"),
        ({1: "x" * 8}, "a label in secrets must be 1 to 64 of the characters"),
        ({"pin": "1234567"}, "secrets.pin must be text of 8 to 65,536 characters"),
        ({"pin": "x" * 65_537}, "secrets.pin must be text of 8 to 65,536 characters"),
        ({"pin": 12345678}, "secrets.pin must be text of 8 to 65,536 characters"),
        (
            {str(n): "x" * 60_000 for n in range(5)},
            "secrets must hold at most 262,144 characters together, not 300,000",
        ),
    ],
)
def test_what_is_no_secret_is_refused_without_being_repeated(given: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_secrets(given)
    assert refused.value.message.startswith(sentence)
    assert refused.value.details["field"].startswith("secrets")
    assert "1234567" not in refused.value.message


@pytest.mark.parametrize("given", [
    {}, {"pin": "x" * 8}, {"A-z_0.9": "x" * 65_536}, {str(n): "x" * 8 for n in range(MAX_SECRETS)},
    {str(n): "x" * (MAX_SECRET_CHARS // 4) for n in range(4)},
])  # fmt: skip
def test_what_may_be_given_as_secrets(given: dict[str, str]) -> None:
    check_secrets(given)


def test_a_run_needs_a_reader(subject: Subject, run: Any) -> None:
    assert start(subject, run, Principal("r", role="reader")).owner == "r"
