"""What holds for every format of another product."""

from __future__ import annotations

import itertools
import json
import re
import sys
import zipfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from foreign_files import EVERY, FILES, chatgpt_conversation, markdown, server_memory
from transfer_scenarios import WHO, exported

from commonplace.engine import Decision, Engine, Forget
from commonplace.testing.subject import DAY_MS, Subject
from commonplace.transfer import import_source as import_source_module
from commonplace.transfer.import_source import Target, detect, import_source
from commonplace.transfer.importers import importer, names
from commonplace.transfer.report import ImportRefused
from commonplace.wire.errors import ValidationError
from commonplace.wire.filters import parse
from commonplace.wire.record import Memory, Principal

HOME = Target("agent")


async def everything(subject: Subject) -> list[Memory]:
    agents = tuple(await subject.engine.agent_names(WHO))
    return (await subject.engine.list(WHO, agents, limit=1000)).memories if agents else []


def test_every_format_is_tried_here() -> None:
    assert sorted(EVERY) == names()
    for name in names():
        assert name == importer(name).NAME
        assert importer(name).TITLE


@pytest.mark.parametrize("name", EVERY)
def test_a_file_is_known_for_what_it_is(name: str, tmp_path: Path) -> None:
    assert detect(EVERY[name][0](tmp_path)) == name


def test_a_file_of_no_known_format_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"\x00\x01")
    with pytest.raises(ValidationError, match=r"x.bin is of no known format; there are commonplace, amp, chatgpt"):
        detect(path)


@pytest.mark.parametrize("name", EVERY)
def test_everything_comes_in_with_ids_and_times_and_what_does_not_is_said(
    name: str, subject: Subject, run: Any, tmp_path: Path
) -> None:
    make, memories, statements, left_out = EVERY[name]
    report = run(import_source(subject.engine, WHO, make(tmp_path), name, HOME))
    assert (report.written["memory"], report.written["statement"]) == (memories, statements)
    assert sum(report.left_out.counts.values()) == left_out, report.left_out.counts
    assert all(report.left_out.counts)
    found = run(everything(subject))
    assert len(found) == memories
    for memory in found:
        note = memory.provenance["imported"]
        assert memory.aliases == [note["id"]]
        assert note["format"] == name
        assert memory.provenance["dialect"] == "import"
        assert memory.created_at == min(note.get("created_at", subject.clock()), subject.clock())  # never ahead of now
        assert run(subject.engine.find(WHO, note["id"])).id == memory.id
    assert run(subject.engine.ledger.verify(WHO)).problem is None


def test_every_field_that_is_not_read_is_named_once_by_what_it_is_of(
    subject: Subject, run: Any, tmp_path: Path
) -> None:
    conversations = [chatgpt_conversation(1), chatgpt_conversation(2)]
    for each in conversations:
        each["unheard_of"] = 1
        for node in each["mapping"].values():
            node["unheard_of"] = 1
            message = node["message"] or {}
            for part in (message, *(message.get(name, {}) for name in ("author", "content", "metadata"))):
                part |= {"unheard_of": 1, "says_nothing": []}
            message |= {"weight": 1.0}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(conversations))
    report = run(import_source(subject.engine, WHO, path, "chatgpt", HOME))
    assert report.written["memory"] == 6
    named = {reason: what for reason, what in report.left_out.examples.items() if reason.startswith("fields of")}
    assert named.pop("fields of messages that are not read") == ["unheard_of, weight"]
    assert named == {
        f"fields of {of} that are not read": ["unheard_of"]
        for of in ("conversations", "nodes", "authors", "contents of messages", "metadata of messages")
    }


@pytest.mark.parametrize("name", EVERY)
def test_a_second_import_writes_nothing(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    make, memories, statements, left_out = EVERY[name]
    path = make(tmp_path)
    run(import_source(subject.engine, WHO, path, name, HOME))
    before = run(subject.store.audit_head("local")), run(subject.store.sequence("local"))
    subject.clock.advance(60_000)
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert (report.known["memory"], report.known["statement"]) == (memories, statements)
    assert (dict(report.written), dict(report.updated)) == ({}, {})
    assert sum(report.left_out.counts.values()) == left_out, report.left_out.counts
    assert (run(subject.store.audit_head("local")), run(subject.store.sequence("local"))) == before


@pytest.mark.parametrize("name", EVERY)
def test_its_progress_is_told_to_its_end(
    name: str, subject: Subject, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last batch is written after all of it was read."""
    monkeypatch.setattr(import_source_module, "_BATCH", 2)
    told = list[tuple[int, int]]()
    path = EVERY[name][0](tmp_path)
    run(import_source(subject.engine, WHO, path, name, HOME, progress=lambda done, total: told.append((done, total))))
    assert told == sorted(told)
    assert {total for _, total in told} == {told[-1][0]}
    assert told[0][0] < told[-1][0]


@pytest.mark.parametrize("name", EVERY)
def test_a_dry_run_foresees_it_and_writes_nothing(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = EVERY[name][0](tmp_path)
    foreseen = run(import_source(subject.engine, WHO, path, name, HOME, dry_run=True))
    assert run(subject.store.audit_head("local")) == (0, "")
    assert foreseen.written["memory"] == run(import_source(subject.engine, WHO, path, name, HOME)).written["memory"]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("hard", [False, True])
def test_what_was_forgotten_since_does_not_come_back(
    name: str, hard: bool, subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = EVERY[name][0](tmp_path)
    run(import_source(subject.engine, WHO, path, name, HOME))
    gone = run(everything(subject))[0]
    run(subject.engine.forget(WHO, Forget(gone.agent_id, [gone.id], hard_delete=hard)))
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert gone.aliases not in [memory.aliases for memory in run(everything(subject))]
    assert report.left_out.counts["it was imported before, and was forgotten or erased here since"] == 1


@pytest.mark.parametrize("approval", [False, True])
def test_what_was_forgotten_or_turned_down_does_not_come_back_weeks_later(
    subject: Subject, run: Any, tmp_path: Path, approval: bool
) -> None:
    """The keys of other writes are dropped after a week; a file is still there years later."""
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps([{"id": f"x{n}", "memory": f"Alice has secret {n}"} for n in range(3)]))
    target = Target("agent", approval=approval)
    run(import_source(subject.engine, WHO, path, "mem0", target))
    if approval:
        for review in run(subject.engine.reviews.list(WHO)):
            run(subject.engine.reviews.decide(WHO, review["id"], Decision(False, "Alice")))
    else:
        soft, hard, _ = (memory.id for memory in run(everything(subject)))
        run(subject.engine.forget(WHO, Forget("agent", [soft])))
        run(subject.engine.forget(WHO, Forget("agent", [hard], hard_delete=True)))
    before = [memory.id for memory in run(everything(subject))]
    subject.clock.advance(60 * DAY_MS)
    run(subject.engine.lifecycle.run(WHO, "expire"))
    report = run(import_source(subject.engine, WHO, path, "mem0", target))
    assert (report.written["memory"], report.updated["memory"]) == (0, 0)
    assert [memory.id for memory in run(everything(subject))] == before
    assert not run(subject.engine.reviews.list(WHO, status="pending"))


def test_a_dry_run_of_twice_as_many_statements_takes_twice_as_many_steps(
    subject: Subject, run: Any, tmp_path: Path
) -> None:
    def steps(relations: int) -> int:
        found = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal found
            found += event == "line"
            return count if frame.f_code.co_filename == import_source_module.__file__ else None

        names = [f"e{n}" for n in range(relations + 1)]
        lines: list[dict[str, Any]] = [
            {"type": "entity", "name": name, "entityType": "person", "observations": []} for name in names
        ]
        lines += [
            {"type": "relation", "from": one, "to": other, "relationType": "knows"}
            for one, other in itertools.pairwise(names)
        ]
        path = tmp_path / f"{relations}.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        before = sys.gettrace()
        sys.settrace(count)
        try:
            report = run(import_source(subject.engine, WHO, path, "server_memory", HOME, dry_run=True))
        finally:
            sys.settrace(before)
        assert report.written["statement"] == relations
        return found

    assert steps(100) < 2.2 * steps(50)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("approval", [True, False])
@pytest.mark.parametrize("changed", [False, True])
def test_of_what_waits_or_was_turned_down_an_import_again_says_so(
    subject: Subject, run: Any, tmp_path: Path, changed: bool, approval: bool, dry_run: bool
) -> None:
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps([{"id": f"x{n}", "memory": f"Alice has secret {n}"} for n in range(3)]))
    run(import_source(subject.engine, WHO, path, "mem0", Target("agent", approval=True)))
    reviews = run(subject.engine.reviews.list(WHO))
    for review, approved in zip(reviews, (True, False), strict=False):
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(approved, "Alice")))
    (kept,) = run(everything(subject))
    run(subject.engine.forget(WHO, Forget("agent", [kept.id])))
    if changed:
        path.write_text(path.read_text().replace("secret", "riddle"))
    report = run(import_source(subject.engine, WHO, path, "mem0", Target("agent", approval=approval), dry_run=dry_run))
    waits = {"it was imported before, and waits for a reviewer": 1}
    assert report.left_out.counts == {
        "it was imported before, and was forgotten or erased here since": 1,
        "it was imported before, and was turned down, or not decided in time": 1,
    } | (waits if changed or not approval else {})
    assert report.staged == (0 if changed or not approval else 1)
    assert len(run(subject.engine.reviews.list(WHO))) == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_number_beyond_all_numbers_does_not_take_others_along(
    subject: Subject, run: Any, tmp_path: Path, dry_run: bool
) -> None:
    path = tmp_path / "mem0.json"
    listed = ", ".join(f'{{"id": "{n}", "memory": "text {n}", "metadata": {{"n": {n}}}}}' for n in range(5))
    path.write_text(f'[{listed}, {{"id": "odd", "memory": "odd", "metadata": {{"n": 1e999}}}}]')
    report = run(import_source(subject.engine, WHO, path, "mem0", HOME, dry_run=dry_run))
    assert report.written["memory"] == 5
    assert report.left_out.counts == {"it holds a number that is beyond all numbers": 1}


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_is_too_long_for_a_field_is_left_out_with_a_reason(
    subject: Subject, run: Any, tmp_path: Path, dry_run: bool
) -> None:
    path = tmp_path / "mem0.json"
    odd = [{"user_id": "u" * 257}, {"agent_id": "a" * 257}, {"id": "i" * 4097}]
    rows = [{"id": f"m{n}", "memory": f"fact {n}", **each} for n, each in enumerate([*odd, {"user_id": "u" * 256}])]
    path.write_text(json.dumps(rows))
    report = run(import_source(subject.engine, WHO, path, "mem0", HOME, dry_run=dry_run))
    assert set(report.left_out.counts) == {
        "user_id must have 1 to 256 characters, not 257",
        "agent_id must have 1 to 256 characters, not 257",
        "aliases must have 1 to 4,096 characters each, not 4,097",
    }
    assert report.written["memory"] == 1


def test_half_a_character_in_a_relation_is_named_and_the_rest_is_taken(
    subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "memory.jsonl"
    lines = [{"type": "entity", "name": name, "entityType": "person", "observations": ["x"]} for name in ("Al", "Bo")]
    lines += [{"type": "relation", "from": "Al", "to": to, "relationType": "knows"} for to in ("Bo", "C\ud83d")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = run(import_source(subject.engine, WHO, path, "server-memory", HOME))
    assert report.written["statement"] == 1
    assert list(report.left_out.counts) == ["it holds half of a surrogate pair, which is not text"]


def test_a_text_of_nellie_that_is_none_is_named_and_the_rest_is_taken(
    subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = EVERY["amp"][0](tmp_path)
    db = apsw.Connection(str(path))
    row = "'lesson-0', title, CAST(x'ff41' AS TEXT), tags, severity, NULL, repo, 1, 1"
    db.execute(f"INSERT INTO lessons SELECT {row} FROM lessons")
    db.close()
    with pytest.raises(ImportRefused, match="is not UTF-8 text"):
        run(import_source(subject.engine, WHO, path, "amp", HOME))
    report = run(import_source(subject.engine, WHO, path, "amp", HOME, skip_broken=True))
    assert report.written["memory"] == 2


@pytest.mark.parametrize(
    ("written", "at"),
    [("20240501", "2024-05-01"), ("2024-05-01", "2024-05-01"), ("2024", None), ("7", None), ("20241350", None)],
)
def test_a_time_in_a_note_is_what_was_written_or_stays_in_its_metadata(
    subject: Subject, run: Any, tmp_path: Path, written: str, at: str | None
) -> None:
    path = tmp_path / "note.MD"
    path.write_text(f"---\ntitle: 1984\ntags: [2024, book]\ndate: {written}\n---\nWar is peace.\n", "utf-8-sig")
    run(import_source(subject.engine, WHO, path, "markdown", HOME))
    (note,) = run(everything(subject))
    assert (note.title, note.tags) == ("1984", ["2024", "book"])
    if at is None:
        assert (note.event_time, str(note.metadata["date"])) == (None, written)
    else:
        moment = datetime.fromisoformat(f"{at}T00:00:00+00:00")
        assert (note.event_time, "date" in note.metadata) == (round(moment.timestamp() * 1000), False)


@pytest.mark.parametrize("name", EVERY)
def test_a_reader_may_not_and_a_writer_may(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = EVERY[name][0](tmp_path)
    refused = run(import_source(subject.engine, Principal("r", role="reader"), path, name, HOME))
    assert dict(refused.written) == {}
    assert run(everything(subject)) == []
    writer = Principal("w", role="writer", agents=("agent",))
    done = run(import_source(subject.engine, writer, path, name, Target("agent", all_to_agent=True)))
    assert done.written["memory"] == EVERY[name][1]
    assert {memory.provenance["principal"] for memory in run(everything(subject))} == {"w"}


@pytest.mark.parametrize("name", EVERY)
def test_where_it_goes_can_be_said(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = EVERY[name][0](tmp_path)
    run(import_source(subject.engine, WHO, path, name, Target("mine", all_to_agent=True, user="alice")))
    found = run(everything(subject))
    assert {memory.agent_id for memory in found} == {"mine"}
    assert {memory.user_id for memory in found} == {"alice"}


@pytest.mark.parametrize("name", EVERY)
def test_rules_hold_and_review_is_asked_for(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = EVERY[name][0](tmp_path)
    rules = [{"name": "look-first", "when": {"dialect": ["import"]}, "action": "review"}]
    run(subject.engine.policies.replace(WHO, rules))
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert report.staged == EVERY[name][1]
    assert run(everything(subject)) == []
    review = run(subject.engine.reviews.list(WHO))[0]
    assert review["operation"] == "remember"


def test_what_is_approved_keeps_its_time(subject: Subject, run: Any, tmp_path: Path) -> None:
    from commonplace.engine import Decision

    run(import_source(subject.engine, WHO, EVERY["mem0"][0](tmp_path), "mem0", Target("agent", approval=True)))
    for review in run(subject.engine.reviews.list(WHO)):
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(True)))
    times = {memory.content: memory.created_at for memory in run(everything(subject))}
    assert times["Loves Italian food"] == 1740823200000


def test_what_changed_at_the_source_is_brought_up_to_date(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = markdown(tmp_path)
    run(import_source(subject.engine, WHO, path, "markdown", HOME))
    (path / "tea.md").write_text("# Tea\nGreen tea at 70 degrees.\n")
    report = run(import_source(subject.engine, WHO, path, "markdown", HOME))
    assert (report.updated["memory"], report.known["memory"]) == (1, 1)
    tea = run(subject.get("tea"))
    assert (tea.version, "70 degrees" in tea.content) == (2, True)
    assert dict(run(import_source(subject.engine, WHO, path, "markdown", HOME)).updated) == {}


def test_a_change_of_metadata_or_time_alone_is_brought_up_to_date(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    said = {"id": "a", "memory": "Is a vegetarian", "created_at": "2025-03-01", "metadata": {"stars": 3}}
    for more, updated in (({}, 0), ({"metadata": {"stars": 4}}, 1), ({"metadata": {"stars": 4}}, 0),
                          ({"metadata": {"stars": 4}, "created_at": "2025-03-02"}, 1)):  # fmt: skip
        path.write_text(json.dumps([{**said, **more}]))
        assert run(import_source(subject.engine, WHO, path, "mem0", HOME)).updated["memory"] == updated
    held = run(subject.get("a"))
    assert (held.version, held.metadata, held.event_time) == (3, {"stars": 4}, 1740873600000)


def test_a_change_of_when_it_expires_is_brought_up_to_date(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    said = {"id": "a", "memory": "Is a vegetarian"}
    for date, updated, ends in (
        (None, 0, None), ("2099-01-01", 1, 4070908800000), ("2099-01-01", 0, 4070908800000),
        ("2099-01-02", 1, 4070995200000), (None, 1, None), (None, 0, None),
    ):  # fmt: skip
        path.write_text(json.dumps([{**said, "expiration_date": date}]))
        for dry_run in (True, False):
            report = run(import_source(subject.engine, WHO, path, "mem0", HOME, dry_run=dry_run))
            assert report.updated["memory"] == updated
        assert run(subject.get("a")).expires_at == ends


@pytest.mark.parametrize("changed_here", [False, True])
def test_an_import_of_an_earlier_version_has_changed_only_if_the_source_did(
    subject: Subject, run: Any, tmp_path: Path, changed_here: bool
) -> None:
    """Those noted nothing of when it expires."""
    path = tmp_path / "mem0.json"
    said = {"id": "a", "memory": "Is a vegetarian", "expiration_date": "2099-01-01"}
    path.write_text(json.dumps([said]))
    run(import_source(subject.engine, WHO, path, "mem0", HOME))
    held = run(subject.get("a"))
    note = {name: value for name, value in held.provenance["imported"].items() if name != "expires_at"}
    assert len(note) < len(held.provenance["imported"])
    run(subject.update(held.id, provenance={**held.provenance, "imported": {**note, "version": 2}}))
    if changed_here:
        run(subject.update(held.id, expires_at=None))
    report = run(import_source(subject.engine, WHO, path, "mem0", HOME))
    assert (dict(report.known), dict(report.updated), dict(report.left_out.counts)) == ({"memory": 1}, {}, {})
    path.write_text(json.dumps([{**said, "expiration_date": "2099-01-02"}]))
    report = run(import_source(subject.engine, WHO, path, "mem0", HOME))
    assert report.updated["memory"] == (0 if changed_here else 1)
    assert run(subject.get("a")).expires_at == (None if changed_here else 4070995200000)


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        ({"user_id": "bob"}, "user_id", "bob"),
        ({"user_id": None}, "user_id", None),
        ({"run_id": "r2"}, "session_id", "r2"),
        ({"run_id": None}, "session_id", None),
        ({"role": "assistant"}, "speaker", "assistant"),
    ],
)
def test_a_change_of_whose_it_is_or_who_said_it_is_brought_up_to_date(
    subject: Subject, run: Any, tmp_path: Path, more: Any, field: str, value: Any, earlier: bool
) -> None:
    path = tmp_path / "mem0.json"
    said = {"id": "a", "memory": "Is a vegetarian", "user_id": "alice", "run_id": "r1", "role": "user"}
    path.write_text(json.dumps([said]))
    run(import_source(subject.engine, WHO, path, "mem0", HOME))
    if earlier:
        forget_note(subject, run, "a", "about")
    report = run(import_source(subject.engine, WHO, path, "mem0", HOME))
    assert (dict(report.known), dict(report.updated)) == ({"memory": 1}, {})
    path.write_text(json.dumps([{**said, **more}]))
    # Of what an earlier version imported nobody knows whether the source or the caller named the user.
    unknown = earlier and more == {"user_id": None}
    for dry_run, updated in ((True, 1), (False, 1), (False, 0)):
        report = run(import_source(subject.engine, WHO, path, "mem0", HOME, dry_run=dry_run))
        assert report.updated["memory"] == (0 if unknown else updated)
    assert getattr(run(subject.get("a")), field) == ("alice" if unknown else value)


@pytest.mark.parametrize(("name", "given", "field", "value"), [
    ("trusty", {"importance": 0.2}, "importance", 0.2), ("trusty", {"source_file": "b.md"}, "source", "b.md"),
])  # fmt: skip
def test_a_change_of_importance_or_source_is_brought_up_to_date(
    subject: Subject, run: Any, tmp_path: Path, name: str, given: Any, field: str, value: Any
) -> None:
    path = tmp_path / "palace.jsonl"
    said = {"content_hash": "ab", "content": "Bees", "drawer_type": "UserFact", "importance": 0.9, "source_file": "a"}
    for more, updated in (({}, 0), (given, 1), (given, 0)):
        path.write_text(json.dumps({**said, **more}))
        assert run(import_source(subject.engine, WHO, path, name, HOME)).updated["memory"] == updated
    assert getattr(run(subject.get("ab")), field) == value


def test_a_user_whom_the_caller_named_stays_when_the_source_changes(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps([{"id": "a", "memory": "Is a vegetarian"}]))
    run(import_source(subject.engine, WHO, path, "mem0", Target("agent", user="alice")))
    assert run(import_source(subject.engine, WHO, path, "mem0", HOME)).known["memory"] == 1
    path.write_text(json.dumps([{"id": "a", "memory": "Is a vegan", "run_id": "r1"}]))
    assert run(import_source(subject.engine, WHO, path, "mem0", HOME)).updated["memory"] == 1
    held = run(subject.get("a"))
    assert (held.user_id, held.session_id, held.content) == ("alice", "r1", "Is a vegan")


@pytest.mark.parametrize("user", [None, "alice"])
@pytest.mark.parametrize("name", EVERY)
def test_what_an_earlier_version_imported_is_not_imported_again(
    name: str, user: str | None, subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = EVERY[name][0](tmp_path)
    target = Target("agent", user=user)
    run(import_source(subject.engine, WHO, path, name, target))
    for memory in run(everything(subject)):
        forget_note(subject, run, memory.aliases[0], "about")
    before = run(subject.store.audit_head("local")), run(subject.store.sequence("local"))
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert (dict(report.written), dict(report.updated)) == ({}, {})
    assert report.known["memory"] == EVERY[name][1]
    assert (run(subject.store.audit_head("local")), run(subject.store.sequence("local"))) == before


def forget_note(subject: Subject, run: Any, ref: str, name: str) -> None:
    """Makes of an imported memory one of a version that did not note this."""
    held = run(subject.engine.find(WHO, ref))
    note = {each: value for each, value in held.provenance["imported"].items() if each != name}
    assert len(note) < len(held.provenance["imported"])
    changed = {**held.provenance, "imported": {**note, "version": held.version + 1}}
    run(subject.engine.update_with(WHO, held.agent_id, held.id, lambda memory: replace(memory, provenance=changed)))


def test_a_change_does_not_pass_by_the_reviewer(subject: Subject, run: Any, tmp_path: Path) -> None:
    from commonplace.engine import Decision

    path, careful = markdown(tmp_path), Target("agent", approval=True)
    run(import_source(subject.engine, WHO, path, "markdown", careful))
    for review in run(subject.engine.reviews.list(WHO)):
        run(subject.engine.reviews.decide(WHO, review["id"], Decision(True)))
    (path / "tea.md").write_text("# Tea\nGreen tea at 70 degrees.\n")
    report = run(import_source(subject.engine, WHO, path, "markdown", careful))
    assert "80 degrees" in run(subject.get("tea")).content
    assert dict(report.updated) == {}
    assert [reason for reason in report.left_out.counts if "cannot wait for approval" in reason]
    assert run(import_source(subject.engine, WHO, path, "markdown", HOME)).updated["memory"] == 1


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_statement_does_not_pass_by_the_reviewer(subject: Subject, run: Any, tmp_path: Path, dry_run: bool) -> None:
    path, careful = EVERY["server_memory"][0](tmp_path), Target("agent", approval=True)
    report = run(import_source(subject.engine, WHO, path, "server_memory", careful, dry_run=dry_run))
    assert dict(report.written) == {}
    (left_out,) = [
        each for each in report.left_out.as_documents() if "statement of the graph cannot wait" in each["reason"]
    ]
    done = run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    assert left_out["count"] == done.written["statement"] > 0
    again = run(import_source(subject.engine, WHO, path, "server_memory", careful, dry_run=dry_run))
    assert again.known["statement"] == left_out["count"]


@pytest.mark.parametrize("name", EVERY)
def test_a_dry_run_says_what_the_run_does(name: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = EVERY[name][0](tmp_path)
    rules = [{"name": "no-bees", "when": {"content": "bees|vegetarian|peanuts|degrees|Noted|tabs"}, "action": "reject"}]
    run(subject.engine.policies.replace(WHO, rules))
    run(subject.engine.flush())

    def said(dry_run: bool) -> Any:
        report = run(import_source(subject.engine, WHO, path, name, HOME, dry_run=dry_run))
        counts = (report.written, report.known, report.updated, report.left_out.counts, report.redacted)
        return [dict(each) for each in counts], report.staged

    before = run(subject.store.sequence("local"))
    foreseen = said(True)
    assert run(subject.store.sequence("local")) == before
    assert said(False) == foreseen
    (held, *_) = run(everything(subject))
    run(subject.forget(held.id, agent=held.agent_id))
    assert said(True) == said(False)


def test_what_changed_here_too_stays(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = markdown(tmp_path)
    run(import_source(subject.engine, WHO, path, "markdown", HOME))
    run(subject.update(run(subject.get("tea")).id, content="black tea only"))
    (path / "tea.md").write_text("# Tea\nGreen tea at 70 degrees.\n")
    report = run(import_source(subject.engine, WHO, path, "markdown", HOME))
    assert report.left_out.counts["it changed at the source and here; what is here stays"] == 1
    assert run(subject.get("tea")).content == "black tea only"


def test_an_id_that_names_something_else_here_is_left_alone(subject: Subject, run: Any, tmp_path: Path) -> None:
    run(subject.remember("mine", aliases=["tea"]))
    report = run(import_source(subject.engine, WHO, markdown(tmp_path), "markdown", HOME))
    assert report.left_out.counts["its id names a memory here that did not come from there"] == 1
    assert run(subject.get("tea")).content == "mine"


def test_secrets_are_taken_out(subject: Subject, run: Any, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    path = tmp_path / "memory.jsonl"
    path.write_text(server_memory(tmp_path).read_text().replace("keeps bees", f"has the token {secret}"))
    report = run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    assert sum(report.redacted.values()) == 1
    assert not [memory for memory in run(everything(subject)) if secret in memory.content]


#: What stands in the file of each format, in a text and in something else that is kept.
SAID = {
    "chatgpt": (b"Anything with peanuts.", b'"model_slug": "gpt-4o"'),
    "claude": (b"No shoes inside", b'"file_name": "lease'),
    "server_memory": (b"keeps bees", b'"entityType":"company"'),
    "mem0": (b"Is a vegetarian", b'"category": "food"'),
    "markdown": (b"Green tea at 80 degrees.", b"rating: 4"),
    "amp": (b"Use tabs in Makefiles", b"use make"),
    "trusty": (b"Bob keeps bees", b'"room": "garden"'),
}


def with_secret(path: Path, folder: Path, said: bytes, secret: str) -> Path:
    """The same file, or folder, with the secret in the place of the last word that is said."""
    hidden = re.sub(rb"\w+(\W*)$", secret.encode() + rb"\1", said)
    if path.suffix == ".db":
        db = apsw.Connection(str(path))
        for table, column in (("lessons", "content"), ("checkpoints", "state")):
            db.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (said.decode(), hidden.decode()))
        db.close()
        return path
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data.replace(said, hidden))
        return path
    if path.is_file():
        (folder / "secret").write_bytes(path.read_bytes().replace(said, hidden))
        return folder / "secret"
    for each in path.rglob("*.*"):
        if each.is_file():
            each.write_bytes(each.read_bytes().replace(said, hidden))
    return path


@pytest.mark.parametrize("place", ["text", "field"])
@pytest.mark.parametrize("name", EVERY)
def test_no_secret_of_any_format_is_kept(name: str, place: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    path = with_secret(EVERY[name][0](tmp_path), tmp_path, SAID[name][place == "field"], secret)
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert report.written["memory"] == EVERY[name][1]
    assert sum(report.redacted.values()) >= 1
    data = run(exported(subject))
    assert secret.encode() not in data
    assert b"REDACTED" in data
    audit = run(subject.store.audit("local", limit=1000))
    assert not [part for entry in audit for part in entry.parts if secret.encode() in (part.payload or b"")]


@pytest.mark.parametrize(
    ("given", "created", "event"),
    [
        ("2025-03-01T10:00:00", 1740823200000, 1740823200000),  # without a zone: UTC
        (1740823200000, 1740823200000, 1740823200000),
        ("1740823200000", 1740823200000, 1740823200000),
        (1740823200, 1740823200000, 1740823200000),
        ("2099-01-01", None, 4070908800000),  # nothing was made in the future
        ("1950-01-01", None, -631152000000),
        ("when it rained", None, None),
    ],
)
def test_odd_times(
    given: Any, created: int | None, event: int | None, subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps([{"id": "a", "memory": "x", "created_at": given}]))
    run(import_source(subject.engine, WHO, path, "mem0", HOME))
    held = run(subject.get("a"))
    assert (held.created_at, held.event_time) == (created or subject.clock(), event)


def test_an_id_that_is_in_a_file_twice_is_taken_once(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(f"{(FILES / 'server-memory.jsonl').read_text()}\n" * 2)
    report = run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    assert report.written["memory"] == 8
    assert report.left_out.counts["the same id is in the file twice"] == 8


@pytest.mark.parametrize("field", ["content", "title", "id"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_half_a_character_is_no_text_and_the_rest_is_taken(
    subject: Subject, run: Any, tmp_path: Path, field: str, dry_run: bool
) -> None:
    conversations = [chatgpt_conversation(1), chatgpt_conversation(2)]
    asked = conversations[0]["mapping"]["c1-ask"]["message"]
    if field == "content":
        asked["content"]["parts"] = ["What should I not cook \ud83d?"]
    elif field == "id":
        asked["id"] = "m\ud83d"
    else:
        conversations[0]["title"] = "Cooking \ud83d"
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(conversations))
    report = run(import_source(subject.engine, WHO, path, "chatgpt", HOME, dry_run=dry_run))
    broken = 3 if field == "title" else 1
    assert report.left_out.counts["it holds half of a surrogate pair, which is not text"] == broken
    assert report.written["memory"] == 6 - broken


@pytest.mark.parametrize("skip", [False, True])
def test_a_broken_line_is_named_and_the_rest_is_taken_or_nothing(
    subject: Subject, run: Any, tmp_path: Path, skip: bool
) -> None:
    path = tmp_path / "memory.jsonl"
    lines = (FILES / "server-memory.jsonl").read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{oops\n", *lines[1:]]))
    if skip:
        report = run(import_source(subject.engine, WHO, path, "server_memory", HOME, skip_broken=True))
        assert report.written["memory"] == 8
        assert str(report.broken[0]).startswith("line 2: is not valid JSON")
        return
    with pytest.raises(ImportRefused, match="line 2: is not valid JSON"):
        run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    assert run(subject.store.audit_head("local")) == (0, "")


def test_what_came_in_is_found_by_its_fields(subject: Subject, run: Any, tmp_path: Path) -> None:
    run(import_source(subject.engine, WHO, EVERY["chatgpt"][0](tmp_path), "chatgpt", HOME))
    where = parse({"session_id": "conv-1", "speaker": "assistant"})
    found = run(subject.engine.list(WHO, ("agent",), where, limit=10)).memories
    assert [memory.content for memory in found] == ["Anything with peanuts."]


def test_two_tenants_import_the_same_statements(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = server_memory(tmp_path)
    for who in (WHO, Principal("bob", tenant="other")):
        first = run(import_source(subject.engine, who, path, "server_memory", HOME))
        assert first.written["statement"] > 0
        again = run(import_source(subject.engine, who, path, "server_memory", HOME))
        assert (again.known["statement"], again.written["statement"]) == (first.written["statement"], 0)
        assert run(subject.engine.ledger.verify(who)).problem is None


def test_a_statement_that_was_erased_here_is_not_imported_again(subject: Subject, run: Any, tmp_path: Path) -> None:
    path = server_memory(tmp_path)
    run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    erased = run(subject.store.triples("local", "agent"))
    for triple in erased:
        run(subject.engine.graph.erase(WHO, "agent", triple.subject))
    again = run(import_source(subject.engine, WHO, path, "server_memory", HOME))
    assert again.left_out.counts["it was erased here"] == len(erased) > 0
    back = {triple.id for triple in run(subject.store.triples("local", "agent"))}
    assert back.isdisjoint(triple.id for triple in erased)


def test_what_is_left_out_for_its_secret_is_named_without_it(subject: Subject, run: Any, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    file = tmp_path / "memory.jsonl"
    entity = {"type": "entity", "name": secret, "entityType": "person", "observations": ["likes tea"]}
    relations = [{"type": "relation", "from": secret, "to": to, "relationType": "knows"} for to in ("b", "c")]
    file.write_text("".join(json.dumps(each) + "\n" for each in (entity, *relations)), "utf-8")
    report = run(import_source(subject.engine, WHO, file, "server-memory", Target("agent")))
    shown = json.dumps(report.document())
    assert report.left_out.counts
    assert secret not in shown


#: A file of text of each format, without what marks its encoding.
TEXTS = {
    "mem0": '[{"id": "1", "memory": "Alice drinks tea"}]',
    "mem0 of one object": '{"results": [{"id": "1", "memory": "Alice drinks tea"}]}',
    "server_memory": '{"type": "entity", "name": "Alice", "entityType": "person", "observations": ["drinks tea"]}\n',
    "trusty": '{"drawer_id": "1", "content": "Alice drinks tea", "drawer_type": "note"}\n',
    "chatgpt": json.dumps([chatgpt_conversation(1)]),
    "claude": json.dumps([{"uuid": "1", "name": "tea", "chat_messages": [
        {"uuid": "2", "sender": "human", "text": "Alice drinks tea"}]}]),
    "markdown": "---\ntitle: Tea\n---\nAlice drinks tea.\n",
}  # fmt: skip


def _text_file(folder: Path, kind: str, encoding: str) -> Path:
    path = folder / ("notes.md" if kind == "markdown" else "some.json")
    path.write_text(TEXTS[kind], encoding)
    return path


@pytest.mark.parametrize("kind", TEXTS)
def test_the_mark_that_windows_puts_before_utf_8_is_no_part_of_a_file(
    kind: str, subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = _text_file(tmp_path, kind, "utf-8-sig")
    assert detect(path) == kind.partition(" ")[0]
    assert run(import_source(subject.engine, WHO, path, detect(path), HOME)).written["memory"] >= 1


@pytest.mark.parametrize("kind", TEXTS)
def test_of_utf_16_it_is_said_how_it_is_to_be_saved(kind: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    path = _text_file(tmp_path, kind, "utf-16")
    said = rf"^{path.name}: is UTF-16 text; save it as UTF-8"
    with pytest.raises(ValidationError, match=said):
        detect(path)
    with pytest.raises(ImportRefused, match=said):
        run(import_source(subject.engine, WHO, path, kind.partition(" ")[0], HOME))


def test_an_archive_of_which_a_part_is_missing_is_said_to_be_damaged(
    subject: Subject, run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "cut.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt_conversation(1)]))
    path.write_bytes(path.read_bytes()[:300])
    said = r"^cut\.zip: the archive is damaged, or a part of it is missing; fetch it again"
    with pytest.raises(ValidationError, match=said):
        detect(path)
    with pytest.raises(ImportRefused, match=said):
        run(import_source(subject.engine, WHO, path, "chatgpt", HOME))
    report = run(import_source(subject.engine, WHO, path, "chatgpt", HOME, skip_broken=True))
    assert re.match(said, str(report.broken[0]))
    assert report.broken_count == 1


@pytest.mark.parametrize("kind", [kind for kind in TEXTS if kind != "markdown"])
def test_an_object_that_says_a_thing_twice_is_broken(kind: str, subject: Subject, run: Any, tmp_path: Path) -> None:
    """JSON's readers keep the last and drop the first without a word."""
    path = tmp_path / "some.json"
    text = TEXTS[kind]
    at = text.index("{") + 1
    first = text[at : text.index(":", at)]
    path.write_text(f"{text[:at]}{first}: 0, {text[at:]}")
    with pytest.raises(ImportRefused, match=rf"it has the key {first} twice".replace('"', "'")):
        run(import_source(subject.engine, WHO, path, kind.partition(" ")[0], HOME))


def test_of_a_key_that_is_there_twice_no_part_of_a_secret_is_said(subject: Subject, run: Any, tmp_path: Path) -> None:
    path, secret = tmp_path / "some.json", "sk-ant-api03-" + "x1Y2" * 24
    path.write_text(f'[{{"id": "1", "memory": "tea", "{secret}": 1, "{secret}": 2}}]')
    with pytest.raises(ImportRefused, match="it has a key twice") as refused:
        run(import_source(subject.engine, WHO, path, "mem0", HOME))
    assert secret[:12] not in str(refused.value)


@pytest.mark.parametrize("dry_run", [True, False])
def test_why_a_statement_is_left_out_holds_no_secret(subject: Subject, run: Any, tmp_path: Path, dry_run: bool) -> None:
    path, secret = tmp_path / "memory.jsonl", "ghp_" + "x1Y2" * 9
    said = [{"type": "relation", "from": secret, "to": name, "relationType": "knows"} for name in ("Alice", "Bob")]
    path.write_text("\n".join(map(json.dumps, said)))
    report = run(import_source(subject.engine, WHO, path, "server_memory", HOME, dry_run=dry_run))
    (reason,) = (each for each in report.left_out.counts if "something else is stated here" in each)
    assert "<REDACTED:github_token>" in reason
    assert secret[:12] not in json.dumps(report.document())


@pytest.mark.parametrize("name", ["mem0", "chatgpt"])
def test_what_another_process_imports_meanwhile_is_here_already(
    name: str, subject: Subject, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not known yet when this one looked, and is not taken for erased because of it."""
    path, real = EVERY[name][0](tmp_path), Engine.remember_many

    async def after_another(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(Engine, "remember_many", real)
        await import_source(subject.engine, WHO, path, name, HOME)
        return await real(*args, **kwargs)

    monkeypatch.setattr(Engine, "remember_many", after_another)
    report = run(import_source(subject.engine, WHO, path, name, HOME))
    assert (report.written["memory"], report.known["memory"]) == (0, EVERY[name][1])
    assert not any("forgotten" in reason for reason in report.left_out.counts)
