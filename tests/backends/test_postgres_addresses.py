from __future__ import annotations

import logging
import sys

import pytest

from commonplace.plugins import open_store
from commonplace.stores.postgres.address import parse_address
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import OperatorActionRequired, ValidationError


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://", "it names no database"),
        ("postgresql://127.0.0.1:5432", "it names no database"),
        ("postgresql://127.0.0.1/x?port=none", "its port is no number from 1 to 65535"),
        ("postgresql://127.0.0.1/x?port=65536", "its port is no number from 1 to 65535"),
        ("postgresql://one,two/x?port=5432,0", "its port is no number from 1 to 65535"),
        (
            "postgresql://127.0.0.1/x?colour=blue",
            "'colour' is no parameter; there are schema, pool, reads and those of libpq",
        ),
        ("postgresql://127.0.0.1/x?schema=No!", "schema must be a plain name"),
        ("postgresql://127.0.0.1/x?schema=pg_catalog", "schema must be a plain name"),
        ("postgresql://127.0.0.1/x?pool=0", "pool must be a number of connections from 1 to 100"),
        ("postgresql://127.0.0.1/x?pool=many", "pool must be a number of connections from 1 to 100"),
        ("postgresql://127.0.0.1/x?reads=whoever", "reads must be primary or any"),
        ("postgres://[::1/x", "this is no address of a PostgreSQL database"),
    ],
)
def test_a_wrong_address_is_refused_in_words(url: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        open_store(url, FakeClock())
    assert sentence in refused.value.message
    assert "postgresql://alice:secret@db.example.com:5432/memories" in refused.value.message


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OperatorActionRequired, match=r"pip install 'commonplace-memory\[postgresql\]'"):
        open_store("postgresql://127.0.0.1/x", FakeClock())


def test_each_host_is_asked_by_itself() -> None:
    each = parse_address("postgresql://alice@one:1,two:2,three/memories?reads=any").of_each_server
    assert [(one.parameters["host"], one.parameters["port"]) for one in each] == [
        ("one", "1"),
        ("two", "2"),
        ("three", ""),
    ]
    assert {one.parameters["target_session_attrs"] for one in each} == {"any"}


def test_what_other_drivers_write_for_tls_is_understood_as_libpq_does() -> None:
    assert parse_address("postgresql://alice@one/memories?ssl=true").parameters["sslmode"] == "require"


class _Pipeline:
    def __init__(self, state: str) -> None:
        self._state = state

    def __repr__(self) -> str:
        return f"<psycopg.Pipeline [{self._state}] at 0x7f>"


def test_the_end_of_a_pipeline_whose_connection_is_lost_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("commonplace.stores.postgres.connections")
    log = logging.getLogger("psycopg")
    log.warning("error ignored terminating %r: %s", _Pipeline("BAD"), "the connection is lost")
    assert caplog.messages == []
    log.warning("error ignored terminating %r: %s", _Pipeline("IDLE"), "[BAD] of something else")
    log.warning("query cancellation failed: %s", "[BAD]")
    assert len(caplog.messages) == 2
