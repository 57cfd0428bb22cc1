"""Several processes on one data directory: what one keeps, forgets or erases the others see in their next call."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp_process import McpProcess, run_mcp
from server_process import SECONDS, cli, environment, run_server
from token_embedder import HashingTokens

from commonplace.cli import main
from commonplace.config import load as configure
from commonplace.embedders.encoder import Encoder
from commonplace.embedders.hashing import open_embedder
from commonplace.serve.mcp import sessions
from commonplace.serve.running_server import FILE, Advertisement, running_server
from commonplace.serve.shared_embedder import SharedEmbedder, SharedTokenEmbedder

WRITERS = 4
EACH = 25


def test_four_servers_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(run_mcp(tmp_path)) for _ in range(WRITERS)]
        kept: list[list[str]] = [[] for _ in servers]
        failed: list[BaseException] = []

        def write(n: int) -> None:
            try:
                servers[n].greet()
                for i in range(EACH):
                    kept[n].append(servers[n].call("remember", content=f"writer {n} note {i}")["id"])
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        everything = {id for ids in kept for id in ids}
        assert len(everything) == WRITERS * EACH
        for server in servers:
            assert {m["id"] for m in server.call("list", limit=1000)["memories"]} == everything


def test_each_sees_the_others_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(run_mcp(tmp_path)) for _ in range(WRITERS)]
        for server in servers:
            server.greet()
            server.call("recall", query="anything")  # so that each has opened its view of the store
        for n, writer in enumerate(servers):
            others = [server for server in servers if server is not writer]
            kept = writer.call("remember", content=f"the codeword of round {n} is heron{n}")["id"]
            assert all(_found(other, f"heron{n}") == [kept] for other in others)
            writer.call("update", id=kept, content=f"the codeword of round {n} is plover{n}")
            assert all("plover" in other.call("get", id=kept)["content"] for other in others)
            gone = writer.call("remember", content=f"the phrase of round {n} is curlew{n}")["id"]
            others[0].call("forget", ids=[kept])
            others[1].call("forget", ids=[gone], hard_delete=True)
            for server in servers:
                assert _found(server, f"plover{n}") == _found(server, f"curlew{n}") == []
                refused = server.result("tools/call", {"name": "get", "arguments": {"id": gone}})
                assert refused["isError"] is True


def _found(server: McpProcess, word: str) -> list[str]:
    found = server.call("recall", query=word, filter={"content": {"$contains": word}}, min_score=0)
    return [hit["id"] for hit in found["results"]]


def test_a_server_and_its_sessions_share_one_memory(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, run_mcp(tmp_path) as one:
        one.greet()
        body = {"agent_id": "default", "type": "semantic", "content": "The staging port is 5433"}
        id = server.post("/v0/remember", body).json["id"]
        assert one.call("get", id=id)["content"] == "The staging port is 5433"
        waiting = one.call("remember", content="to be approved", approval_required=True)
        assert waiting["approval_url"].startswith(f"{server.url}/ui/inbox/")


# the embedder of a running server


class CountingEmbedder:
    """Stands for a model that is costly to load."""

    def __init__(self) -> None:
        self.inner = open_embedder("hashing")
        self.name, self.dimension = self.inner.name, self.inner.dimension
        self.asked = 0

    def embed(self, texts):
        self.asked += 1
        return self.inner.embed(texts)

    def unload(self) -> None:
        pass


def test_a_running_servers_embedder_is_used(tmp_path: Path) -> None:
    own = CountingEmbedder()
    embedder = SharedEmbedder(own, tmp_path)
    with run_server(tmp_path):
        found = embedder.embed(["Alice", "Bob"])
        assert own.asked == 0
        assert (found == own.inner.embed(["Alice", "Bob"])).all()
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / FILE).exists(), "the server withdrew its advertisement"
    assert running_server(tmp_path) is None
    embedder.embed(["Alice"])
    assert own.asked == 1


def test_a_data_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    """The store may be a database elsewhere, which makes no folder."""
    folder = tmp_path / "never" / "made"
    advertisement = Advertisement(folder)
    advertisement.publish("http://127.0.0.1:1")
    found = running_server(folder)
    advertisement.withdraw()
    assert found is not None
    assert (found.url, found.token) == ("http://127.0.0.1:1", advertisement.token)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("beside", [True, False])
def test_a_command_beside_a_server_loads_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], beside: bool
) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path))
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "encoder")
    loads: list[str] = []
    load = Encoder._load

    def counted(self: Encoder) -> Any:
        loads.append(self.name)
        return load(self)

    monkeypatch.setattr(Encoder, "_load", counted)

    def run(*command: str) -> Any:
        assert main([*command, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    with run_server(tmp_path, COMMONPLACE_EMBEDDER="encoder") if beside else nullcontext():
        id = run("remember", "Bob keeps bees")["id"]
        run("update", id, "--content", "Bob keeps bees and goats")
        found = run("recall", "what does Bob keep?", "--judge", "off")
    assert [hit["id"] for hit in found["results"]] == [id]
    assert "note" not in found, "searched by meaning, too"
    assert bool(loads) is not beside


class CountingEncoder(Encoder):
    asked = 0

    def encode(self, texts):
        self.asked += 1
        return super().encode(texts)


def test_a_running_servers_token_vectors_are_used(tmp_path: Path) -> None:
    own = CountingEncoder()
    embedder = SharedTokenEmbedder(own, tmp_path)
    texts = ["Alice (2024-01-02): I like the tea", "😀", "x" * 5000]
    with run_server(tmp_path, COMMONPLACE_EMBEDDER="encoder"):
        found = embedder.encode(texts)
        assert own.asked == 0
        for one, other in zip(found, Encoder().encode(texts), strict=True):
            for got, wanted in zip(one, other, strict=True):
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
                np.testing.assert_allclose(got, wanted, atol=1e-4)
    np.testing.assert_allclose(embedder.encode(texts)[0].tokens, found[0].tokens, atol=1e-4)
    assert own.asked == 1


def test_a_server_whose_embedder_has_no_tokens_is_not_used_for_them(tmp_path: Path) -> None:
    own = HashingTokens()
    with run_server(tmp_path):  # whose embedder has the same name
        (found,) = SharedTokenEmbedder(own, tmp_path).encode(["the tea"])
    assert own.passes == [["the tea"]]
    assert found.tokens.size


def test_a_server_that_was_killed_shares_nothing(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        assert running_server(tmp_path) is not None
        server.process.kill()
        server.process.wait()
        assert (tmp_path / FILE).read_text() != "", "it had no time to withdraw"
        assert running_server(tmp_path) is None


def test_a_server_shares_nothing_once_it_gives_up_its_address(tmp_path: Path) -> None:
    with run_server(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port)) as unfinished:
        unfinished.sendall(b"POST /v0/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        assert server.get("/v0/health").status == 200
        assert running_server(tmp_path) is not None
        server.process.send_signal(signal.SIGTERM)
        while True:
            try:
                socket.create_connection(("127.0.0.1", server.port)).close()
            except ConnectionRefusedError:
                break
            except ConnectionResetError:  # it was still waiting to be accepted when the port was closed
                continue
        assert running_server(tmp_path) is None
        assert server.process.poll() is None, "it still waits for what is in flight"


def test_a_file_that_someone_else_could_read_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / FILE
    file.write_text("theirs")
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    advertisement = Advertisement(tmp_path)
    advertisement.publish("http://127.0.0.1:1")
    assert file.read_text() == "theirs"
    advertisement.withdraw()
    assert running_server(tmp_path) is None


def test_a_pipe_in_the_files_place_makes_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    Advertisement(tmp_path).publish("http://127.0.0.1:1")
    assert running_server(tmp_path) is None


def test_what_a_killed_server_left_is_never_believed_of_the_next(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"url": "http://127.0.0.1:1", "token": "stale"}')
    assert running_server(tmp_path) is None
    first, second = Advertisement(tmp_path), Advertisement(tmp_path)
    first.publish("http://127.0.0.1:2")
    second.publish("http://127.0.0.1:3")
    found = running_server(tmp_path)
    assert found is not None
    assert (found.url, found.token) == ("http://127.0.0.1:2", first.token)
    second.withdraw()
    assert running_server(tmp_path) == found
    first.withdraw()
    assert running_server(tmp_path) is None


def test_the_token_of_the_embedder_opens_nothing_else(tmp_path: Path) -> None:
    cli(tmp_path, "remember", "a secret of Alice", "--agent", "alice")
    cli(tmp_path, "token", "create", "--role", "admin")
    with run_server(tmp_path, "--token-required") as server:
        shared = running_server(tmp_path)
        assert shared is not None
        embedded = server.post("/v1/embeddings", {"input": "x"}, token=shared.token)
        assert embedded.status == 200
        recalled = server.post("/v0/recall", {"agent_id": "alice", "query": "secret"}, token=shared.token)
        assert recalled.status == 403
        written = server.post("/v0/remember", {"agent_id": "a", "type": "semantic", "content": "x"}, token=shared.token)
        assert written.status == 403
        assert server.get("/v0/status", token=shared.token).json["agents"] == {}


def test_a_server_with_another_embedder_is_not_used(tmp_path: Path) -> None:
    own = CountingEmbedder()
    own.name = "something-else"
    with run_server(tmp_path):
        SharedEmbedder(own, tmp_path).embed(["Alice"])
    assert own.asked == 1
    assert environment(tmp_path)["COMMONPLACE_EMBEDDER"] == "hashing"


def test_a_session_asks_again_and_again_whether_its_model_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "IDLE_CHECK_SECONDS", 0.001)

    async def run() -> None:
        session = sessions.StdioSession(configure(data=tmp_path, embedder="hashing"))
        engine = await session.engine()
        assert await session.engine() is engine
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(
            engine._core.embedding, "unload_if_idle", lambda: loop.call_soon_threadsafe(asked.set), raising=True
        )
        async with asyncio.timeout(SECONDS):
            await asked.wait()
        await session.close()

    asyncio.run(run())
