"""The graph's tables: an older database gains them in place, and what is derived is derived again."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore, graph, schema
from commonplace.stores.sqlite.files import StoreFiles
from commonplace.testing.subject import WHO, FakeClock, open_subject
from commonplace.wire.errors import Conflict, NotFound, ValidationError
from commonplace.wire.record import Principal

OLD = Path(__file__).with_name("data") / "m001.db.gz"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "commonplace.db"


@pytest.fixture
def old_database(path: Path) -> Path:
    """A database as the first release of the schema left it: two plans, a note, a neighbour's, and one forgotten."""
    path.parent.mkdir()
    with gzip.open(OLD) as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


def run_sql(path: Path, sql: str) -> list[Any]:
    db = apsw.Connection(str(path))
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_a_database_without_a_graph_gains_one_in_place(old_database: Path) -> None:
    assert run_sql(old_database, "PRAGMA user_version") == [(1,)]
    before = (
        run_sql(old_database, "SELECT * FROM memories ORDER BY mid"),
        run_sql(old_database, "SELECT * FROM audit ORDER BY n"),
    )
    clock = FakeClock(1_750_000_100_000)
    with open_subject(SqliteStore(old_database, clock), clock) as (subject, run):
        listed = run(subject.list(newest_first=False))
        assert [m.content for m in listed] == ["the first plan", "the second plan", "about the first plan"]
        first, second, note = (m.id for m in listed)
        assert run(subject.engine.graph.neighbours(WHO, "agent", first, 1)) == {note: 1, second: 1}
        assert run(subject.engine.history(WHO, "agent", note))[0].content == "about the plan"
        run(subject.engine.graph.assert_fact(WHO, "agent", subject="Plan", predicate="of", object="Alice"))
        assert all(f.ok for f in run(subject.engine.upkeep.doctor(WHO, repair=False)))
    assert run_sql(old_database, "PRAGMA user_version") == [(schema.VERSION,)]
    assert run_sql(old_database, "SELECT * FROM memories ORDER BY mid") == before[0]
    assert run_sql(old_database, "SELECT * FROM audit ORDER BY n")[: len(before[1])] == before[1]
    copies = {copy.name: copy for copy in StoreFiles(old_database).before_migration()}
    assert run_sql(copies["before-m002_add_graph.db"], "PRAGMA user_version") == [(1,)]
    assert run_sql(copies["before-m002_add_graph.db"], "SELECT * FROM memories ORDER BY mid") == before[0]
    with open_subject(SqliteStore(old_database, clock), clock) as (subject, run):
        run(subject.forget(first, hard_delete=True))
    assert StoreFiles(old_database).before_migration() == []


_OPEN = """
import sys
from pathlib import Path
from commonplace.stores.sqlite import SqliteStore, files, schema

step = schema.MIGRATIONS[1]
if len(sys.argv) > 2:
    def stops(db):
        step(db)
        print("inside", flush=True)
        sys.stdin.read()

    stops.__name__ = step.__name__
    schema.MIGRATIONS = (schema.MIGRATIONS[0], stops, *schema.MIGRATIONS[2:])
else:
    print("ready", flush=True)
    sys.stdin.readline()
store = SqliteStore(Path(sys.argv[1]))
import asyncio
asyncio.run(store.close())
"""


def open_in_process(path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _OPEN, str(path), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_processes_that_open_it_at_once_all_find_it_up_to_date(old_database: Path) -> None:
    before = run_sql(old_database, "SELECT * FROM memories ORDER BY mid")
    # Large enough that copying it takes a while: that is where they would get in each other's way.
    run_sql(
        old_database,
        "CREATE TABLE ballast AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) "
        "SELECT randomblob(100000) AS x FROM n",
    )
    processes = [open_in_process(old_database) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert run_sql(old_database, "PRAGMA user_version") == [(schema.VERSION,)]
    (copy,) = StoreFiles(old_database).before_migration()
    assert run_sql(copy, "PRAGMA user_version") == [(1,)]
    assert run_sql(old_database, "SELECT * FROM memories ORDER BY mid") == run_sql(
        copy, "SELECT * FROM memories ORDER BY mid"
    )
    assert run_sql(old_database, "SELECT * FROM memories ORDER BY mid") == before


def test_a_process_killed_inside_the_step_leaves_it_to_the_next(old_database: Path) -> None:
    stopped = open_in_process(old_database, "stop")
    assert stopped.stdout is not None
    assert stopped.stdout.readline() == "inside\n"
    stopped.kill()
    stopped.communicate(timeout=60)
    assert run_sql(old_database, "PRAGMA user_version") == [(1,)]
    assert run_sql(old_database, "SELECT count(*) FROM sqlite_schema WHERE name = 'links'") == [(0,)]
    (copy,) = StoreFiles(old_database).before_migration()
    for left in (".partial", ".partial-journal"):  # as of one that was killed while it copied
        copy.with_name(copy.name + left).write_bytes(b"x" * 5000)
    clock = FakeClock(1_750_000_100_000)
    with open_subject(SqliteStore(old_database, clock), clock) as (subject, run):
        assert len(run(subject.list())) == 3
        assert all(f.ok for f in run(subject.engine.upkeep.doctor(WHO, repair=False)))
    assert StoreFiles(old_database).before_migration() == [copy]
    assert run_sql(copy, "PRAGMA integrity_check") == [("ok",)]


def test_a_new_database_leaves_no_copy_of_its_emptiness(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        run(subject.remember("x"))
    assert StoreFiles(path).before_migration() == []


def test_an_erased_statement_is_in_no_copy_either(old_database: Path) -> None:
    clock = FakeClock(1_750_000_100_000)
    with open_subject(SqliteStore(old_database, clock), clock) as (subject, run):
        run(subject.engine.graph.assert_fact(WHO, "agent", subject="Plan", predicate="of", object="Alice"))
        assert StoreFiles(old_database).before_migration() != []
        run(subject.engine.graph.erase(WHO, "agent", "Plan"))
        assert StoreFiles(old_database).before_migration() == []


def test_an_erasure_names_the_backups_that_may_still_hold_it(path: Path, clock: FakeClock, tmp_path: Path) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        for who in (WHO, Principal("walt", role="writer")):
            run(subject.engine.graph.assert_fact(WHO, "agent", subject="Plan", predicate="of", object="Alice"))
            if who is WHO:
                run(subject.engine.upkeep.backup(WHO, tmp_path / "kept.db"))
            gone = run(subject.engine.graph.erase(who, "agent", "Plan"))
            assert gone.backup_count == 1
            assert gone.backups == ([str(tmp_path / "kept.db")] if who is WHO else [])
        assert run(subject.engine.graph.erase(WHO, "agent", "Plan")).backup_count == 0


def test_links_that_went_wrong_are_found_and_derived_again(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        a = run(subject.remember("a", entity_name="Kiln"))
        b = run(subject.remember("b", entity_name="kiln", metadata={"references": [a]}))
    run_sql(path, "DELETE FROM links WHERE kind = 1; UPDATE links SET target = 'nonsense'")
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        assert run(subject.engine.graph.neighbours(WHO, "agent", a, 1)) == {}
        (found,) = [f for f in run(subject.engine.upkeep.doctor(WHO, repair=False)) if not f.ok]
        assert (found.check, found.detail) == ("links", "4 links between memories are wrong")
        (mended,) = [f for f in run(subject.engine.upkeep.doctor(WHO)) if f.repaired]
        assert (mended.check, mended.ok) == ("links", True)
        assert run(subject.engine.graph.neighbours(WHO, "agent", a, 1)) == {b: 1}
        assert all(f.ok and not f.repaired for f in run(subject.engine.upkeep.doctor(WHO)))


NAMES = st.sampled_from(("Kiln", "kiln", "Pot", " ", None))
OPERATIONS = st.sampled_from(("remember", "stage", "update", "forget", "erase", "merge", "archive", "decide"))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(OPERATIONS, NAMES, st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_whatever_happens_links_are_what_the_rows_say(steps: list[tuple[str, str | None, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = FakeClock()
        with open_subject(SqliteStore(Path(folder) / "x.db", clock), clock) as (subject, run):
            ids, staged = [run(subject.remember("first", entity_name="Kiln", aliases=["first"]))], list[str]()
            for what, name, i, j in steps:
                clock.advance(1000)
                one, other = ids[i % len(ids)], ids[j % len(ids)]
                refers: Any = {"references": [one, "first"] if i % 2 else other}
                with contextlib.suppress(Conflict, NotFound, ValidationError):
                    if what == "remember":
                        draft = {"entity_name": name, "metadata": refers, "supersedes": [other] if j % 3 == 0 else []}
                        ids.append(run(subject.remember(f"text {len(ids)}", **draft)))
                    elif what == "stage":
                        draft = Draft("agent", "semantic", "waits", entity_name=name, metadata=refers)
                        made = run(subject.engine.remember(WHO, draft, approval={"content": "x"}))
                        staged.append(made.review_id)
                        ids.append(made.id)
                    elif what == "decide" and staged:
                        run(subject.engine.reviews.decide(WHO, staged.pop(), Decision(bool(i % 2), "Alice")))
                    elif what == "update":
                        run(subject.update(one, entity_name=name, metadata=refers if j % 2 else {}))
                    elif what in ("forget", "erase"):
                        run(subject.forget(one, hard_delete=what == "erase"))
                    elif what == "merge":
                        run(subject.merge(one, other, strategy="merge_content"))
                    elif what == "archive":
                        run(subject.expire("archive", older_than_days=1))
            assert run(subject.store._readers.run(graph.count_wrong_links)) == 0


def test_statements_that_went_wrong_are_told(path: Path, clock: FakeClock) -> None:
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        for object in ("tea", "cocoa", "milk"):
            run(subject.engine.graph.assert_fact(WHO, "agent", subject="Alice", predicate="likes", object=object))
            clock.advance(1000)
        assert all(f.ok for f in run(subject.engine.upkeep.doctor(WHO)))
    run_sql(path, "UPDATE triples SET valid_to = NULL WHERE object = 'tea'")
    run_sql(path, "UPDATE triples SET id = 'x' WHERE object = 'cocoa'")
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        wrong = {f.check: f.detail for f in run(subject.engine.upkeep.doctor(WHO)) if not f.ok}
    assert "has another valid_to" in wrong.pop("audit of local")
    assert wrong == {
        "statements": "2 statements hold while another of their subject and predicate does",
        "audit of statements": "1 statements have no audit entry",
    }


def test_every_lookup_of_the_graph_goes_through_an_index(path: Path, clock: FakeClock) -> None:
    plans: list[str] = []
    with open_subject(SqliteStore(path, clock), clock) as (subject, run):
        a = run(subject.remember("a", entity_name="Kiln", aliases=["alias-a"]))
        run(subject.remember("b", entity_name="kiln", metadata={"references": [a]}))
        run(subject.engine.graph.assert_fact(WHO, "agent", subject="Kiln", predicate="is", object="hot"))
        seen: list[tuple[str, Any]] = []

        def trace(cursor: apsw.Cursor, sql: str, values: Any) -> bool:
            seen.append((sql, values))
            return True

        for db in subject.store._readers._all:
            db.exec_trace = trace
        subject.store._readers._threads._threads.most = 1
        run(subject.engine.graph.neighbours(WHO, "agent", a, 2))
        run(subject.engine.graph.query(WHO, "agent", "Kiln"))
        run(subject.engine.graph.path(WHO, "agent", "hot", "Kiln"))
        looked = [(sql, values) for sql, values in seen if " links" in sql or " triples" in sql]
        assert looked
        for db in subject.store._readers._all:
            db.exec_trace = None
        for sql, values in looked:
            plan = run_sql_with(path, f"EXPLAIN QUERY PLAN {sql}", values)
            plans += [step for step in plan if "SCAN" in step and "SCAN l" not in step and "(subquery" not in step]
    assert plans == []


def run_sql_with(path: Path, sql: str, values: Any) -> list[str]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [str(row[3]) for row in db.execute(sql, values)]
    finally:
        db.close()
