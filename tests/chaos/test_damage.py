"""Whatever has come to the files of a store: the checker says what is wrong or that nothing is, and never breaks."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import DATABASE, change_cell, damage, make_store
from token_embedder import HashingTokens

from commonplace.cli import FAILURE, MISTAKE, OK, main
from commonplace.embedders import hashing

#: What is asked of a damaged store, the harmless first: a repair changes what the others would find.
COMMANDS = (
    ("doctor", "--no-repair"), ("audit", "verify"), ("status",), ("recall", "fact 3", "--explain"), ("list",),
    ("audit", "list"), ("history", "thing"), ("kg", "query", "Alice"), ("remember", "one more"), ("doctor",),
)  # fmt: skip
SEEDS = 36
MANY = 600


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(make_store(folder))
    return folder


Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """A command's exit code and all it printed, which is a sentence or JSON and nothing else."""
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    monkeypatch.setattr(hashing, "HashingEmbedder", HashingTokens)  # so that recall reads tokens, too
    for name in ("AGENT", "STORE", "DEBUG", "DATA"):
        monkeypatch.delenv(f"COMMONPLACE_{name}", raising=False)

    def run(folder: Path, *args: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main([*args, "--json", "--data", str(folder), "--agent", "agent"])
        out, err = capsys.readouterr()
        said = out + err
        assert code in (OK, MISTAKE, FAILURE), said
        assert "Traceback" not in said
        assert "bug in Commonplace" not in said
        json.loads(out)
        return code, said

    return run


def break_and_ask(whole: Path, folder: Path, seed: int, ask: Ask) -> str:
    """What the doctor said of a damage that this seed chose."""
    shutil.copytree(whole, folder)
    what = damage(folder, seed)
    try:
        codes = [ask(folder, *command)[0] for command in COMMANDS]
    except BaseException as error:
        raise AssertionError(f"seed {seed}: {what}: {error}") from error
    shutil.rmtree(folder, ignore_errors=True)
    return f"{what.partition(':')[0]} {'clean' if codes[0] == OK else 'told'}"


def test_a_whole_store_is_found_whole(whole: Path, tmp_path: Path, ask: Ask) -> None:
    shutil.copytree(whole, tmp_path / "data")
    for command in (("doctor", "--no-repair"), ("audit", "verify")):
        code, said = ask(tmp_path / "data", *command)
        assert code == OK, said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_damage_breaks_a_command(whole: Path, tmp_path: Path, ask: Ask, seed: int) -> None:
    break_and_ask(whole, tmp_path / "data", seed, ask)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_no_damage_of_very_many_breaks_a_command(
    whole: Path, tmp_path: Path, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = Counter(break_and_ask(whole, tmp_path / str(seed), seed, ask) for seed in range(1000, 1000 + MANY))
    with capsys.disabled():
        print(f"\n{MANY} damaged stores, {len(COMMANDS)} commands each: {dict(sorted(figures.items()))}")


def change_and_ask(whole: Path, folder: Path, seed: int, ask: Ask) -> None:
    shutil.copytree(whole, folder)
    what = change_cell(folder / DATABASE, random.Random(seed), told=True)
    code, said = ask(folder, "doctor", "--no-repair")
    assert code != OK, f"seed {seed}: {what} was not found: {said}"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_changed_cell_is_found(whole: Path, tmp_path: Path, ask: Ask, seed: int) -> None:
    change_and_ask(whole, tmp_path / "data", seed, ask)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_very_many_changed_cells_are_found(whole: Path, tmp_path: Path, ask: Ask) -> None:
    for seed in range(1000, 1000 + MANY):
        change_and_ask(whole, tmp_path / str(seed), seed, ask)
