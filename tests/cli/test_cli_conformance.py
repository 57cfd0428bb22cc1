"""`commonplace conformance`: the table, the exit code, and what is said of a store that does not conform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from server_process import run_server


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


def test_on_another_server_the_entries_stay_in_its_own_ledger(cli: Any, tmp_path: Path) -> None:
    with run_server(tmp_path / "served") as server:
        assert cli("conformance", "--store", f"memorywire+http://127.0.0.1:{server.port}").code == 0
        entries = server.call("GET", "/v0/audit?limit=1000").json["entries"]
    assert {entry["agent_id"].partition("-")[0] for entry in entries} == {"conformance"}
    shown = " ".join(cli("conformance", "--help").out.split())
    assert "its ledger keeps the entries among its other ones, under agents `conformance-…`" in shown


def test_a_store_that_is_down_fails_with_the_reason_and_code_2(cli: Any) -> None:
    ran = cli("conformance", "--store", "memorywire+http://127.0.0.1:9", "--json")
    assert ran.code == 2
    assert (ran.json["role"], ran.json["passed"] < 16) == ("replica", True)
    first = ran.json["scenarios"][0]
    assert (first["result"], "could not be reached" in first["why"]) == ("fail", True)


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
