"""`commonplace conformance`: the table, the exit code, and what is said of a store that does not conform."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from server_process import run_server, token


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")


def test_a_store_of_ours_passes_all_sixteen(cli: Any, tmp_path: Path) -> None:
    ran = cli("conformance", "--store", f"sqlite://{tmp_path}/m.db")
    assert (ran.code, "16 of 16 scenarios pass" in ran.err) == (0, True)
    assert "basic remember recall" in ran.out
    found = cli("conformance", "--store", f"sqlite://{tmp_path}/m.db", "--json").json
    assert (found["role"], found["passed"], found["failed"], found["skipped"]) == ("primary", 16, 0, 0)
    assert [each["scenario"] for each in found["scenarios"]][:2] == [
        "basic_remember_recall",
        "remember_recall_by_user_filter",
    ]


#: What the help says that a run leaves in a primary; the rest is made when any store is.
LEFT = {"tenants", "scopes", "erasures", "audit", "audit_parts", "records"}


def test_what_a_run_leaves_in_a_primary_is_what_the_help_says(cli: Any, tmp_path: Path) -> None:
    cli("conformance", "--store", f"sqlite://{tmp_path}/m.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "m.db")) as rows:
        tables = {name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        full = {name for name in tables if rows.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()}
        assert full - {"meta", "sqlite_sequence"} == LEFT
        records = [(kind, json.loads(value)) for kind, value in rows.execute("SELECT kind, value FROM records")]
        assert {kind for kind, _ in records} == {"review", "erasures"}  # of these the number of the last one
        reviews = [(kind, review) for kind, review in records if kind == "review"]
        assert [(kind, review["status"]) for kind, review in reviews] == [("review", "approved")]
        kept = str(reviews) + str(rows.execute("SELECT payload FROM audit_parts").fetchall())
    assert '"content"' not in kept
    assert "'content'" not in kept
    said = " ".join(cli("conformance", "--help").out.split())
    for part in ("tenant's name", "agents' names", "ids of what was erased", "decided review", "ledger's entries"):
        assert part in said


def test_on_another_server_the_entries_stay_in_its_own_ledger(cli: Any, tmp_path: Path) -> None:
    with run_server(tmp_path / "served") as server:
        assert cli("conformance", "--store", f"memorywire+http://127.0.0.1:{server.port}").code == 0
        entries = server.call("GET", "/v0/audit?limit=1000").json["entries"]
    assert {entry["agent_id"].partition("-")[0] for entry in entries} == {"conformance"}
    shown = " ".join(cli("conformance", "--help").out.split())
    assert "its ledger keeps the entries among its other ones, under agents `conformance-…`" in shown


def test_a_store_that_is_down_is_told_once_and_no_scenario_is_run(cli: Any) -> None:
    ran = cli("conformance", "--store", "memorywire+http://127.0.0.1:9")
    assert (ran.code, ran.out, ran.err.count("could not be reached")) == (2, "", 1)
    assert "no scenario was run on memorywire+http://127.0.0.1:9: " in ran.err
    refused = cli("conformance", "--store", "memorywire+http://127.0.0.1:9", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "unavailable")


def test_a_server_that_wants_a_token_is_told_with_where_it_goes(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal(url: str) -> str:
        ran = cli("conformance", "--store", url)
        assert (ran.code, ran.out) == (2, "")
        return str(ran.err)

    served = tmp_path / "served"
    token(served, "--role", "writer")
    with run_server(served) as server:
        url = f"memorywire+http://127.0.0.1:{server.port}"
        assert "it wants a token; put token_env=NAME into its URL, the variable NAME holding a token" in refusal(url)
        monkeypatch.setenv("WRONG", "cp_000000000000_nobody")
        assert "it refuses the token; set WRONG, which token_env names, to" in refusal(f"{url}?token_env=WRONG")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "there is no store for nonsense://"),
        ("plain words", "is not a store URL"),
        ("sqlite://x.db?cache=1", "'cache' is no setting of sqlite://"),
    ],
)
def test_a_wrong_url_is_the_users_mistake(cli: Any, url: str, said: str) -> None:
    refused = cli("conformance", "--store", url, "--json")
    assert refused.code == 1
    assert said in refused.json["error"]["message"]


def test_its_help_says_what_it_makes_where_no_store_is(cli: Any, tmp_path: Path) -> None:
    assert "are made, with the folders above them, and stay" in " ".join(cli("conformance", "--help").out.split())
    assert cli("conformance", "--store", f"sqlite://{tmp_path}/above/new.db").code == 0
    assert (tmp_path / "above" / "new.db").exists()
