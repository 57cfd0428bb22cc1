"""Two hundred memories of one person, erased by a command whose disk is full at some point: what its answer says is
so afterwards. Prints its figure."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from server_process import SECONDS, command, environment

from commonplace import SyncMemory

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does"),
]

MEMORIES = 200


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("stocked")
    with SyncMemory(data=data, embedder="hashing") as memory:
        for number in range(MEMORIES):
            memory.remember(f"note {number} " + "about Alice " * 40, user_id="alice")
    return data


def kept(data: Path) -> set[str]:
    with SyncMemory(data=data, embedder="hashing") as memory:
        return {one["id"] for one in memory.list(limit=MEMORIES)["memories"]}


def forget_alice(data: Path, most_bytes: int) -> tuple[int, Any]:
    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    done = subprocess.run(
        command("forget", "--user", "alice", "--hard", "--yes", "--json"), env=environment(data),
        capture_output=True, text=True, timeout=SECONDS, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.4, 0.5, 0.6, 0.8, 4.0])
def test_the_answer_says_what_is_gone(stocked: Path, tmp_path: Path, share: float) -> None:
    """No file may grow beyond that share of the database, as on a disk that is nearly full."""
    data = tmp_path / "data"
    shutil.copytree(stocked, data)
    before = kept(data)
    status, answer = forget_alice(data, int((data / "commonplace.db").stat().st_size * share))
    gone = before - kept(data)
    assert set(answer.get("forgotten_ids", ())) == gone
    assert (status == 0) is (len(gone) == MEMORIES)
    print(f"at {share:.0%}: {len(gone)} of {MEMORIES} are gone, and the answer names them (exit {status})")
