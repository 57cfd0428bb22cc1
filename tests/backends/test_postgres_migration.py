"""From the embedded store to PostgreSQL and back, on a real server: the same in all three."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import psycopg
import pytest
from filled_store import fill_store
from postgres_connections import close_idle
from postgres_databases import empty_database, server
from postgres_server import PASSWORD

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.core import SYSTEM
from commonplace.engine.transfer.migration import Migration
from commonplace.engine.transfer.migration_marks import MIGRATION, SOURCE
from commonplace.engine.transfer.store_digest import TenantPlan, digest, plan_tenants
from commonplace.stores.base import Record
from commonplace.stores.postgres.schema import TABLES
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock, open_subject
from commonplace.transfer.migrate import StoreMove
from commonplace.transfer.unfinished_target import UnfinishedTarget
from commonplace.wire.errors import Conflict, Fault

pytestmark = pytest.mark.process


def test_there_and_back(tmp_path: Path) -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(SqliteStore(tmp_path / "a.db", clock), clock) as (first, wait):
        wait(fill_store(first))
        times = []
        for step in (30 * DAY_MS, *[1000] * 40, -30 * DAY_MS, *[1000] * 3):  # a clock was set wrong, and back
            clock.advance(step)
            times.append(clock.now)
            wait(first.remember("another note"))
        plans = wait(_planned(first.store))
        with open_subject(PostgresStore(url, clock), clock) as (second, run):
            run(Migration(WHO, first.store, second.store, HashingEmbedder()).run())
            assert run(second.engine.ledger.verify(WHO)).problem is None
            with open_subject(SqliteStore(tmp_path / "b.db", clock), clock) as (third, go):
                run(Migration(WHO, second.store, third.store, HashingEmbedder()).run())
                assert go(third.engine.ledger.verify(WHO)).problem is None
                for plan in plans:
                    expected = wait(digest(first.store, plan))
                    assert run(digest(second.store, plan)) == expected
                    assert go(digest(third.store, plan)) == expected
                expected = [wait(first.store.sequence("local", at)) for at in times]
                assert [run(second.store.sequence("local", at)) for at in times] == expected
                assert [go(third.store.sequence("local", at)) for at in times] == expected
            assert run(second.recall("peanuts cashews"))[0].recalls == 3


def _refusals(source: str, target: str) -> list[str]:
    """What a dry run and the run say; empty where they say nothing."""

    async def work(dry_run: bool) -> str:
        try:
            move = StoreMove(source, target)
        except Fault as fault:
            return fault.message
        try:
            report = await move.report()
            if not dry_run:
                await move.run(WHO, report)
        except Fault as fault:
            return fault.message
        finally:
            await move.close()
        return ""

    return [asyncio.run(work(dry_run)) for dry_run in (True, False)]


def _without_rights(url: str) -> str:
    """A user who may connect, and make nothing."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS commonplace CASCADE")
        db.execute("DROP ROLE IF EXISTS carol")
        db.execute(f"CREATE ROLE carol LOGIN PASSWORD '{PASSWORD}'")
    return url.replace("postgres:", "carol:", 1) if "//postgres:" in url else url


def test_a_dry_run_refuses_what_the_run_refuses(empty_store: Path) -> None:
    with empty_database() as url:
        wrong = {
            url.replace(f"/{url.rpartition('/')[2]}", "/nowhere"): "nowhere",
            "postgresql://127.0.0.1:1/x": "127.0.0.1:1",
            "postgresql://127.0.0.1:1": "names no database",
            f"{url}?cache=1": "no parameter",
            server().url(password="hunter22"): "wrong password",
        }
        for target, said in wrong.items():
            first, second = _refusals(str(empty_store), target)
            assert said in first, target
            assert first == second
            assert "hunter22" not in first


def test_a_dry_run_knows_whether_tables_may_be_made_and_makes_none(empty_store: Path) -> None:
    with empty_database() as url:
        denied = _without_rights(url)
        assert denied != url
        first, second = _refusals(str(empty_store), denied)
        assert first
        assert first == second
        with psycopg.connect(url, autocommit=True) as db:
            found = "SELECT count(*) FROM pg_namespace WHERE nspname = 'commonplace'"

            async def report() -> None:
                move = StoreMove(str(empty_store), url)
                try:
                    await move.report()
                finally:
                    await move.close()

            asyncio.run(report())
            assert db.execute(found).fetchone() == (0,)
            db.execute("DROP ROLE carol")


def test_the_same_database_is_not_both_ends(empty_store: Path) -> None:
    with empty_database() as url:
        for other in (url, url.replace("postgresql://", "postgres://"), f"{url}?pool=2", f"{url}?schema=commonplace"):
            assert _refusals(url, other) == ["--from and --to name the same store"] * 2


def test_a_half_filled_database_is_set_aside_and_no_other_is(tmp_path: Path) -> None:
    clock = FakeClock()
    with empty_database() as url:
        with open_subject(PostgresStore(url, clock), clock) as (subject, run):
            run(subject.remember("Alice drinks tea"))
        with pytest.raises(Conflict, match="no unfinished migration"):
            asyncio.run(UnfinishedTarget(url).counts())
        _disconnect(url)
        with pytest.raises(Conflict, match="no unfinished migration") as refused:
            UnfinishedTarget(url).set_aside()  # whoever has not looked first
        assert "--to" in (refused.value.hint or "")
        with open_subject(PostgresStore(url, clock), clock) as (subject, run):
            mark = Record(MIGRATION, SOURCE, {"begins": {}})
            run(subject.store.transact(SYSTEM, lambda tx: tx.put_record(mark)))
        target = UnfinishedTarget(url)
        assert asyncio.run(target.counts())["memory"] == 1
        _disconnect(url)
        user = PostgresStore(url, clock)
        assert asyncio.run(user.tenants())
        with pytest.raises(Conflict, match="is in use; stop what uses it"):
            target.set_aside()
        asyncio.run(user.close())
        _disconnect(url)
        aside = target.set_aside()
        assert "schema=commonplace_unfinished" in aside
        assert PASSWORD not in aside
        with open_subject(PostgresStore(url, clock), clock) as (subject, run):
            assert run(subject.list()) == []
            run(subject.remember("Bob drinks milk"))
        there = f"{url}?schema=commonplace_unfinished"
        assert asyncio.run(UnfinishedTarget(there).counts())["memory"] == 1
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE TABLE commonplace_unfinished.mine(x integer)")
        _disconnect(url)
        with pytest.raises(Conflict, match="tables of others"):
            UnfinishedTarget(there).set_aside()


def test_the_schema_public_is_not_set_aside() -> None:
    clock = FakeClock()
    with empty_database() as url:
        there = f"{url}?schema=public"
        with open_subject(PostgresStore(there, clock), clock) as (subject, run):
            mark = Record(MIGRATION, SOURCE, {"begins": {}})
            run(subject.store.transact(SYSTEM, lambda tx: tx.put_record(mark)))
        _disconnect(url)
        with pytest.raises(Conflict, match="the schema public is not renamed") as refused:
            UnfinishedTarget(there).set_aside()
        assert "?schema=NAME" in (refused.value.hint or "")


def test_a_schema_may_be_called_by_a_word_of_sql() -> None:
    clock = FakeClock()
    with empty_database() as url:
        there = f"{url}?schema=order"
        with open_subject(PostgresStore(there, clock), clock) as (subject, run):
            assert run(subject.get(run(subject.remember("Alice drinks tea")))).content == "Alice drinks tea"
            assert [found for found in run(subject.store.examine(False)) if not found.ok] == []
            run(subject.store.compact())
            mark = Record(MIGRATION, SOURCE, {"begins": {}})
            run(subject.store.transact(SYSTEM, lambda tx: tx.put_record(mark)))
        _disconnect(url)
        assert "schema=order_unfinished" in UnfinishedTarget(there).set_aside()


def test_every_table_of_a_store_is_known_as_one() -> None:
    clock = FakeClock()
    with empty_database() as url, open_subject(PostgresStore(url, clock), clock) as (subject, run):
        run(subject.remember("Alice drinks tea"))  # with the tables of an embedder
        with psycopg.connect(url) as db:
            asked = "SELECT tablename FROM pg_tables WHERE schemaname = 'commonplace'"
            names = [name for (name,) in db.execute(asked)]
        assert "parts_1_p0" in names
        assert [name for name in names if not re.match(TABLES, name)] == []


def _disconnect(url: str) -> None:
    """What the stores of these tests have closed is kept for those of the next."""
    close_idle(url.rpartition("/")[2])


async def _planned(store: SqliteStore) -> list[TenantPlan]:
    return [plan async for plan in plan_tenants(store)]
