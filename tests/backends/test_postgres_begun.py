"""A database in which there is no store yet: what reads says so and makes nothing, what writes begins one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_port
from postgres_databases import empty_database, server
from postgres_server import PASSWORD

from commonplace import plugins
from commonplace.cli import main
from commonplace.testing.subject import FakeClock
from commonplace.transfer.migrate import StoreMove
from commonplace.wire.errors import NotFound

pytestmark = pytest.mark.process

READING = [
    ("recall", "tea"),
    ("list",),
    ("status",),
    ("stores",),
    ("doctor",),
    ("token", "list"),
    ("trust", "list"),
    ("export", "-o", "memories.jsonl"),
    ("get", "0" * 36),
]


@pytest.fixture
def bare() -> Iterator[str]:
    """The name of a database with nothing in it at all."""
    name = server().create_database()
    yield name
    server().drop_database(name)


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "none")


def what_is_in(database: str) -> list[Any]:
    """Schemas and extensions that a fresh database does not have."""
    return server().execute(
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$|public$)' "
        "UNION SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'",
        database,
    )


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "pgvector"])
@pytest.mark.parametrize("variable", ["COMMONPLACE_STORE", "COMMONPLACE_STORES"])
def test_no_command_that_reads_begins_a_store(
    bare: str, scheme: str, variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = server().url(bare).replace("postgresql", scheme, 1)
    monkeypatch.setenv(variable, url)
    for command in READING:
        assert main([*command, "--json"]) == 1, command
        message = json.loads(capsys.readouterr().out)["error"]["message"]
        assert f"there is no store at {scheme}://…@127.0.0.1:{server().port}/{bare}" in message, command
        assert "`commonplace remember …` with COMMONPLACE_STORE set to it would begin one" in message, command
    assert what_is_in(bare) == []


def test_what_writes_begins_one_which_is_read_from_then_on(
    bare: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_STORE", server().url(bare))
    assert main(["remember", "Alice drinks green tea"]) == 0
    capsys.readouterr()
    assert main(["recall", "green tea", "--json"]) == 0
    assert [hit["content"] for hit in json.loads(capsys.readouterr().out)["results"]] == ["Alice drinks green tea"]


def test_a_store_of_another_schema_is_another_store(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_STORE", server().url(bare))
    assert main(["remember", "Alice drinks green tea"]) == 0
    before = what_is_in(bare)
    monkeypatch.setenv("COMMONPLACE_STORE", server().url(bare, schema="other"))
    assert main(["list"]) == 1
    assert what_is_in(bare) == before


def test_a_server_that_is_not_there_is_no_missing_store(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMONPLACE_STORE", f"postgresql://alice@127.0.0.1:{free_port()}/memories")
    assert main(["list", "--json"]) == 2
    assert "could not be opened" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_migration_makes_nothing_until_it_runs(bare: str, empty_store: Path) -> None:
    async def report() -> Any:
        move = StoreMove(str(empty_store), server().url(bare), clock=FakeClock())
        try:
            return await move.report()
        finally:
            await move.close()

    assert asyncio.run(report()).fidelity
    assert what_is_in(bare) == []


def test_a_migration_from_a_database_without_a_store_is_refused(bare: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store at postgresql://"):
        StoreMove(server().url(bare), str(tmp_path / "there"))
    assert what_is_in(bare) == []


def test_one_that_has_a_store_is_opened(tmp_path: Path) -> None:
    with empty_database() as url:
        move = StoreMove(url, str(tmp_path / "there"), clock=FakeClock())
        asyncio.run(move.close())


@pytest.mark.parametrize("host", ["localhost", "127.1"])
def test_a_database_under_another_name_of_its_host_is_the_same_store(
    bare: str, host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the second only the server itself can say it."""
    url = server().url(bare)
    other = url.replace("@127.0.0.1:", f"@{host}:")
    monkeypatch.setenv("COMMONPLACE_STORES", f"{url} {other}?name=spare")
    assert main(("remember", "Alice drinks tea")) == 1
    said = capsys.readouterr().err
    assert ("name the same store" in said, f"@{host}:" in said, PASSWORD in said) == (True, True, False)
    assert what_is_in(bare) == []
    monkeypatch.setenv("COMMONPLACE_STORES", f"{url} {other}?name=spare&schema=spare")
    assert main(("remember", "Alice drinks tea")) == 0


def test_two_mem0s_in_one_database_under_two_names_of_its_host_are_one_store(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before mem0 is imported, so that it need not be here."""
    (tmp_path / "mem0").mkdir()
    (tmp_path / "mem0" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    plain = server().url(bare)
    url = plain.replace("postgresql://", "mem0+postgresql://")
    other = url.replace("@127.0.0.1:", "@127.1:")
    monkeypatch.setenv("COMMONPLACE_STORES", f"sqlite://{tmp_path}/m.db {url}?name=one {other}?name=two")
    assert main(("remember", "Alice drinks tea")) == 1
    said = capsys.readouterr().err
    assert ("name the same store" in said, "@127.1:" in said, PASSWORD in said) == (True, True, False)
    assert not (tmp_path / "m.db").exists()
    assert plugins.database_identity(url) == plugins.database_identity(f"{other}?name=two") is not None
    elsewhere = [
        plain,
        f"{url}?options=-csearch_path%3Dother",
        url.replace(bare, "postgres"),
        url.replace(bare, "gone"),
    ]
    assert plugins.database_identity(url) not in [plugins.database_identity(each) for each in elsewhere]
    assert plugins.database_identity("mem0+postgresql://127.0.0.1:9") is None
