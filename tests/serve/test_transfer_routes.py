"""Exports and imports over HTTP: the same file as the command's, of what the caller can read, and taken in alike."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import stat
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from conftest import TokenServer
from server_process import SECONDS, Answer, ServerProcess, command, environment, run_server, token
from starlette.datastructures import Headers

from commonplace.config import load as configure
from commonplace.engine_factory import open_engine
from commonplace.serve import http_io
from commonplace.serve.app import application
from commonplace.serve.server import address, listen, server_context, uvicorn_config
from commonplace.wire.errors import PayloadTooLarge, Unavailable
from commonplace.wire.record import Memory
from commonplace.wire.validate import check

pytestmark = pytest.mark.process
REPORT = "memorywire/operations/import.response"


def keep(server: ServerProcess, agent: str, text: str, who: str | None = None, **more: Any) -> str:
    body = {"agent_id": agent, "type": "semantic", "content": text, **more}
    answer = server.post("/v0/remember", body, token=who)
    assert answer.status == 200, answer.body
    return str(answer.json["id"])


def export(server: ServerProcess, query: str = "", who: str | None = None) -> bytes:
    answer = server.get(f"/v0/export{query}", token=who)
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == 'attachment; filename="commonplace-export.jsonl"'
    assert answer.headers["cache-control"] == "no-store"
    return answer.body


def taken(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    check(REPORT, answer.json)
    return answer.json


def told(answer: Answer, status: int, code: str) -> str:
    assert (answer.status, answer.code) == (status, code), answer.body
    check("memorywire/error", answer.json)
    return str(answer.json["error"]["message"])


def agents_in(data: bytes) -> set[str]:
    return {line["agent_id"] for line in map(json.loads, data.splitlines()) if "agent_id" in line}


def spooled(data: Path) -> list[str]:
    return [path.name for path in data.iterdir() if path.name.startswith("import-")]


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with something of every kind that travels."""
    with run_server(tmp_path_factory.mktemp("holder")) as server:
        first = keep(server, "ada", "Alice likes tea", metadata={"tags": ["drink"]}, user_id="alice")
        changed = {"agent_id": "ada", "content": "Alice likes green tea"}
        assert server.call("PATCH", f"/v0/memories/{first}", changed).status == 200
        keep(server, "ada", "Bob's cat is called Łódź 🐈", user_id="bob")
        keep(server, "bea", "Bob moved to Utrecht", user_id="bob")
        fact = {"agent_id": "ada", "subject": "Alice", "predicate": "likes", "object": "tea"}
        assert server.post("/v0/kg/assert", fact).status == 200
        yield server


def by_command(data: Path, *args: str) -> bytes:
    done = subprocess.run(
        command("export", *args), env=environment(data), capture_output=True, timeout=SECONDS, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("query", "args", "agents"),
    [
        ("", (), {"ada", "bea"}),
        ("?agent_id=ada", ("--agent", "ada"), {"ada"}),
        ("?user_id=bob", ("--user", "bob"), {"ada", "bea"}),
        ("?agent_id=ada&user_id=alice", ("--agent", "ada", "--user", "alice"), {"ada"}),
    ],
)
def test_it_is_the_file_that_the_command_writes(
    holder: ServerProcess, query: str, args: tuple[str, ...], agents: set[str]
) -> None:
    data = export(holder, query)
    assert data == by_command(holder.data, *args)
    assert agents_in(data) == agents
    assert json.loads(data.splitlines()[-1])["record"] == "manifest"
    head = holder.call("HEAD", f"/v0/export{query}")
    assert (head.status, head.body, head.headers["content-type"]) == (200, b"", "application/x-ndjson")


def test_export_import_export_gives_the_same_bytes(holder: ServerProcess, tmp_path: Path) -> None:
    data = export(holder)
    with run_server(tmp_path) as there:
        would = taken(there.post("/v0/import?dry_run=true", data))
        assert (would["dry_run"], would["written"]) == (True, {"memory": 3, "statement": 1})
        assert there.get("/v0/memories?agent_id=ada").json["memories"] == []
        assert agents_in(export(there)) == set()
        done = taken(there.post("/v0/import", data, headers={"Content-Type": "application/x-ndjson"}))
        assert (done["dry_run"], done["written"], done["agents"]) == (False, would["written"], {"ada": 2, "bea": 1})
        assert export(there) == data
        again = taken(there.post("/v0/import", data))
        assert (again["written"], again["known"]) == ({}, {"memory": 3, "statement": 1})
        erased = there.get("/v0/memories?agent_id=bea").json["memories"][0]["id"]
        there.post("/v0/forget", {"agent_id": "bea", "ids": [erased], "hard_delete": True})
        left = taken(there.post("/v0/import", data))
        assert [(each["reason"], each["count"]) for each in left["left_out"]] == [("it was erased here", 1)]
        assert taken(there.post("/v0/import?restore_erased=true", data))["written"] == {"memory": 1}
        assert export(there) == data
        assert spooled(tmp_path) == []


def test_it_answers_as_the_command_does(holder: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "everything.jsonl"
    file.write_bytes(export(holder))
    done = subprocess.run(
        command("import", str(file), "--json", "--dry-run"), env=environment(tmp_path / "there"),
        capture_output=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    (said,) = json.loads(done.stdout)["files"]
    assert said.pop("file") == str(file)
    with run_server(tmp_path / "here") as here:
        assert taken(here.post("/v0/import?dry_run=true", file.read_bytes())) == said


# who may


def test_each_caller_carries_away_what_they_can_read(guarded: TokenServer) -> None:
    server, tokens = guarded.server, guarded.tokens
    word = f"word{uuid.uuid4().hex}"
    keep(server, "ada", f"acme's {word} of ada", tokens["acme"])
    keep(server, "bea", f"acme's {word} of bea", tokens["acme"])
    keep(server, "ada", f"globex's {word}", tokens["globex"])
    assert server.get("/v0/export").status == 401
    for who, says in {
        "acme/reader": {f"acme's {word} of ada", f"acme's {word} of bea"},
        "acme/ada": {f"acme's {word} of ada"},
        "globex/ada": {f"globex's {word}"},
        "globex/bea": set(),
    }.items():
        lines = map(json.loads, export(server, "", tokens[who]).splitlines())
        texts = {each["content"] for line in lines for each in line.get("versions", ())}
        assert {text for text in texts if word in text} == says, who
    assert "agent" in told(server.get("/v0/export?agent_id=bea", token=tokens["acme/ada"]), 403, "forbidden")
    assert "'nobody'" in told(server.get("/v0/export?agent_id=nobody", token=tokens["acme"]), 404, "not_found")


def test_only_an_admin_of_the_agent_takes_in(guarded: TokenServer, holder: ServerProcess) -> None:
    server, tokens = guarded.server, guarded.tokens
    data = export(holder, "?agent_id=bea")
    assert told(server.post("/v0/import", data), 401, "unauthenticated")
    before = {who: export(server, "", tokens[who]) for who in ("acme", "globex")}
    for who in ("acme/reader", "acme/writer", "acme/ada"):
        assert "role" in told(server.post("/v0/import", data, token=tokens[who]), 403, "forbidden")
    own = token(server.data, "--role", "admin", "--tenant", "acme", "--agents", "ada", "--name", f"a{uuid.uuid4().hex}")
    report = taken(server.post("/v0/import", data, token=own))
    assert (report["written"], [each["count"] for each in report["left_out"]]) == ({}, [1])
    assert {who: export(server, "", tokens[who]) for who in before} == before
    assert taken(server.post("/v0/import", data, token=tokens["globex"]))["agents"] == {"bea": 1}
    assert export(server, "", tokens["acme"]) == before["acme"]
    assert b"Utrecht" in export(server, "?agent_id=bea", tokens["globex"])


def test_what_a_rule_withholds_or_refuses_does_not_travel(holder: ServerProcess, tmp_path: Path) -> None:
    data = export(holder)
    (tmp_path / "commonplace.toml").write_text(
        '[[policy]]\nname = "unread"\naction = "reject"\nwhen = { content = "green", operation = "recall" }\n'
        '[[policy]]\nname = "kept out"\naction = "reject"\nwhen = { content = "Utrecht", operation = "remember" }\n'
    )
    with run_server(tmp_path) as there:
        report = taken(there.post("/v0/import", data))
        (left,) = report["left_out"]
        assert ("'kept out' refuses" in left["reason"], left["count"]) == (True, 1)
        keep(there, "ada", "one version about green apples")
        out = export(there)
        assert not [word for word in (b"Utrecht", b"green", b"Alice likes tea") if word in out]
        assert "Łódź".encode() in out


# what is wrong


@pytest.mark.parametrize("path", ["/v0/export?agent=ada", "/v0/import?dryrun=true", "/v0/export?dry_run=true"])
def test_a_parameter_that_is_unknown_is_refused(holder: ServerProcess, path: str) -> None:
    answer = holder.get(path) if "export" in path else holder.post(path, b"")
    assert "unknown query parameter" in told(answer, 400, "validation_error")


@pytest.mark.parametrize("text", ["1", "yes", "True", ""])
def test_an_option_is_true_or_false(holder: ServerProcess, text: str) -> None:
    answer = holder.post(f"/v0/import?dry_run={text}", export(holder))
    assert "dry_run must be true or false" in told(answer, 400, "validation_error")


def test_a_method_that_is_wrong_is_refused(holder: ServerProcess) -> None:
    assert holder.post("/v0/export", b"").status == 405
    assert holder.get("/v0/import").status == 405


def test_a_broken_file_is_refused_by_line_and_reason_and_nothing_of_it_is_taken(
    holder: ServerProcess, tmp_path: Path
) -> None:
    lines = export(holder).splitlines(keepends=True)
    lines[1] = lines[1][:-3] + b"\n"
    with run_server(tmp_path) as there:
        empty = export(there)
        answer = there.post("/v0/import", b"".join(lines))
        said = told(answer, 400, "validation_error")
        assert "the body: line 2: " in said
        assert "nothing was imported" in said
        assert "skip_broken=true" in said
        assert answer.json["error"]["details"]["broken"][0].startswith("line 2: ")
        cut = told(there.post("/v0/import", b"".join(lines[:-1])), 400, "validation_error")
        assert "the file ends without its manifest" in cut
        for other in (b"", b"{}", b"not a file of ours", b"\xff\xfe", b'{"agent_id": "ada"}\n'):
            assert "line 1" in told(there.post("/v0/import", other), 400, "validation_error")
        assert export(there) == empty
        rest = taken(there.post("/v0/import?skip_broken=true", b"".join(lines)))
        assert (rest["written"], rest["broken"][0]["where"]) == ({"memory": 2, "statement": 1}, "line 2")
        assert spooled(tmp_path) == []


def test_a_file_that_is_too_large_is_refused_and_not_kept(tmp_path: Path) -> None:
    with run_server(tmp_path, COMMONPLACE_MAX_BODY="1024") as server:
        limit = 64 * 1024
        for size in (limit + 1, 3 * limit):
            answer = server.post("/v0/import", b" " * size)
            assert "at most 65,536 bytes" in told(answer, 413, "payload_too_large")
        assert "line 1" in told(server.post("/v0/import", b" " * limit), 400, "validation_error")
        assert spooled(tmp_path) == []
        assert server.get("/healthz").status == 200


def test_what_is_received_lies_where_nobody_else_can_open_it(tmp_path: Path) -> None:
    async def spool(size: int) -> None:
        parts = iter([b"x" * size, b""])

        async def receive() -> Any:
            part = next(parts)
            return {"type": "http.request", "body": part, "more_body": bool(part)}

        async with http_io.spooled_body(Headers(), receive, 100, tmp_path) as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
            assert os.fstat(file.fileno()).st_dev == tmp_path.stat().st_dev
            file.seek(0)
            assert file.read() == b"x" * size

    asyncio.run(spool(100))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PayloadTooLarge):
        asyncio.run(spool(101))
    assert list(tmp_path.iterdir()) == []
    tmp_path.rmdir()
    with pytest.raises(Unavailable, match="could not be kept on disk: No such file"):
        asyncio.run(spool(1))


# what breaks off


@asynccontextmanager
async def served(
    tmp_path: Path, traced: list[int] | None = None
) -> AsyncIterator[tuple[Any, http.client.HTTPConnection]]:
    """The engine of a server in this process, and a connection to it; how each request ended goes to `traced`."""
    config = configure(data=tmp_path, embedder="none")
    engine = await open_engine(config)
    sock = listen("127.0.0.1", 0)
    context = await server_context(config, engine)
    if traced is not None:
        context.tracer = lambda operation, headers: nullcontext(traced.append)
    server = uvicorn.Server(uvicorn_config(application(context), config))
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    connection = http.client.HTTPConnection(address(sock).removeprefix("http://"), timeout=SECONDS)
    try:
        yield engine, connection
    finally:
        connection.close()
        server.should_exit = True
        await serving
        await engine.close()


def read_all(connection: http.client.HTTPConnection) -> bytes:
    connection.request("GET", "/v0/export")
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


def many(text: str) -> list[Memory]:
    return [Memory(str(uuid.uuid4()), "", "ada", "semantic", text)]


@pytest.mark.parametrize("error", [Unavailable("the store is gone"), RuntimeError("a secret memory")])
def test_what_breaks_off_does_not_look_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def memories(self: Any, *args: Any) -> AsyncIterator[list[Memory]]:
        for _ in range(50):
            yield many("x" * 4000)
        raise error

    async def run() -> bytes:
        async with served(tmp_path, traced) as (engine, connection):
            monkeypatch.setattr(type(engine.exports), "agents", agents)
            monkeypatch.setattr(type(engine.exports), "memories", memories)
            with pytest.raises(http.client.IncompleteRead) as broken:
                await asyncio.to_thread(read_all, connection)
            return broken.value.partial

    caplog.set_level("INFO", "commonplace.access")
    traced: list[int] = []
    got = asyncio.run(run())
    assert traced == [503]
    assert got.startswith(b'{"format"')
    assert b"manifest" not in got
    (line,) = [record.fields for record in caplog.records if getattr(record, "fields", {}).get("event") == "request"]
    assert (line["operation"], line["status"], line["fault"]) == ("export", 503, "unavailable")
    assert "a secret memory" not in caplog.text


async def agents(self: Any, *args: Any) -> list[str]:
    return ["ada"]


def test_a_client_that_leaves_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def memories(self: Any, *args: Any) -> AsyncIterator[list[Memory]]:
            try:
                while True:
                    await asyncio.sleep(0)
                    yield many("x" * 4000)
            finally:
                ended.set()

        def leave(connection: http.client.HTTPConnection) -> None:
            connection.request("GET", "/v0/export")
            assert connection.getresponse().read(10)
            connection.close()

        async with served(tmp_path) as (engine, connection):
            monkeypatch.setattr(type(engine.exports), "agents", agents)
            monkeypatch.setattr(type(engine.exports), "memories", memories)
            await asyncio.to_thread(leave, connection)
            await asyncio.wait_for(ended.wait(), SECONDS)

    asyncio.run(run())
