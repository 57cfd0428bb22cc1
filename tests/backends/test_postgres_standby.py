"""With `reads=any` a standby answers while there is no leader, and never with what this process has seen replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from patroni_cluster import until
from postgres_server import FAST, PASSWORD, PostgresServer

from commonplace.engine import Forget
from commonplace.stores.postgres.store import PostgresStore
from commonplace.testing import FakeClock
from commonplace.testing.subject import WHO, Subject, open_subject
from commonplace.wire.errors import NotFound, Unavailable

pytestmark = pytest.mark.process

_SETTINGS = [each for each in FAST if not each.startswith("synchronous_commit")]
_REFUSED = "none that only reads is known to have all that was seen here"


class Pair:
    """A leader and a standby that replays its log until it is told to stop."""

    def __init__(self) -> None:
        self.leader = PostgresServer([*_SETTINGS, "wal_level=replica"])
        self.standby = PostgresServer(_SETTINGS)

    def start(self) -> None:
        self.leader.start()
        source = f"host=127.0.0.1 port={self.leader.port} user=postgres password='{PASSWORD}'"
        self.standby.run(
            "pg_basebackup", "-d", source, "-D", str(self.standby.data), "-R", "-X", "stream", "-c", "fast"
        )
        self.standby.start()

    def url(self) -> str:
        first, second = self.leader.port, self.standby.port
        host = f"127.0.0.1:{first}"
        return self.leader.url(reads="any", pool=1).replace(host, f"{host},127.0.0.1:{second}")

    def pause_replay(self) -> None:
        self.standby.execute("SELECT pg_wal_replay_pause()")
        until(lambda: self.standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)], "the pause")

    def resume_replay(self) -> None:
        self.standby.execute("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        ((end,),) = self.leader.execute("SELECT pg_current_wal_flush_lsn()::text")
        self.wait_for(str(end))

    def wait_for(self, end: str) -> None:
        until(lambda: self.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{end}'") == [(True,)], "the log")


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    try:
        made.start()
        yield made
    finally:
        made.standby.remove()
        made.leader.remove()


@contextlib.contextmanager
def opened(url: str) -> Iterator[tuple[Subject, Any]]:
    clock = FakeClock()
    with open_subject(PostgresStore(url, clock), clock) as both:
        yield both


def test_what_was_erased_does_not_come_back_from_a_standby_that_lags(pair: Pair) -> None:
    with opened(pair.url()) as (s, run):
        kept, secret = run(s.remember("kept")), run(s.remember("Alice's secret"))
        pair.catch_up()
        pair.pause_replay()
        run(s.engine.forget(WHO, Forget("agent", [secret], hard_delete=True)))
        ((end,),) = pair.leader.execute("SELECT pg_current_wal_flush_lsn()::text")
        until(lambda: pair.standby.execute(f"SELECT pg_last_wal_receive_lsn() >= '{end}'") == [(True,)], "the log")
        pair.leader.stop(mode="immediate")
        for id in (kept, secret):
            with pytest.raises(Unavailable, match=_REFUSED):
                run(s.get(id))
        pair.resume_replay()
        pair.wait_for(str(end))
        assert run(s.get(kept)).content == "kept"
        with pytest.raises(NotFound):
            run(s.get(secret))


def test_what_another_process_erased_does_not_come_back_once_that_was_seen(pair: Pair) -> None:
    with opened(pair.url()) as (s, run), opened(pair.url()) as (other, run_other):
        secret = run(s.remember("Alice's secret"))
        pair.catch_up()
        pair.pause_replay()
        run_other(other.engine.forget(WHO, Forget("agent", [secret], hard_delete=True)))
        with pytest.raises(NotFound):
            run(s.get(secret))
        pair.leader.stop(mode="immediate")
        with pytest.raises(Unavailable, match=_REFUSED):
            run(s.get(secret))


def test_what_another_process_did_since_may_be_missing(pair: Pair) -> None:
    """As the documentation says: nobody has told this process of it."""
    with opened(pair.url()) as (s, run), opened(pair.url()) as (other, run_other):
        secret = run(s.remember("Alice's secret"))
        assert run(s.get(secret)).content == "Alice's secret"
        pair.catch_up()
        pair.pause_replay()
        run_other(other.engine.forget(WHO, Forget("agent", [secret], hard_delete=True)))
        pair.leader.stop(mode="immediate")
        assert run(s.get(secret)).content == "Alice's secret"


def test_who_does_not_know_what_a_standby_must_have_asks_none(pair: Pair) -> None:
    """A commit of which only the answer is known, or a process that has never read from a leader."""
    with opened(pair.url()) as (s, run):
        kept = run(s.remember("kept"))
        pair.catch_up()
        s.store._readers.note_commit(None)
        pair.leader.stop(mode="immediate")
        with pytest.raises(Unavailable, match=_REFUSED):
            run(s.get(kept))
