"""A second embedder beside a running server: by HTTP and from Python, questions find what another language says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from server_process import SECONDS, ServerProcess, command, environment, run_server

from commonplace import SyncMemory, SyncRemoteMemory
from commonplace.embedders import multilingual_files
from commonplace.wire.errors import Unavailable

_GERMAN = (
    "Der Zahnarzt hat am Montag geschlossen.",
    "Das Fahrrad steht im Keller und ist nicht repariert.",
    "Der Server wird am Sonntag neu gestartet.",
)
_TEA = "Alice trinkt jeden Morgen grünen Tee."
_QUESTION = "What does Alice have to drink in the mornings?"

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def models() -> str:
    try:
        return str(multilingual_files.install().parent)
    except Unavailable as fault:
        pytest.skip(f"NOT SHOWN: {fault.message}")


def remember(server: ServerProcess, text: str) -> None:
    assert server.post("/v0/remember", {"agent_id": "alice", "type": "semantic", "content": text}).status == 200


def test_a_running_server_finds_across_languages_from_the_moment_it_is_added(
    models: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_server(tmp_path, COMMONPLACE_MODELS=models) as server:
        for text in _GERMAN:
            remember(server, text)
        add = command("model", "add", "multilingual", "--json")
        where = environment(tmp_path, COMMONPLACE_MODELS=models)
        done = subprocess.run(add, env=where, capture_output=True, text=True, timeout=4 * SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        asked = {"agent_id": "alice", "query": "When is the dental practice closed?", "k": 1}
        found = server.post("/v0/recall", asked).json["results"]
        assert [hit["content"] for hit in found] == [_GERMAN[0]]
        remember(server, _TEA)
        with SyncRemoteMemory(server.url, agent_id="alice") as remote:
            assert remote.recall(_QUESTION, k=1).results[0].content == _TEA
        erased = server.post("/v0/forget", {"agent_id": "alice", "ids": [found[0]["id"]], "hard_delete": True})
        assert erased.status == 200
        left = server.post("/v0/recall", asked | {"k": 10}).json["results"]
        assert _GERMAN[0] not in [hit["content"] for hit in left]
    monkeypatch.setenv("COMMONPLACE_MODELS", models)
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "hashing")
    with SyncMemory("alice", data=tmp_path) as memory:
        assert memory.recall(_QUESTION, k=1).results[0].content == _TEA
        assert memory.status()["second_embedder"]["ready"] is True
