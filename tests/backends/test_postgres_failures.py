"""A wrong address, a wrong password, a server that is not there or goes away: a sentence each, and nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from free_ports import free_port
from postgres_databases import empty_database, server

from commonplace.cli import main
from commonplace.plugins import open_store
from commonplace.stores.base import Reach, Record, Transaction
from commonplace.stores.postgres import connections
from commonplace.stores.postgres.address import parse_address
from commonplace.stores.postgres.connections import Session, fault_of
from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import Subject, open_subject
from commonplace.wire.canonical import mint_id
from commonplace.wire.errors import Fault, OperatorActionRequired, Unavailable, UnusableStore, ValidationError
from commonplace.wire.record import Memory

pytestmark = pytest.mark.process

_NOWHERE = "postgresql://alice:hunter22@127.0.0.1:{}/memories"


@pytest.fixture
def subject() -> Iterator[tuple[Subject, Any]]:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as pair:
        yield pair


def refusal(url: str) -> Fault:
    with pytest.raises(Fault) as refused:
        open_store(url, FakeClock())
    return refused.value


def test_a_wrong_password_is_said_and_not_repeated() -> None:
    fault = refusal(server().url(password="hunter22"))
    assert isinstance(fault, OperatorActionRequired)
    assert "refused user 'postgres': wrong password; correct the store URL" in fault.message
    assert "hunter22" not in fault.message
    assert fault.public == "the store could not be opened"  # to whoever is no operator


def test_a_database_that_is_not_there_is_named() -> None:
    fault = refusal(server().url("nobody_made_it"))
    assert isinstance(fault, OperatorActionRequired)
    assert 'database "nobody_made_it" does not exist' in fault.message


def test_a_server_that_is_not_there_ends_the_command_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    url = _NOWHERE.format(free_port())
    assert isinstance(refusal(url), Unavailable)
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "none")
    monkeypatch.setenv("COMMONPLACE_STORE", url)
    assert main(["remember", "something"]) == 2
    said = capsys.readouterr().err
    assert "PostgreSQL at 127.0.0.1:" in said
    assert "could not be opened" in said
    assert "hunter22" not in said


def test_a_role_that_may_only_read_reads_and_is_told_why_it_cannot_write() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (owner, run):
        kept = run(owner.remember("kept"))
        name = parse_address(url).parameters["dbname"]
        role = f"only_reads_{name}"
        for grant in (
            f"CREATE ROLE {role} LOGIN PASSWORD 'geheim'",
            f"GRANT USAGE ON SCHEMA commonplace TO {role}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA commonplace TO {role}",
        ):
            server().execute(grant, name)
        with open_subject(PostgresStore(url.replace("postgres:correct%20horse", f"{role}:geheim"), clock), clock) as (
            reader,
            go,
        ):
            assert go(reader.get(kept)).content == "kept"
            with pytest.raises(OperatorActionRequired) as refused:
                go(reader.remember("more"))
            assert f"grant user {role!r} reading and writing in the schema commonplace" in refused.value.message
            assert "try again" not in refused.value.message
            assert "geheim" not in refused.value.message
        server().execute(f"DROP OWNED BY {role}", name)
        server().execute(f"DROP ROLE {role}")


def test_a_role_that_may_make_no_schema_uses_the_one_that_was_made_for_it() -> None:
    database = server().create_database()
    role = f"owns_one_{database}"
    url = server().url(database).replace("postgres:correct%20horse", f"{role}:geheim")
    server().execute("CREATE EXTENSION vector", database)
    server().execute(f"CREATE ROLE {role} LOGIN PASSWORD 'geheim'")
    try:
        assert f"have an administrator make the schema commonplace for user {role!r}" in refusal(url).message
        server().execute(f"CREATE SCHEMA commonplace AUTHORIZATION {role}", database)
        clock = FakeClock()
        with open_subject(PostgresStore(url, clock), clock) as (s, run):
            assert run(s.get(run(s.remember("kept")))).content == "kept"
    finally:
        server().drop_database(database)
        server().execute(f"DROP ROLE {role}")


def test_tables_of_a_newer_version_are_left_alone() -> None:
    with empty_database() as url:
        with psycopg.connect(url) as db:
            db.execute("INSERT INTO commonplace.migrations VALUES(999)")
        fault = refusal(url)
        assert isinstance(fault, UnusableStore)
        assert "pip install --upgrade" in fault.message


def test_stores_of_two_schemas_share_a_database() -> None:
    with empty_database() as url, asyncio.Runner() as runner:
        stores = [PostgresStore(f"{url}?schema={name}", FakeClock()) for name in ("one", "two")]
        runner.run(stores[0].adopt_embedder("x", 3))
        assert runner.run(stores[1].embedder()) is None
        for store in stores:
            runner.run(store.close())


def cut_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_connections_that_were_lost_are_made_again(subject: tuple[Subject, Any]) -> None:
    s, run = subject
    url = server().url(s.store.address.parameters["dbname"])
    for n in range(3):
        id = run(s.remember(f"note {n}"))
        cut_connections(url)
        assert run(s.get(id)).content == f"note {n}"
        cut_connections(url)
    run(s.remember("after the last"))
    assert len(run(s.list())) == 4


def test_work_that_is_alone_makes_a_lost_connection_again() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(f"{url}?pool=1", clock), clock) as (s, run):
        run(s.remember("before"))
        cut_connections(url)
        assert run(s.store._writer.run_alone(lambda db: db.one("SELECT count(*) FROM memories"))) == (1,)


def test_as_many_reads_as_the_pool_has_connections_go_side_by_side() -> None:
    meeting = threading.Barrier(3)

    def meet(db: Session) -> int:
        meeting.wait(30)
        (pid,) = db.one("SELECT pg_backend_pid()")
        return int(pid)

    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(f"{url}?pool=3", clock), clock) as (s, run):

        async def read() -> list[int]:
            return await asyncio.gather(*(s.store._readers.run(meet) for _ in range(6)))

        assert len(set(run(read()))) == 3


def take_writes(url: str, yes: bool) -> None:
    """As between the loss of a leader and the next one's election: whoever answers only reads."""
    database = parse_address(url).parameters["dbname"]
    setting = "RESET default_transaction_read_only" if yes else "SET default_transaction_read_only = on"
    server().execute(f'ALTER DATABASE "{database}" {setting}')


def answers(s: Subject, run: Any) -> str:
    """Who answers a read: a connection that was made while nobody took writes, or one made before or since."""
    (only_reads,) = run(s.store._readers.run(lambda db: db.one("SHOW default_transaction_read_only")))
    return "one that only reads" if only_reads == "on" else "one that takes writes"


@pytest.mark.parametrize("reads", ["", "&reads=primary", "&reads=any"])
def test_reads_go_on_without_a_leader_where_that_is_allowed(reads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOK_AGAIN", 1e9)
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(f"{url}?pool=1{reads}", clock), clock) as (s, run):
        kept = run(s.remember("kept"))
        assert run(s.get(kept)).content == "kept"
        take_writes(url, False)
        cut_connections(url)
        if reads == "&reads=any":
            assert run(s.get(kept)).content == "kept"
            assert answers(s, run) == "one that only reads"
        else:
            with pytest.raises(Unavailable, match="could not be read"):
                run(s.get(kept))
        with pytest.raises(Unavailable, match="nothing was written, try again"):
            run(s.store.transact("local", lambda tx: tx.demote([kept], 0.5)))
        take_writes(url, True)
        written = run(s.remember("afterwards"))
        assert answers(s, run) == "one that takes writes"  # at once: another might not have what was written
        assert run(s.get(written)).content == "afterwards"


def test_a_leader_is_looked_for_also_where_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOK_AGAIN", 1e9)
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(f"{url}?reads=any&pool=1", clock), clock) as (s, run):
        take_writes(url, False)
        cut_connections(url)
        seen = [answers(s, run), answers(s, run)]  # the second may look, and finds nobody
        take_writes(url, True)
        seen.append(answers(s, run))  # it is not time yet
        s.store._readers._look_at = 0.0
        seen.append(answers(s, run))
    assert seen == ["one that only reads"] * 3 + ["one that takes writes"]


def test_a_connection_lost_in_the_middle_leaves_nothing(subject: tuple[Subject, Any]) -> None:
    s, run = subject
    kept = run(s.remember("kept"))

    def work(tx: Any) -> None:
        tx.erase(kept)
        tx._db.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        tx.get(kept)

    with pytest.raises(Unavailable, match="nothing was written, try again"):
        run(s.store.transact("local", work))
    assert run(s.get(kept)).content == "kept"
    assert run(s.store.sequence("local")) == 1


@pytest.mark.parametrize("committed", [True, False])
def test_what_became_of_a_commit_is_found_out(
    subject: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The answer to a commit is lost on its way, once after the server has kept it and once before."""
    s, run = subject
    run(s.remember("before"))
    execute = Session.execute
    lost: list[str] = []

    def lose_the_answer(self: Session, sql: str, values: Any = ()) -> Any:
        if sql == "COMMIT" and not lost and self in s.store._writer._all:
            lost.append(sql)
            if committed:
                execute(self, sql)
            self.close()
            raise psycopg.OperationalError("the connection was lost")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "execute", lose_the_answer)
    if committed:
        run(s.remember("in doubt"))
    else:
        with pytest.raises(Unavailable, match="nothing was written, try again"):
            run(s.remember("in doubt"))
    assert lost
    contents = {m.content for m in run(s.list())}
    assert contents == ({"before", "in doubt"} if committed else {"before"})
    assert run(s.store.audit_head("local"))[0] == len(contents)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize("what", ["a record", "a memory"])
def test_nothing_tells_what_became_of_a_commit_without_an_entry(
    subject: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch, what: str, ledger: bool, committed: bool
) -> None:
    """The next of another server may have the same number."""
    s, run = subject
    if ledger:
        run(s.remember("before"))
    (entry,) = run(s.engine._core.make_entries([Memory(mint_id(1), "local", "agent", "semantic", "copy")]))
    other = PostgresStore(server().url(s.store.address.parameters["dbname"]), s.clock)
    works = {"a record": lambda tx: tx.put_record(Record("setting", "x", {})), "a memory": lambda tx: tx.put(entry)}
    (another,) = run(s.engine._core.make_entries([Memory(mint_id(2), "local", "agent", "semantic", "another")]))
    execute = Session.execute
    lost: list[str] = []

    def lose_the_answer(self: Session, sql: str, values: Any = ()) -> Any:
        if sql == "COMMIT" and not lost and self in s.store._writer._all:
            lost.append(sql)
            if committed:
                execute(self, sql)
            self.close()
            asyncio.run(other.transact("local", lambda tx: tx.put(another)))
            raise psycopg.OperationalError("the connection was lost")
        return execute(self, sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "execute", lose_the_answer)
        with pytest.raises(OperatorActionRequired, match="this may have been kept; look whether it is there"):
            run(s.store.transact("local", works[what]))
    assert lost
    run(other.close())


def test_a_commit_without_an_entry_that_is_refused_kept_nothing() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):

        def refused_in_commit(tx: Any) -> None:
            tx.put_record(Record("setting", "x", {}))
            tx._db.execute("CREATE TABLE others(n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            tx._db.execute("INSERT INTO others VALUES(1), (1)")

        with pytest.raises(Unavailable, match=r"duplicate key value .*; nothing was written, try again"):
            run(s.store.transact("local", refused_in_commit))
        assert run(s.store.record("local", "setting", "x")) is None


def test_what_surely_became_of_a_commit_without_an_entry(
    subject: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    s, run = subject
    (entry,) = run(s.engine._core.make_entries([Memory(mint_id(1), "local", "agent", "semantic", "copy")]))
    execute = Session.execute
    lost: list[str] = []

    def lose_it(self: Session, sql: str, values: Any = ()) -> Any:
        if sql == "COMMIT" and not lost and self in s.store._writer._all:
            lost.append(sql)
            self.close()
            raise psycopg.OperationalError("the connection was lost")
        return execute(self, sql, values)

    monkeypatch.setattr(Session, "execute", lose_it)
    with pytest.raises(Unavailable, match="nothing was written, try again"):
        run(s.store.transact("local", lambda tx: tx.put(entry)))
    assert lost


def test_nobody_to_ask_what_became_of_a_commit(subject: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    s, run = subject
    execute = Session.execute

    def lose_the_server(self: Session, sql: str, values: Any = ()) -> Any:
        if sql == "COMMIT" and self in s.store._writer._all:
            self.close()
            monkeypatch.setattr(s.store._writer, "_session", no_session)
            raise psycopg.OperationalError("the connection was lost")
        return execute(self, sql, values)

    def no_session() -> Session:
        raise psycopg.OperationalError("nobody is there")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "execute", lose_the_server)
        with pytest.raises(OperatorActionRequired, match="look whether it is there before you repeat it"):
            run(s.remember("in doubt"))
    monkeypatch.undo()
    run(s.remember("afterwards"))
    assert [m.content for m in run(s.list())] == ["afterwards"]


def test_a_connection_lost_in_the_commit_of_a_lone_work_may_have_kept_it() -> None:
    """Its process ends itself once the commit has begun."""
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):

        def end_in_commit(db: Session) -> None:
            db.execute(
                "CREATE FUNCTION end_process() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; "
                "CREATE CONSTRAINT TRIGGER in_commit AFTER INSERT ON meta DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION end_process(); INSERT INTO meta(key, number) VALUES('kept', 1)"
            )

        with pytest.raises(OperatorActionRequired, match="look whether it is there before you repeat it") as lost:
            run(s.store._writer.run_alone(end_in_commit))
        assert "was lost during a commit: this may have been kept" in lost.value.message
        assert "look whether it is there" in lost.value.message_for(is_operator=False)
        run(s.remember("afterwards"))


def test_a_commit_of_a_lone_work_that_is_refused_kept_nothing() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (s, run):

        def refused_in_commit(db: Session) -> None:
            db.execute("CREATE TABLE others(n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            db.execute("INSERT INTO others VALUES(1), (1)")

        with pytest.raises(Unavailable, match=r"duplicate key value .*; nothing was written, try again"):
            run(s.store._writer.run_alone(refused_in_commit))
        run(s.store._writer.run_alone(lambda db: db.execute("CREATE TABLE others()")))


def test_a_store_is_closed_though_its_server_hangs(
    subject: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its processes are stopped: they neither answer nor hang up."""
    s, run = subject
    store = PostgresStore(server().url(s.store.address.parameters["dbname"]), FakeClock())
    monkeypatch.setattr("commonplace.stores.postgres.store.CLOSE_SECONDS", 0.1)

    async def ask_and_leave() -> None:
        await store.tenants()
        with psycopg.connect(server().url(), autocommit=True) as db:
            name = s.store.address.parameters["dbname"]
            found = db.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", (name,)).fetchall()
        for (process,) in found:
            os.kill(process, signal.SIGSTOP)
        try:
            asked = asyncio.ensure_future(store.tenants())
            await asyncio.sleep(0)
            await asyncio.to_thread(closing.start)
            await asyncio.to_thread(closing.join, 10)
            assert not closing.is_alive()
            asked.cancel()
        finally:
            for (process,) in found:
                os.kill(process, signal.SIGCONT)

    closing = threading.Thread(target=lambda: asyncio.run(store.close()), daemon=True)
    run(ask_and_leave())
    for thread in threading.enumerate():
        if thread.name == "commonplace-closing":
            thread.join(60)
    assert "did not answer within 0.1 s: closed without it" in caplog.text


def test_what_is_not_text_is_refused(subject: tuple[Subject, Any]) -> None:
    s, run = subject
    with pytest.raises(ValidationError, match="half of a surrogate pair"):
        run(s.store.scan(Reach("local", ("\ud800",))))


def test_a_writer_waits_for_another_servers(subject: tuple[Subject, Any]) -> None:
    """Two stores on one database: no number is given twice, and none is left out."""
    s, run = subject
    clock = FakeClock()
    other = PostgresStore(server().url(s.store.address.parameters["dbname"]), clock)

    def work(tx: Transaction) -> int:
        record = tx.record("setting", "count")
        count = (record.value["n"] if record else 0) + 1
        tx.put_record(Record("setting", "count", {"n": count}))
        return count

    async def both() -> list[int]:
        return await asyncio.gather(*(store.transact("local", work) for _ in range(50) for store in (s.store, other)))

    assert sorted(run(both())) == list(range(1, 101))
    run(other.close())


def test_a_tenant_of_whom_something_always_waits_leaves_others_their_turn() -> None:
    """One thread writes, and each work of the busy tenant is not done before another of it is waiting."""
    served: list[str] = []

    async def write(store: PostgresStore) -> None:
        loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        async def submit(waiting: threading.Event) -> None:
            if len(served) < 20:
                tasks.add(asyncio.ensure_future(store.transact("busy", work)))
                await asyncio.sleep(0)  # until it is with the writer
            waiting.set()

        def work(tx: Transaction) -> None:
            waiting = threading.Event()
            asyncio.run_coroutine_threadsafe(submit(waiting), loop)
            assert waiting.wait(30)
            served.append("busy")

        tasks.add(asyncio.ensure_future(store.transact("busy", work)))
        await asyncio.sleep(0)
        await store.transact("other", lambda tx: served.append("other"))
        while tasks:
            await tasks.pop()

    with empty_database() as url, asyncio.Runner() as runner:
        store = PostgresStore(f"{url}?pool=1", FakeClock())
        runner.run(write(store))
        runner.run(store.close())
    assert served.index("other") == 1
    assert len(served) > 20


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("INSERT INTO words VALUES('Alice''s diagnosis')", "duplicate key value"),  # the rest is in DETAIL
        ("SELECT CAST('Alice''s diagnosis' AS integer)", "InvalidTextRepresentation (22P02)"),  # the message quotes it
    ],
)
def test_what_the_database_quotes_of_a_row_is_not_repeated(statement: str, says: str) -> None:
    with empty_database() as url, psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE words(word text PRIMARY KEY)")
        db.execute("INSERT INTO words VALUES('Alice''s diagnosis')")
        with pytest.raises(psycopg.Error) as refused:
            db.execute(statement.encode())
        assert "diagnosis" in str(refused.value)
        fault = fault_of(refused.value, parse_address(url), "written")
        assert says in fault.message
        assert "diagnosis" not in fault.message
