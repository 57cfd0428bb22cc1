"""The server's life: it starts once, says little, keeps its limits, and finishes what it began before it goes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from page_browser import Visitor
from server_process import SECONDS, STORE, Answer, ServerProcess, command, environment, run_server, token

from commonplace.cli import serve
from commonplace.config import Config

SECRET_WORDS = ("marzipan", "albatross", "tambourine")
#: Requests one after the other, where one a second is allowed: some are refused unless each takes almost a second.
MORE_THAN_ALLOWED = 40


def remember(server: ServerProcess, content: str, **more: Any) -> Answer:
    return server.post("/v0/remember", {"agent_id": "life", "type": "semantic", "content": content}, **more)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_in_flight_is_finished(tmp_path: Path, number: int) -> None:
    answers: list[Answer] = []
    with run_server(tmp_path) as server:
        # Long ones: short ones are written while uvicorn still waits for whoever is about to hang up.
        texts = [f"fact {i} " + "Alice and Bob walk by the harbour " * 60 for i in range(1000)]
        batch = {"items": [{"agent_id": "life", "type": "semantic", "content": text} for text in texts]}
        arrived = threading.Thread(target=lambda: answers.append(server.post("/v0/remember/batch", batch)))
        arrived.start()
        while _in_flight(server) < 2 and arrived.is_alive():  # the batch, and the request that asks
            pass
        assert server.stop(number) == 0
        arrived.join(SECONDS)
        (answer,) = answers
        assert answer.status == 200
        assert len(answer.json["results"]) == 1000
    with run_server(tmp_path) as again:
        ids = [result["id"] for result in answer.json["results"]]
        page = again.get("/v0/memories?agent_id=life&limit=1000").json["memories"]
        assert sorted(m["id"] for m in page) == sorted(ids)


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which whoever runs tests in the background has turned off
from pathlib import Path
from commonplace.config import load
from commonplace.serve.server import run
run(load(data=Path(sys.argv[1]), port=0), lambda *_: signal.raise_signal(int(sys.argv[2])))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_whoever_interrupts_a_start_is_heard(tmp_path: Path, number: int, code: int) -> None:
    """Up to the last moment before it serves: it is about to say that it does."""
    started = [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(int(number))]
    done = subprocess.run(started, env=environment(tmp_path), capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == code, done.stderr
    assert not list(tmp_path.glob("server*")), "nobody shares an embedder there any more"


def _in_flight(server: ServerProcess) -> float:
    for line in server.get("/metrics").body.decode().splitlines():
        if line.startswith("commonplace_requests_in_flight "):
            return float(line.split()[1])
    raise AssertionError("not counted")


def test_recalls_written_behind_are_kept_by_a_clean_stop(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        id = remember(server, "the kettle is on").json["id"]
        assert server.post("/v0/recall", {"agent_id": "life", "query": "kettle"}).json["results"]
        assert server.stop() == 0
    with run_server(tmp_path) as again:
        assert again.get(f"/v0/memories/{id}?agent_id=life").json["recalls"] == 1


def test_the_log_never_says_what_was_said(tmp_path: Path) -> None:
    secret = token(tmp_path, "--role", "admin", "--name", "alice")
    with run_server(tmp_path) as server:
        id = remember(server, SECRET_WORDS[0], token=secret).json["id"]
        server.post("/v0/recall", {"agent_id": "life", "query": SECRET_WORDS[1]}, token=secret)
        server.get(f"/v0/memories?agent_id=life&tag={SECRET_WORDS[2]}", token=secret)
        server.post(
            "/v0/remember", {"agent_id": "life", "content": SECRET_WORDS[0], "type": SECRET_WORDS[1]}, token=secret
        )
        server.get(f"/v0/{SECRET_WORDS[2]}", token=f"cp_{SECRET_WORDS[0]}_x")
        server.stop()
        lines = [json.loads(line) for line in server.err]
    requests = [line for line in lines if line.get("event") == "request"]
    assert {"operation": "remember", "status": 200, "principal": "alice"}.items() <= requests[-5].items()
    assert all(line.keys() >= {"at", "level", "id", "ms"} for line in requests)
    said = "".join(server.err) + "".join(server.out)
    for word in (*SECRET_WORDS, secret, secret.split("_", 2)[2], id):
        assert word not in said


def test_what_is_printed_works_as_it_is(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        printed = "".join(server.out)
        assert (str(tmp_path) if STORE == "sqlite" else f"{STORE}://…@") in printed
        while "Ctrl-C" not in printed:
            printed = "".join(server.out)
        calls = [line.strip() for line in printed.splitlines() if line.strip().startswith("curl ")]
        assert len(calls) == 2
        for line in calls:
            _, _, url, _, body = line.split(maxsplit=4)
            assert server.post(url.removeprefix(server.url), json.loads(body.strip("'"))).status == 200
        assert server.post("/v0/recall", {"agent_id": "default", "query": "peanuts"}).json["results"]


@pytest.mark.parametrize("announce", [serve._announce, serve._announce_json])
def test_what_is_printed_holds_no_password(announce: Any, capsys: pytest.CaptureFixture[str]) -> None:
    store = "postgresql://alice:hunter22@db.example.com/memories"
    announce(Config(Path("nowhere"), store=store), "http://127.0.0.1:8420", True)
    printed = capsys.readouterr().out
    assert "postgresql://…@db.example.com/memories" in printed.replace("\\u2026", "…")
    assert "hunter22" not in printed


def test_a_port_in_use_is_said_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = subprocess.run(
            command("serve", "--port", str(taken.getsockname()[1])), env=environment(tmp_path), capture_output=True,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_token_has_its_rate(tmp_path: Path) -> None:
    secrets = [token(tmp_path, "--name", name) for name in ("alice", "bob")]
    with run_server(tmp_path, COMMONPLACE_RATE_LIMIT="1") as server:
        answers = [server.get("/v0/health", token=secrets[0]) for _ in range(MORE_THAN_ALLOWED)]
        limited = [a for a in answers if a.status == 429]
        assert {a.status for a in answers} == {200, 429}
        assert (limited[0].code, int(limited[0].headers["retry-after"]) >= 1) == ("rate_limited", True)
        assert server.get("/v0/health", token=secrets[1]).status == 200
        assert server.get("/healthz").status == 200


def test_a_login_is_paid_for(tmp_path: Path) -> None:
    secret = token(tmp_path, "--name", "alice")
    with run_server(tmp_path, COMMONPLACE_RATE_LIMIT="1") as server:
        visitor = Visitor(server)
        form = [("csrf", visitor.csrf()), ("token", secret)]
        session = visitor.cookie
        found = []
        for _ in range(MORE_THAN_ALLOWED):
            visitor.cookie = session
            found.append(visitor.post_raw("/ui/login", form).status)
        assert set(found) == {303, 429}


def test_every_call_of_a_batch_is_paid_for(tmp_path: Path) -> None:
    secret = token(tmp_path, "--name", "alice")
    with run_server(tmp_path, COMMONPLACE_RATE_LIMIT="1") as server:
        calls = [{"jsonrpc": "2.0", "id": i, "method": "memory.health"} for i in range(200)]
        answers = server.post("/v0/rpc", calls, token=secret).json
        assert [a["id"] for a in answers] == list(range(200))
        assert all("result" in a for a in answers[:2])
        refused = [a["error"]["data"]["code"] for a in answers if "error" in a]
        assert set(refused) == {"rate_limited"}
        assert len(refused) > 150


def test_each_agent_has_its_recalls(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_RECALL_BUDGET="3") as server:
        recall = {"agent_id": "life", "query": "tea"}
        answers = [server.post("/v0/recall", recall) for _ in range(4)]
        assert [a.status for a in answers] == [200, 200, 200, 429]
        assert answers[3].code == "rate_limited"
        assert 1 <= int(answers[3].headers["retry-after"]) <= 20  # a third of a minute, less what the four took
        assert server.post("/v0/recall", {**recall, "agent_id": "other"}).status == 200
        assert server.post("/amp/search", {"query": "tea", "agent": "life"}).status == 429
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "memory.recall", "params": recall}
        assert server.post("/v0/rpc", rpc).json["error"]["data"]["code"] == "rate_limited"
        assert remember(server, "writing goes on").status == 200


def test_limits_and_names_can_be_set(tmp_path: Path) -> None:
    with run_server(tmp_path, "--max-body", "1000", "--allow-host", "memory.example") as server:
        assert remember(server, "x" * 900).status == 200
        assert remember(server, "x" * 1100).status == 413
        assert server.get("/v0/health", headers={"Host": "memory.example"}).status == 200
        assert server.get("/v0/health", headers={"Host": "other.example"}).status == 403


def test_a_request_that_never_ends_is_given_up(tmp_path: Path) -> None:
    with (
        run_server(tmp_path, COMMONPLACE_REQUEST_TIMEOUT="1") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as line,
    ):
        line.sendall(b"POST /v0/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        answer = b"".join(iter(lambda: line.recv(4096), b""))  # until the server hangs up
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"longer than 1 s" in answer


@pytest.mark.parametrize("settings", [
    {"COMMONPLACE_RATE_LIMIT": "-1"}, {"COMMONPLACE_PORT": "x"}, {"COMMONPLACE_TOKEN_REQUIRED": "perhaps"},
    {"COMMONPLACE_TRACES": "jaeger"},
])  # fmt: skip
def test_a_setting_that_makes_no_sense_is_named(tmp_path: Path, settings: dict[str, str]) -> None:
    done = subprocess.run(
        command("serve"), env=environment(tmp_path, **settings), capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert next(iter(settings)).removeprefix("COMMONPLACE_").lower() in done.stderr
