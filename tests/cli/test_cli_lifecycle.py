"""`commonplace lifecycle`: what is due, done by hand, and left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_jobs_are_listed_run_paused_and_resumed(cli: Any, remember: Any) -> None:
    remember("tea")
    assert [row.split("\t")[:3] for row in cli("lifecycle", "status").out.splitlines()] == [
        ["expire", "every 60 s", "never"],
        ["retain", "every 60 s", "never"],
        ["dream", "every 300 s", "never"],
        ["consolidate", "every 60 s", "never"],
    ]
    dry = cli("lifecycle", "run", "expire", "--dry-run")
    assert dry.out == "expire would do: expired 0, by_policy 0, reviews 0, keys 0, runs 0\n"
    assert cli("lifecycle", "run", "retain", "--json").json["counts"] == {"erased": 0, "overdue": 0, "late_ms": 0}
    jobs = cli("lifecycle", "status", "--json").json["jobs"]
    assert [job["last_run"] is None for job in jobs] == [True, False, True, True]
    cli("lifecycle", "pause", "expire")
    assert cli("lifecycle", "status").out.split("\t")[1] == "paused"
    cli("lifecycle", "resume", "expire")
    assert cli("lifecycle", "status", "--json").json["jobs"][0]["paused"] is False


@pytest.mark.parametrize("verb", ["run", "pause", "resume"])
def test_an_unknown_job_is_named_with_those_there_are(cli: Any, remember: Any, verb: str) -> None:
    remember("tea")
    refused = cli("lifecycle", verb, "dance", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "not_found")
    assert "expire, retain, dream, consolidate" in refused.json["error"]["message"]


@pytest.mark.parametrize("verb", ["run", "pause", "resume"])
def test_a_job_is_for_every_agent_and_takes_none(cli: Any, remember: Any, data: Path, verb: str) -> None:
    remember("faint", "--confidence", "0.1", "--agent", "bob")
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    refused = cli("lifecycle", verb, "expire", "--agent", "alice", "--json")
    assert (refused.code, refused.json["error"]["message"]) == (1, "a job runs for every agent; leave --agent out")
    assert cli("list", "--agent", "bob", "--json").json["memories"][0]["status"] == "live"
    assert cli("lifecycle", "status", "--json").json["jobs"][0]["paused"] is False
    assert "Not used: a job runs for every agent." in cli("lifecycle", verb, "--help").out


def test_a_run_is_undone_whole_and_takes_no_agent(cli: Any, remember: Any, data: Path) -> None:
    remember("faint", "--confidence", "0.1", "--agent", "bob")
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    run_id = cli("lifecycle", "run", "expire", "--json").json["run_id"]
    assert "for every agent; leave --agent out" in cli("undo", "--run", run_id, "--agent", "alice").err
    assert cli("list", "--agent", "bob", "--json").json["memories"][0]["status"] == "archived"


def test_a_standing_policy_comes_from_the_settings(cli: Any, remember: Any, data: Path) -> None:
    remember("faint", "--confidence", "0.1")
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    assert cli("lifecycle", "run", "expire", "--json").json["counts"]["by_policy"] == 1
    assert cli("list", "--json").json["memories"][0]["status"] == "archived"


@pytest.mark.parametrize("wrong", ['["everything"]', '["older_than_days=0"]', '"bogus"', "5", '["a", 5]'])
def test_a_wrong_standing_policy_is_told_with_where_it_is_written(
    cli: Any, remember: Any, data: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    remember("tea")
    settings = data / "commonplace.toml"
    settings.write_text(f"[lifecycle]\nexpire = {wrong}\n", "utf-8")
    for command in (("lifecycle", "status"), ("list",)):
        refused = cli(*command)
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        assert refused.err.startswith(f"commonplace: {settings}: lifecycle.expire")
    monkeypatch.setenv("COMMONPLACE_LIFECYCLE_EXPIRE", "everything")
    assert "COMMONPLACE_LIFECYCLE_EXPIRE: lifecycle.expire: 'everything'" in cli("list").err


def test_what_a_run_did_is_shown_and_taken_back(cli: Any, remember: Any, data: Path) -> None:
    faint = remember("faint", "--confidence", "0.1")
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["confidence_below=0.5"]\n', "utf-8")
    dry = cli("lifecycle", "run", "expire", "--dry-run")
    assert f"archived {faint}: policy confidence_below=0.5 action=archive" in dry.err
    assert cli("lifecycle", "history").out == ""
    run_id = cli("lifecycle", "run", "expire", "--json").json["run_id"]
    assert cli("lifecycle", "history").out.split("\t")[:2] == [run_id, "expire"]
    shown = cli("lifecycle", "show", run_id)
    assert shown.out.split("\t")[:4] == ["archived", "default", faint, ""]
    assert "policy confidence_below=0.5" in shown.out
    assert f"undo --run {run_id}" in shown.err
    done = {"restored_ids": [faint], "unchanged_ids": []}
    assert cli("undo", "--run", run_id, "--reason", "a slip", "--json").json == done
    assert cli("get", faint, "--json").json["status"] == "live"
    assert cli("lifecycle", "undo", "--run", run_id, "--json").json == {"restored_ids": [], "unchanged_ids": [faint]}
    (seen,) = cli("lifecycle", "history", "--json").json["runs"]
    assert seen["undone_by"] == "local"
    unknown = cli("lifecycle", "show", "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f")
    assert (unknown.code, "no run" in unknown.err) == (1, True)
