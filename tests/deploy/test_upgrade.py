"""Up and down: a store of an earlier version is opened, one of a newer version is refused and left as it is."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest
from dockerfile import ROOT
from server_process import SECONDS, cli, command, environment, run_server

from commonplace.stores.sqlite import schema

OLD = ROOT / "tests" / "stores" / "data" / "m001.db.gz"
FILE = "commonplace.db"


def unpack(data: Path) -> Path:
    data.mkdir(parents=True)
    with gzip.open(OLD) as packed, (data / FILE).open("wb") as file:
        shutil.copyfileobj(packed, file)
    return data / FILE


def version(database: Path) -> Any:
    db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.pragma("user_version")
    finally:
        db.close()


def make_newer(database: Path) -> None:
    db = apsw.Connection(str(database))
    db.execute(f"PRAGMA journal_mode=DELETE; PRAGMA user_version={schema.VERSION + 1}").fetchall()
    db.close()


def hashes(data: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data.glob(f"{FILE}*") if path.is_file()
    }


def run(data: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), env=environment(data), capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_a_store_of_the_first_version_is_served_after_a_copy_was_made(tmp_path: Path) -> None:
    database = unpack(tmp_path / "data")
    assert version(database) == 1
    before = hashes(tmp_path / "data")[FILE]
    with run_server(tmp_path / "data") as server:
        found = server.get("/v0/memories?agent_id=agent").json["memories"]
        assert [each["content"] for each in found] == ["about the first plan", "the second plan", "the first plan"]
    assert version(database) == schema.VERSION
    (copy,) = (tmp_path / "data" / "commonplace.backups").glob("before-*.db")
    assert version(copy) == 1, "which the older version can open"
    assert before != hashes(tmp_path / "data")[FILE]
    assert run(tmp_path / "data", "doctor").returncode == 0


def test_that_copy_is_the_way_back(tmp_path: Path) -> None:
    """What the older version is given is the store as it was: here it is restored, and brought up to date once more."""
    data = tmp_path / "data"
    unpack(data)
    listed = cli(data, "audit", "list")["entries"]
    cli(data, "remember", "written since")
    (copy,) = (data / "commonplace.backups").glob("before-*.db")
    kept = tmp_path / "kept.db"
    shutil.copy(copy, kept)
    done = run(data, "restore", str(kept), "--force")
    assert done.returncode == 0, done.stderr
    assert version(kept) == 1, "a backup is never written to"
    assert cli(data, "audit", "list")["entries"][: len(listed)] == listed
    assert "written since" not in json.dumps(cli(data, "list"))
    assert "the first plan" in json.dumps(cli(data, "list", "--agent", "agent"))


@pytest.mark.parametrize(
    "args", [("list",), ("remember", "x"), ("doctor",), ("serve", "--port", "0"), ("backup", "copy.db"), ("status",)]
)
def test_a_newer_store_is_refused_and_not_a_byte_of_it_changed(tmp_path: Path, args: tuple[str, ...]) -> None:
    data = tmp_path / "data"
    cli(data, "remember", "Alice is allergic to peanuts")
    make_newer(data / FILE)
    before = hashes(data)
    done = run(data, *args)
    said = done.stdout + done.stderr
    assert f"was written by a newer Commonplace (schema {schema.VERSION + 1}; this one knows {schema.VERSION})" in said
    assert "Nothing was changed. Upgrade commonplace" in said
    assert done.returncode == 2
    assert hashes(data) == before


def test_a_newer_backup_is_refused_and_the_store_stays(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    cli(data, "remember", "Alice is allergic to peanuts")
    cli(data, "backup", str(copy))
    make_newer(copy)
    done = run(data, "restore", str(copy), "--force")
    assert (done.returncode, "newer" in done.stderr) == (2, True), done.stderr
    assert "peanuts" in json.dumps(cli(data, "list"))


def test_an_older_version_puts_what_it_knows_in_the_place_of_a_newer_store(tmp_path: Path) -> None:
    """The way down: it cannot open what is there, and need not."""
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    cli(data, "remember", "Alice is allergic to peanuts")
    cli(data, "backup", str(copy))
    cli(data, "remember", "written by the newer one")
    make_newer(data / FILE)
    assert run(data, "list").returncode == 2
    done = run(data, "restore", str(copy), "--force")
    assert done.returncode == 0, done.stderr
    assert [each["content"] for each in cli(data, "list")["memories"]] == ["Alice is allergic to peanuts"]
    (kept,) = (data / "commonplace.backups").glob("before-restore-*.db")
    assert version(kept) == schema.VERSION + 1, "and what the newer one wrote is not lost"


def test_an_older_one_that_runs_is_refused_once_a_newer_one_has_been_there(tmp_path: Path) -> None:
    body = {"agent_id": "default", "type": "semantic", "content": "x"}
    with run_server(tmp_path) as server:
        assert server.post("/v0/remember", body).status == 200
        db = apsw.Connection(str(tmp_path / FILE))
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}").fetchall()
        db.close()
        refused = server.post("/v0/remember", body)
        assert (refused.status, "newer Commonplace" in refused.body.decode()) == (503, True)
