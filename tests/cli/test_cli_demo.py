"""The tour: every step works, with a model or without, and nothing of the user's is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.cli import demo


@pytest.mark.process
def test_every_step_of_the_tour_works(cli, data: Path, tmp_path: Path) -> None:
    ran = cli("demo", "--data", str(tmp_path / "tour"), "--json")
    assert ran.code == 0, ran
    tour = ran.json
    assert all(step["exit_code"] == 0 for step in tour["steps"])
    said = "\n".join(step["output"] for step in tour["steps"])
    assert "Alice is allergic to peanuts and kiwi" in said
    assert "acknowledged:" in said
    assert "The spare key is under the blue flowerpot" in said
    assert "the ledger is whole" in said
    staged, approved = (step["output"] for step in tour["steps"] if step["command"].endswith("--tag payments"))
    assert staged == ""
    assert "payments up to 500 euros" in approved
    assert any(file["path"].endswith("commonplace.db") for file in tour["files"])
    assert not data.exists(), "the tour stays out of the user's own data"


@pytest.mark.process
def test_the_tour_as_people_see_it(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "minilm")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "none here"))
    monkeypatch.setenv("COMMONPLACE_STORE", "nonsense://never-opened")
    monkeypatch.setattr(demo.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "fresh"))
    ran = cli("demo")
    assert ran.code == 0, ran
    assert "$ commonplace remember 'Alice is allergic to peanuts' --user alice --tag food\nremembered " in ran.out
    assert "commonplace model build minilm" in ran.out
    assert f"rm -r {tmp_path / 'fresh'}" in ran.out
    assert f"{tmp_path / 'fresh' / 'commonplace.db'}  " in ran.out


def test_ctrl_c_during_a_step_ends_the_tour(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def interrupted(args: tuple[str, ...]) -> int:
        begun.append(args)
        return 130

    monkeypatch.setattr(demo, "main", interrupted)
    assert cli("demo", "--data", str(tmp_path / "tour")).code == 130
    assert len(begun) == 1
