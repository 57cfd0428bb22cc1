"""What the tests of every adapter share: a memory, rules that stage and refuse, and the programs of the documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_cases import RULES

from commonplace import SyncMemory

ROOT = Path(__file__).parents[2]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SyncMemory]:
    with SyncMemory(agent_id="assistant", data=tmp_path / "data", embedder="hashing") as opened:
        yield opened


@pytest.fixture
def governed(memory: SyncMemory) -> SyncMemory:
    memory.set_policies(RULES)
    return memory


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs the one program of a page over a fresh folder, and gives the names it leaves behind."""

    def run(page: str) -> dict[str, Any]:
        (program,) = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
        monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "documented"))
        monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
        names: dict[str, Any] = {}
        exec(program, names)
        return names

    return run
