"""What was exported comes back whole; what is broken is named by its line, and what is here already is left alone."""

from __future__ import annotations

import codecs
import json
import re
import tracemalloc
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from odd_values import ODD, altered, places
from transfer_scenarios import WHO, export_of, exported

from commonplace.engine import Forget
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import DAY_MS, FakeClock, Subject, open_subject
from commonplace.transfer import import_file, records
from commonplace.transfer.import_file import import_export, is_export
from commonplace.transfer.report import ImportRefused
from commonplace.wire.record import Memory, Principal

Save = Callable[..., Path]
Elsewhere = tuple[Subject, Callable[[Any], Any]]


def reasons(report: Any) -> dict[str, int]:
    return dict(report.left_out.counts)


def test_export_import_export_is_the_same_to_the_byte(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    wait(other.forget(*[m.id for m in wait(other.list("bob"))], agent="bob", hard_delete=True))
    data = run(exported(filled))
    report = wait(import_export(other.engine, WHO, save(data)))
    assert dict(report.written) == {"memory": 3, "statement": 3, "palace": 2}
    assert reasons(report) == {}
    assert wait(exported(other)) == data


@pytest.mark.parametrize("older", ["the survivor", "the other"])
def test_so_it_is_where_a_merge_was_taken_back(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save, older: str
) -> None:
    """A version of the survivor went by the other's alias, which is the other's own again."""
    other, wait = elsewhere
    wait(other.forget(*[m.id for m in wait(other.list("bob"))], agent="bob", hard_delete=True))
    made = {}
    for which in ("the survivor", "the other") if older == "the survivor" else ("the other", "the survivor"):
        made[which] = run(subject.remember(which, aliases=[f"{which}'s alias"]))
        subject.clock.advance(5)
    run(subject.merge(made["the survivor"], made["the other"]))
    run(subject.engine.undo(WHO, [made["the other"]]))
    data = run(exported(subject))
    path = save(data)
    assert wait(import_export(other.engine, WHO, path)).written["memory"] == 2
    assert wait(exported(other)) == data
    again = wait(import_export(other.engine, WHO, path))
    assert (dict(again.known), reasons(again)) == ({"memory": 2}, {})
    assert wait(other.get("the other's alias")).content == "the other"
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_an_export_of_what_was_imported_names_nothing_that_is_withheld(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    hidden = run(subject.remember("a diagnosis", kind="health", aliases=["hidden-1"]))
    subject.clock.advance(5)  # it is imported first, so that the survivor cannot have its alias and notes it
    survivor = run(subject.remember("the survivor"))
    run(subject.merge(survivor, hidden))
    run(subject.engine.undo(WHO, [hidden]))
    wait(import_export(other.engine, WHO, save(run(exported(subject)))))
    rules = [{"name": "hide", "when": {"operation": ["recall"], "kind": ["health"]}, "action": "reject"}]
    reader = Principal("eve", role="reader")
    for where, go in ((subject, run), (other, wait)):
        go(where.engine.policies.replace(WHO, rules))
        data = go(exported(where, reader, agent="agent"))
        assert b"the survivor" in data
        assert b"hidden-1" not in data
        assert hidden.encode() not in data


def test_histories_times_and_counters_come_along(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    mine, theirs = run(filled.get("allergy-1")), wait(other.get("allergy-1"))
    for name in ("id", "content", "tags", "metadata", "created_at", "event_time", "version", "recalls", "confidence"):
        assert getattr(theirs, name) == getattr(mine, name), name
    assert theirs.recalls == 2
    past = wait(other.engine.history(WHO, "agent", "allergy-1"))
    assert [version.content for version in past] == [
        "Alice is allergic to peanuts",
        "Alice is allergic to peanuts and cashews",
    ]
    assert theirs.updated_at == other.clock()  # when it came here; the first time is noted
    assert theirs.provenance["original"] == {"version": 2, "updated_at": mine.updated_at}
    told = wait(other.engine.graph.history(WHO, "agent", "Alice"))
    assert [triple.object for triple in told] == ["Oslo", "Bergen"]
    assert wait(other.engine.palaces.get(WHO, "library")).description == "where the books are"


def test_it_is_found_and_the_ledger_verifies(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert [m.content for m in wait(other.recall("peanuts cashews"))][:1] == [
        "Alice is allergic to peanuts and cashews"
    ]
    verified = wait(other.engine.ledger.verify(WHO))
    assert verified.problem is None
    entries = wait(other.engine.ledger.entries(WHO, operation="import"))
    assert len(entries) == 6  # three memories and three statements


@pytest.mark.parametrize("changed_since", [False, True])
def test_the_ledger_verifies_where_something_came_demoted(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save, changed_since: bool
) -> None:
    other, wait = elsewhere
    id = run(subject.remember("Alice keeps bees", confidence=0.3))
    assert run(subject.expire("demote", confidence_below=0.5)) == [id]
    if changed_since:
        run(subject.update(id, content="Alice keeps bees and goats"))
    wait(import_export(other.engine, WHO, save(run(exported(subject)))))
    assert wait(other.get(id)).demotion == 0.25
    assert wait(other.engine.ledger.verify(WHO)).problem is None
    wait(other.store.transact("local", lambda tx: tx.demote([id], 1.0)))  # which no entry tells of
    assert "is demoted to 1.0, not 0.25" in str(wait(other.engine.ledger.verify(WHO)).problem)


def test_a_second_import_writes_nothing(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    path = save(run(exported(filled)))
    wait(import_export(other.engine, WHO, path))
    before = wait(other.store.audit_head("local")), wait(other.store.sequence("local"))
    report = wait(import_export(other.engine, WHO, path))
    assert dict(report.known) == {"memory": 3, "statement": 3, "palace": 2}
    assert dict(report.written) == {}
    assert (wait(other.store.audit_head("local")), wait(other.store.sequence("local"))) == before


def test_importing_where_it_came_from_writes_nothing(filled: Subject, run: Any, save: Save) -> None:
    path = save(run(exported(filled)))
    before = run(filled.store.audit_head("local"))
    assert dict(run(import_export(filled.engine, WHO, path)).written) == {}
    assert run(filled.store.audit_head("local")) == before


def test_what_changed_at_the_source_continues_its_history(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    filled.clock.advance(1000)
    run(filled.update(run(filled.get("allergy-1")).id, content="Alice outgrew it"))
    report = wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert (report.written["memory"], report.known["memory"]) == (1, 2)
    assert wait(other.get("allergy-1")).content == "Alice outgrew it"
    assert wait(other.get("allergy-1")).version == 3


def test_what_changed_here_stays_as_it_is_here(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    path = save(run(exported(filled)))
    wait(import_export(other.engine, WHO, path))
    wait(other.update(wait(other.get("allergy-1")).id, content="changed here"))
    report = wait(import_export(other.engine, WHO, path))
    assert reasons(report) == {}  # what the file says is all in the history here
    assert wait(other.get("allergy-1")).content == "changed here"
    run(filled.update(run(filled.get("allergy-1")).id, content="changed there"))
    report = wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert [reason for reason in reasons(report) if "says something else" in reason]
    assert wait(other.get("allergy-1")).content == "changed here"


def test_what_was_erased_here_does_not_come_back(filled: Subject, run: Any, save: Save) -> None:
    path = save(run(exported(filled)))
    id = run(filled.get("allergy-1")).id
    run(filled.forget(id, hard_delete=True))
    assert reasons(run(import_export(filled.engine, WHO, path))) == {"it was erased here": 1}
    assert run(filled.gone(id))
    report = run(import_export(filled.engine, WHO, path, restore_erased=True))
    assert report.written["memory"] == 1
    assert not run(filled.gone(id))


def test_what_was_forgotten_here_stays_forgotten(filled: Subject, run: Any, save: Save) -> None:
    path = save(run(exported(filled)))
    id = run(filled.get("allergy-1")).id
    run(filled.forget(id))
    run(import_export(filled.engine, WHO, path))
    assert run(filled.gone(id))


def test_a_dry_run_says_the_same_and_writes_nothing(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    path = save(run(exported(filled)))
    before = wait(other.store.audit_head("local"))
    foreseen = wait(import_export(other.engine, WHO, path, dry_run=True))
    assert wait(other.store.audit_head("local")) == before
    done = wait(import_export(other.engine, WHO, path))
    assert foreseen.written == done.written
    assert foreseen.dry_run
    assert not done.dry_run


def test_secrets_are_taken_out_as_everywhere(subject: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    run(subject.remember("the deploy key is KEY"))
    secret = "ghp_" + "a1B2" * 9
    data = run(exported(subject)).replace(b"KEY", secret.encode())
    report = wait(import_export(other.engine, WHO, save(data), skip_broken=True))
    assert sum(report.redacted.values()) == 1
    assert secret not in wait(other.list())[0].content


def test_rules_hold_for_what_is_imported(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    rules = [{"name": "no-food", "when": {"content": "peanuts"}, "action": "reject"}]
    wait(other.engine.policies.replace(WHO, rules))
    report = wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert [reason for reason in reasons(report) if "'no-food' refuses" in reason]
    assert report.written["memory"] == 2
    assert not [m for m in wait(other.recall("peanuts")) if "peanuts" in m.content]


@pytest.mark.parametrize(
    "who",
    [Principal("w", role="writer"), Principal("r", role="reviewer"), Principal("a", agents=("bob",))],
    ids=["writer", "reviewer", "admin of others"],
)
def test_only_an_admin_of_the_agent_brings_histories_in(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save, who: Principal
) -> None:
    other, wait = elsewhere
    report = wait(import_export(other.engine, who, save(run(exported(filled)))))
    assert dict(report.written) == {}
    assert sum(reasons(report).values()) == 8


BREAKS = [
    (1, lambda line: b"[]\n", "line 1: is not a JSON object"),
    (
        1,
        lambda line: line.replace(b'"version":1', b'"version":2'),
        "line 1: is of another version of the format than 1",
    ),
    (1, lambda line: line.replace(b"commonplace", b"other"), "line 1: is not the header of an export"),
    (2, lambda line: line[:40] + b"\n", "line 2: is not valid JSON"),
    (2, lambda line: line.replace(b"\xc3", b"\xff"), "line 2: is not UTF-8 text"),
    (2, lambda line: line.replace(b'"memory"', b'"memoir"'), "line 2: is a record of an unknown kind: 'memoir'"),
    (2, lambda line: line.replace(b'"importance":0.9', b'"importance":9'), "line 2: importance must be from 0 to 1"),
    (2, lambda line: line.replace(b'"tags":["food"]', b'"tags":[1]'), "line 2: tags must be a list of texts"),
    (2, lambda line: line.replace(b'"title"', b'"titel"'), "line 2: unknown field 'titel'"),
    (2, lambda line: line.replace(b"peanuts", b"walnuts"), "the hash of the manifest differs"),
    (2, lambda line: b"", "there are 8 lines before the manifest, which speaks of 9"),
    (-1, lambda line: b"", "the file ends without its manifest"),
    (-1, lambda line: line + b"{}\n", "line 11: there is something after the manifest"),
    (-1, lambda line: line.replace(b'"memory":3', b'"memory":4'), "the counts of the manifest differ"),
    (-1, lambda line: b'{"record":"manifest"}\n', "which speaks of None"),
    (-1, lambda line: re.sub(rb'"counts":{[^}]*}', b'"counts":[]', line), "the counts of the manifest differ"),
    (-1, lambda line: re.sub(rb'"counts":{[^}]*}', b'"counts":null', line), "the counts of the manifest differ"),
    (-1, lambda line: line[:-20], "line 10: is not valid JSON"),
    (2, lambda line: line.replace(b'"event_time":-5', b'"event_time":1' + b"0" * 30), "line 2: event_time must be"),
    (2, lambda line: line.replace(b'"recalls":2', b'"recalls":1' + b"0" * 30), "line 2: recalls must be from 0"),
]


@pytest.mark.parametrize(("number", "damage", "says"), BREAKS)
def test_a_broken_file_is_named_by_its_line_and_nothing_of_it_is_taken(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save, number: int, damage: Any, says: str
) -> None:
    other, wait = elsewhere
    lines = run(exported(filled)).splitlines(keepends=True)
    at = number if number < 0 else number - 1
    lines[at] = damage(lines[at])
    before = wait(other.store.audit_head("local"))
    with pytest.raises(ImportRefused) as refused:
        wait(import_export(other.engine, WHO, save(b"".join(lines))))
    assert says in refused.value.message
    assert "--skip-broken" in refused.value.message
    assert wait(other.store.audit_head("local")) == before


def test_the_rest_is_taken_where_that_was_chosen(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    lines = run(exported(filled)).splitlines(keepends=True)
    lines[1] = b"{\n"
    report = wait(import_export(other.engine, WHO, save(b"".join(lines)), skip_broken=True))
    assert report.written["memory"] == 2
    assert str(report.broken[0]).startswith("line 2: is not valid JSON")


@pytest.mark.parametrize("start", [b"", codecs.BOM_UTF8], ids=["plain", "saved by Windows"])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_memory_of_many_versions_is_taken_however_long_its_line(
    subject: Subject,
    run: Any,
    elsewhere: Elsewhere,
    save: Save,
    monkeypatch: pytest.MonkeyPatch,
    start: bytes,
    end: bytes,
) -> None:
    other, wait = elsewhere
    long = run(subject.remember("0" * 1000))
    for n in range(1, 10):
        run(subject.update(long, content=str(n) * 1000))
    data = start + run(exported(subject)).rstrip(b"\n") + end
    monkeypatch.setattr(import_file, "_LONGEST", 5000)
    done = wait(import_export(other.engine, WHO, save(data)))
    assert (dict(done.written), done.broken) == ({"memory": 1}, [])
    assert len(wait(other.engine.history(WHO, "agent", long))) == 10


@pytest.mark.parametrize("cut", ["manifest", "hash"])
def test_a_line_that_is_what_a_damaged_disk_left_is_passed_over(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """Such as the zeros of a file whose last blocks were never written: they may be all there is room for."""
    other, wait = elsewhere
    lines = run(exported(filled)).splitlines(keepends=True)
    monkeypatch.setattr(import_file, "_LONGEST", 1 << 20)
    lines[2] = b"\0" * (16 << 20) + b"\n"
    path = save(b"".join(lines[:-1] if cut == "manifest" else lines))
    with pytest.raises(ImportRefused, match=r"line 3: is longer than 1 MB, and the file is not whole") as refused:
        wait(import_export(other.engine, WHO, path))
    assert len(refused.value.details["broken"]) == 2
    tracemalloc.start()
    try:
        done = wait(import_export(other.engine, WHO, path, skip_broken=True))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert dict(done.written) == {"memory": 2, "statement": 3, "palace": 2}
    assert str(done.broken[0]) == "line 3: is longer than 1 MB, and the file is not whole"


@pytest.mark.parametrize("start", [b"", codecs.BOM_UTF8], ids=["plain", "saved by Windows"])
def test_its_progress_is_told_to_its_end(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save, start: bytes
) -> None:
    """Its last batch is written after all of it was read."""
    other, wait = elsewhere
    for n in range(70):
        run(subject.remember(f"fact {n}"))
    data, told = start + run(exported(subject)), list[tuple[int, int]]()
    wait(import_export(other.engine, WHO, save(data), progress=lambda done, total: told.append((done, total))))
    assert told == sorted(told)
    assert told[-1] == (len(data), len(data))
    assert told[0][0] < len(data)


def test_an_alias_that_names_another_here_is_said(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(other.remember("mine", aliases=["allergy-1"]))
    report = wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert reasons(report) == {"its other id 'allergy-1' names another memory here": 1}


def test_a_statement_of_the_same_time_stays(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(
        other.engine.graph.assert_fact(
            WHO, "agent", subject="Alice", predicate="lives_in", object="Rome", valid_from=filled.clock() - 1500
        )
    )
    report = wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    assert [reason for reason in reasons(report) if "something else is stated here of 'Alice'" in reason]
    told = wait(other.engine.graph.history(WHO, "agent", "Alice"))
    assert "Rome" in [triple.object for triple in told]


def test_a_forged_id_is_refused(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    data = run(exported(filled))
    id = json.loads(data.splitlines()[1])["id"]
    report = wait(import_export(other.engine, WHO, save(data.replace(id.encode(), b"../../x")), skip_broken=True))
    assert sum(reasons(report).values()) >= 1
    assert wait(other.gone("allergy-1"))


def test_what_one_tenant_has_another_cannot_take(filled: Subject, run: Any, save: Save) -> None:
    path = save(run(exported(filled)))
    stranger = Principal("eve", tenant="other")
    report = run(import_export(filled.engine, stranger, path))
    ours = run(filled.get("allergy-1"))
    assert ours.content == "Alice is allergic to peanuts and cashews"
    if filled.store.name != "memory":  # whose tenants share no index of ids
        assert report.written["memory"] == 0
        assert sum(reasons(report).values()) >= 3


def test_a_file_of_ours_is_known_by_its_first_bytes(filled: Subject, run: Any) -> None:
    assert is_export(run(exported(filled)))
    assert not is_export(b'[{"mapping": {}}]')


def test_erasing_afterwards_leaves_nothing(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(import_export(other.engine, WHO, save(run(exported(filled)))))
    wait(other.engine.forget(WHO, Forget("agent", ["allergy-1"], hard_delete=True)))
    assert b"peanuts" not in wait(exported(other))
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_statements_that_were_erased_here_do_not_come_back(filled: Subject, run: Any, save: Save) -> None:
    canonical = run(filled.list(filter={"entity_name": "Alice"}))[0].id
    path = save(run(exported(filled)))
    run(filled.forget(canonical, hard_delete=True))
    run(filled.engine.graph.erase(WHO, "mute", "Oslo"))
    assert len(run(filled.store.triples("local", "agent"))) == 1
    for dry_run in (True, False):
        report = run(import_export(filled.engine, WHO, path, dry_run=dry_run))
        assert report.written["statement"] == 0
        assert reasons(report)["it was erased here"] == 3  # one memory, and the two statements
    assert run(filled.store.triples("local", "mute")) == []
    assert run(import_export(filled.engine, WHO, path, restore_erased=True)).written["statement"] == 2


def test_a_statement_of_an_erased_memory_does_not_come_back(filled: Subject, run: Any, save: Save) -> None:
    """Though it was made from it elsewhere, and was never here."""
    canonical = run(filled.list(filter={"entity_name": "Alice"}))[0].id
    held = run(filled.store.triples("local", "agent"))
    (told,) = [triple for triple in held if triple.memory_id == canonical]
    run(filled.forget(canonical, hard_delete=True))
    done = run(filled.engine.imports.statement(WHO, replace(told, id=str(uuid.uuid4()))))
    assert (done.result, done.reason) == ("left_out", "it was erased here")


def test_a_value_of_any_other_kind_anywhere(filled: Subject, run: Any, elsewhere: Elsewhere, save: Save) -> None:
    """What is taken can be read and exported again; the rest is named by its line or left out with a reason."""
    other, wait = elsewhere
    head, *records, _ = run(exported(filled)).splitlines(keepends=True)
    for line in records:
        document = json.loads(line)
        lines = [head]
        for place in places(document):
            for value in ODD:
                fresh = {**document, "id": str(uuid.uuid4())} if "id" in document else document
                lines.append(json.dumps(altered(fresh, place, value)).encode() + b"\n")
        report = wait(import_export(other.engine, WHO, save(b"".join(lines)), skip_broken=True))
        noted = report.broken_count - 1 + sum(reasons(report).values())  # and that there is no manifest
        assert noted + report.written.total() + report.known.total() == len(lines) - 1
        assert noted > 0
    data = wait(exported(other))
    clock = FakeClock()
    clock.advance(86_400_000)
    with open_subject(InMemory(clock), clock) as (third, go):
        assert reasons(go(import_export(third.engine, WHO, save(data)))) == {}
        assert go(exported(third)) == data
    assert wait(other.engine.ledger.verify(WHO)).problem is None


def test_a_dry_run_under_rules_says_the_same_and_notes_nothing(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    rules = [{"name": "no-food", "when": {"content": "peanuts|Oslo|books"}, "action": "reject"}]
    wait(other.engine.policies.replace(WHO, rules))
    path = save(run(exported(filled)))
    before = wait(other.store.audit_head("local"))
    foreseen = wait(import_export(other.engine, WHO, path, dry_run=True))
    assert wait(other.store.audit_head("local")) == before
    done = wait(import_export(other.engine, WHO, path))
    assert (foreseen.written, reasons(foreseen)) == (done.written, reasons(done))
    assert set(reasons(done)) == {
        "the policy 'no-food' refuses this remember",
        "the policy 'no-food' refuses this statement",
    }
    assert len(wait(other.engine.ledger.entries(WHO, operation="policy_reject"))) > 0


ONE, TWO, THREE, FOUR = (f"01977947-3800-729e-a907-e5e26cc7190{n}" for n in range(4))


def _archived(id: str, into: str | None, **more: Any) -> Memory:
    return Memory(
        id, "", "agent", "semantic", f"fact {id[-1]}", created_at=5, updated_at=5, status="archived",
        merged_into=into, **more,
    )  # fmt: skip


def file_of(*memories: Memory) -> bytes:
    return export_of(*(records.memory_document([memory]) for memory in memories))


@pytest.mark.parametrize(
    ("into", "broken"),
    [
        ({ONE: ONE, FOUR: None}, [2]),
        ({ONE: TWO, TWO: ONE, FOUR: None}, [2, 3]),
        ({FOUR: ONE, ONE: TWO, TWO: THREE, THREE: ONE}, [3, 4, 5]),
        ({ONE: TWO, TWO: THREE, THREE: ONE, FOUR: ONE}, [2, 3, 4]),
        ({ONE: TWO, TWO: THREE, THREE: None, FOUR: THREE}, []),
        ({THREE: None, TWO: THREE, ONE: TWO, FOUR: "01977947-3800-729e-a907-e5e26cc7190a"}, []),
    ],
    ids=["itself", "two", "three after one that leads there", "three before it", "no circle", "nor this"],
)
def test_what_became_part_of_itself_is_broken(
    elsewhere: Elsewhere, save: Save, into: dict[str, str | None], broken: list[int]
) -> None:
    """Also in a circle of several: no undo could take them apart again."""
    other, wait = elsewhere
    path = save(file_of(*(_archived(id, each) for id, each in into.items())))
    if broken:
        with pytest.raises(ImportRefused, match=f"line {broken[0]}: it (says|became).* part of it"):
            wait(import_export(other.engine, WHO, path))
    for dry_run in (True, False):
        report = wait(import_export(other.engine, WHO, path, skip_broken=True, dry_run=dry_run))
        told = [each.where for each in report.broken if "part of it" in each.reason]
        assert told == [f"line {number}" for number in broken]
        assert (report.written["memory"], reasons(report)) == (len(into) - len(broken), {})
    taken = [id for line, id in enumerate(into, start=2) if line not in broken]
    assert sorted(m.id for m in wait(other.store.get("local", list(into)))) == sorted(taken)


def test_a_circle_with_what_is_here_is_left_out(elsewhere: Elsewhere, save: Save) -> None:
    other, wait = elsewhere
    wait(import_export(other.engine, WHO, save(file_of(_archived(THREE, ONE)))))
    path = save(file_of(_archived(ONE, TWO), _archived(TWO, THREE)))
    report = wait(import_export(other.engine, WHO, path))
    assert reasons(report) == {"it became part of a memory that became part of it": 1}
    assert report.written["memory"] == 1


def test_memories_that_were_merged_one_way_and_then_the_other_come_along(
    subject: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    """Each was part of the other once, and is not any more."""
    other, wait = elsewhere
    wait(other.forget(*[m.id for m in wait(other.list("bob"))], agent="bob", hard_delete=True))
    one, two = run(subject.remember("one")), run(subject.remember("two"))
    for kept, lost in ((one, two), (two, one)):
        run(subject.merge(kept, lost))
        run(subject.engine.undo(WHO, [lost]))
    data = run(exported(subject))
    assert wait(import_export(other.engine, WHO, save(data))).written["memory"] == 2
    assert wait(exported(other)) == data


def test_the_mark_that_windows_puts_before_utf_8_changes_no_hash(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    report = wait(import_export(other.engine, WHO, save(b"\xef\xbb\xbf" + run(exported(filled)))))
    assert (report.written["memory"], report.broken_count) == (3, 0)


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts(each)]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else [str(value)]


@pytest.mark.parametrize(
    "long", ["x" * 6000, ["x" * 6000], {"x" * 6000: 1}, 10**4000], ids=["text", "list", "key", "number"]
)
def test_what_is_quoted_of_a_file_is_bounded(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save, long: Any
) -> None:
    """Whatever is long, wherever it is, in what is broken and in what is left out."""
    other, wait = elsewhere
    lines = run(exported(filled)).splitlines(keepends=True)
    for number, line in enumerate(lines):
        document = json.loads(line)
        for place in places(document):
            data = b"".join(
                (*lines[:number], json.dumps(altered(document, place, long)).encode() + b"\n", *lines[number + 1 :])
            )
            report = wait(import_export(other.engine, WHO, save(data), skip_broken=True, dry_run=True))
            assert max(map(len, texts(report.document()))) <= 500, (number, place)
            if report.broken_count:
                with pytest.raises(ImportRefused) as refused:
                    wait(import_export(other.engine, WHO, save(data), dry_run=True))
                assert len(refused.value.message) < 5 * 500 + 200


@pytest.mark.parametrize("long", ["x" * 6000, 10**4000], ids=["text", "number"])
def test_what_to_do_is_still_said_of_a_long_value(filled: Subject, run: Any, save: Save, long: Any) -> None:
    head, *records, manifest = run(exported(filled)).splitlines(keepends=True)
    changed = json.dumps({**json.loads(head), "version": long}).encode() + b"\n"
    with pytest.raises(ImportRefused, match="upgrade Commonplace to import it"):
        run(import_export(filled.engine, WHO, save(b"".join((changed, *records, manifest)))))
    changed = json.dumps({**json.loads(manifest), "lines": long}).encode() + b"\n"
    with pytest.raises(ImportRefused, match=f"there are {len(records) + 1} lines before the manifest"):
        run(import_export(filled.engine, WHO, save(b"".join((head, *records, changed)))))


def dated(filled: Subject, run: Any, created_at: int) -> bytes:
    """An export whose first memory has this time in its last version."""
    _, *lines, _ = map(json.loads, run(exported(filled)).splitlines())
    lines[0]["versions"][-1]["created_at"] = created_at
    return export_of(*lines)


@pytest.mark.parametrize("ahead", [1, 253_402_300_799_999 - 2 * 10**12])
def test_what_is_dated_beyond_the_error_of_a_clock_is_broken(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save, ahead: int
) -> None:
    """The doctor would find it, and what it dated anew here could not be imported again."""
    other, wait = elsewhere
    path = save(dated(filled, run, other.clock() + 7 * DAY_MS + ahead))
    with pytest.raises(ImportRefused, match=r"line 2: created_at is .* set the clock that is wrong"):
        wait(import_export(other.engine, WHO, path))
    report = wait(import_export(other.engine, WHO, path, skip_broken=True))
    assert (report.broken_count, report.written["memory"]) == (1, 2)


def test_what_is_dated_within_the_error_of_a_clock_comes_in_as_it_is(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    other, wait = elsewhere
    wait(other.forget(*[m.id for m in wait(other.list("bob"))], agent="bob", hard_delete=True))
    data = dated(filled, run, other.clock() + 7 * DAY_MS)
    assert wait(import_export(other.engine, WHO, save(data))).written["memory"] == 3
    assert sorted(wait(exported(other)).splitlines()[1:-1]) == sorted(
        json.dumps(each, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        for each in map(json.loads, data.splitlines()[1:-1])
    )
    assert wait(import_export(other.engine, WHO, save(data))).known["memory"] == 3


def test_an_export_of_what_the_doctor_dated_anew_comes_in(
    filled: Subject, run: Any, elsewhere: Elsewhere, save: Save
) -> None:
    """Its earlier versions still have the time of the clock that was wrong."""
    other, wait = elsewhere
    _, *lines, _ = map(json.loads, run(exported(filled)).splitlines())
    last = lines[0]["versions"][-1]
    lines[0]["versions"].insert(0, {**last, "created_at": other.clock() + 8 * DAY_MS, "content": "earlier"})
    assert wait(import_export(other.engine, WHO, save(export_of(*lines)))).written["memory"] == 3


@pytest.mark.parametrize("at", range(40, 90, 7))
def test_no_part_of_a_secret_is_quoted(filled: Subject, run: Any, save: Save, at: int) -> None:
    """Half of one is not recognised, so nothing is cut before it was looked for."""
    secret = "x" * (at - 41) + " ghp_" + "x1Y2" * 9
    head, record, *others, manifest = run(exported(filled)).splitlines(keepends=True)
    wrong = [
        ({**json.loads(head), "version": secret}, record, manifest),
        (json.loads(head), {**json.loads(record), secret: 1}, manifest),
        (json.loads(head), {**json.loads(record), "record": secret}, manifest),
        (json.loads(head), record, {**json.loads(manifest), "lines": secret}),
    ]
    for document in wrong:
        first, second, last = (json.dumps(e).encode() + b"\n" if isinstance(e, dict) else e for e in document)
        with pytest.raises(ImportRefused) as refused:
            run(import_export(filled.engine, WHO, save(b"".join((first, second, *others, last)))))
        assert "ghp_" not in json.dumps(refused.value.to_wire())
        assert "REDACTED" in refused.value.message
