"""What a run notes for itself: read at once, within its scope, without secrets, and gone with the run."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.redaction import Secrets
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.run_notes import RunNote
from commonplace.engine.runs.runs import BACKENDS, Run
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Forbidden, NotFound, SecretLeakage, ValidationError
from commonplace.wire.record import Principal

SCOPE = MemoryScope("ada")
GARDEN = MemoryScope("ada", "garden")


@pytest.fixture
def started(subject: Subject, run: Any) -> Run:
    made: Run = run(subject.engine.runs.start(WHO))
    return made


def add(
    subject: Subject, run: Any, of: Run, content: str = "a note", scope: MemoryScope = SCOPE, **more: Any
) -> RunNote:
    backend = more.pop("backend", "scratchpad")
    note: RunNote = run(subject.engine.run_notes.add(WHO, of, backend, scope, content, **more))
    return note


def contents(subject: Subject, run: Any, of: Run, scope: MemoryScope = SCOPE, **more: Any) -> list[str]:
    backend = more.pop("backend", "scratchpad")
    return [note.content for note in run(subject.engine.run_notes.list(WHO, of, backend, scope, **more))]


@pytest.mark.parametrize(
    ("fields", "scope", "inside"),
    [
        ({}, SCOPE, True),
        ({"namespace": "garden"}, SCOPE, True),
        ({"namespace": "garden"}, GARDEN, True),
        ({"namespace": "zoo"}, GARDEN, False),
        ({}, GARDEN, False),
        ({"agent": "bea"}, SCOPE, False),
        ({"expires_at": 11}, SCOPE, True),
        ({"expires_at": 10}, SCOPE, False),
    ],
)
def test_what_lies_within_a_scope(fields: dict[str, Any], scope: MemoryScope, inside: bool) -> None:
    note = RunNote(**{"id": "n", "agent": "ada", "namespace": None, "content": "x", **fields})
    assert note.within(scope, 10) is inside


def test_notes_are_read_at_once_newest_first(subject: Subject, run: Any, started: Run) -> None:
    for content in ("one", "two", "three"):
        subject.clock.advance(1)
        add(subject, run, started, content, tags=[content[0]])
    assert contents(subject, run, started) == ["three", "two", "one"]
    assert contents(subject, run, started, tag="t") == ["three", "two"]
    assert run(subject.engine.list(WHO, ("ada",))).memories == [], "no memory was made"


def test_each_backend_scope_and_run_has_its_own(subject: Subject, run: Any, started: Run) -> None:
    other = run(subject.engine.runs.start(WHO))
    for n, (of, backend, scope) in enumerate(
        [(started, "scratchpad", SCOPE), (started, "conversation", SCOPE), (started, "scratchpad", GARDEN),
         (started, "scratchpad", MemoryScope("bea")), (other, "scratchpad", SCOPE)]
    ):  # fmt: skip
        subject.clock.advance(1)
        add(subject, run, of, str(n), scope, backend=backend)
    assert contents(subject, run, started) == ["2", "0"], "of every namespace"
    assert contents(subject, run, started, GARDEN) == ["2"]
    assert contents(subject, run, started, backend="conversation") == ["1"]
    assert contents(subject, run, started, MemoryScope("bea")) == ["3"]
    assert contents(subject, run, other) == ["4"]
    assert BACKENDS == ("scratchpad", "conversation")


def test_one_note_is_read_and_removed_by_its_id(subject: Subject, run: Any, started: Run) -> None:
    notes = subject.engine.run_notes
    note = add(subject, run, started, tags=["x"])
    assert run(notes.get(WHO, started, "scratchpad", SCOPE, note.id)) == note
    for scope, id in ((GARDEN, note.id), (MemoryScope("bea"), note.id), (SCOPE, "x"), (SCOPE, mint_id(1))):
        assert run(notes.get(WHO, started, "scratchpad", scope, id)) is None
        assert run(notes.remove(WHO, started, "scratchpad", scope, id)) is False
    assert run(notes.remove(WHO, started, "conversation", SCOPE, note.id)) is False
    assert run(notes.remove(WHO, started, "scratchpad", SCOPE, note.id)) is True
    assert contents(subject, run, started) == []


def test_a_note_expires(subject: Subject, run: Any, started: Run) -> None:
    note = add(subject, run, started, expires_at=subject.clock() + 5)
    subject.clock.advance(4)
    assert contents(subject, run, started) == ["a note"]
    subject.clock.advance(1)
    assert contents(subject, run, started) == []
    assert run(subject.engine.run_notes.get(WHO, started, "scratchpad", SCOPE, note.id)) is None
    assert run(subject.engine.run_notes.remove(WHO, started, "scratchpad", SCOPE, note.id)) is False


@pytest.mark.parametrize(("fields", "field"), [
    ({"content": ""}, "content"), ({"content": " \n"}, "content"), ({"expires_at": 1}, "expires_at"),
])  # fmt: skip
def test_what_is_no_note_is_refused(
    subject: Subject, run: Any, started: Run, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        add(subject, run, started, **fields)
    assert refused.value.details == {"field": field}
    assert contents(subject, run, started) == []


def test_a_note_holds_no_secret_of_its_run_or_of_any_other_kind(subject: Subject, run: Any, started: Run) -> None:
    secrets = Secrets.of({"pin": "plain words only the run knows"})
    token = "ghp_" + "a1B2c3D4e5" * 4
    note = add(
        subject, run, started, f"plain words only the run knows, {token}", tags=["plain words only the run knows", "x"],
        secrets=secrets,
    )  # fmt: skip
    assert (note.content, list(note.tags)) == ("<REDACTED:pin>, <REDACTED:github_token>", ["<REDACTED:pin>", "x"])
    assert contents(subject, run, started, tag="x") == [note.content]
    with pytest.raises(SecretLeakage):
        add(subject, run, started, scope=MemoryScope(token))


def test_nothing_is_noted_in_a_run_that_is_over(subject: Subject, run: Any, started: Run) -> None:
    add(subject, run, started)
    run(subject.engine.runs.end(WHO, started.id))
    with pytest.raises(NotFound):
        add(subject, run, started)
    assert contents(subject, run, started) == []


def test_readers_read_and_writers_note(subject: Subject, run: Any, started: Run) -> None:
    note = add(subject, run, started)
    notes, reader = subject.engine.run_notes, Principal("r", role="reader", agents=("ada",))
    assert len(run(notes.list(reader, started, "scratchpad", SCOPE))) == 1
    stranger = Principal("s", role="writer", agents=("bea",))
    for work in (
        notes.add(reader, started, "scratchpad", SCOPE, "x"),
        notes.remove(reader, started, "scratchpad", SCOPE, note.id),
        notes.list(stranger, started, "scratchpad", SCOPE),
        notes.get(stranger, started, "scratchpad", SCOPE, note.id),
    ):
        with pytest.raises(Forbidden):
            run(work)
