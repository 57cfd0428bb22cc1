"""`commonplace mcp` on stdin and stdout: its handshake, what it makes of bad input, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp_process import MODERN, McpProcess, enveloped, greeting, run_mcp
from server_process import SECONDS, cli, command, environment

from commonplace.config import load as configure
from commonplace.serve.mcp import stdio
from commonplace.serve.mcp.sessions import StdioSession
from commonplace.serve.mcp.tools import McpSession, ToolSet
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS
from commonplace.serve.protocols import load_tool_set


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory):
    with run_mcp(tmp_path_factory.mktemp("talker")) as one:
        one.greet()
        yield one


# the handshake


@pytest.mark.parametrize("era", HANDSHAKE_VERSIONS)
def test_a_handshake_answers_in_the_era_it_was_asked_in(tmp_path: Path, era: str) -> None:
    with run_mcp(tmp_path) as one:
        answered = one.result("initialize", greeting(era))
    assert answered["protocolVersion"] == era
    assert answered["serverInfo"]["name"] == "commonplace"
    assert ("title" in answered["serverInfo"]) is (era >= "2025-06-18")
    assert answered["capabilities"].keys() - {"completions"} == {"tools", "resources", "prompts"}
    assert ("completions" in answered["capabilities"]) is (era >= "2025-03-26")
    assert "Recall before you answer" in answered["instructions"]
    assert "relevance below about 0.1" in answered["instructions"]


def test_an_unknown_version_is_offered_the_newest_with_a_handshake(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        assert one.result("initialize", greeting("2031-01-01"))["protocolVersion"] == HANDSHAKE_VERSIONS[-1]
        assert one.result("initialize", greeting(MODERN))["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


@pytest.mark.parametrize(
    ("era", "has"),
    [
        ("2024-11-05", set()),
        ("2025-03-26", {"annotations"}),
        ("2025-06-18", {"annotations", "title", "outputSchema"}),
        ("2025-11-25", {"annotations", "title", "outputSchema"}),
        (MODERN, {"annotations", "title", "outputSchema"}),
    ],
)
def test_each_era_is_shown_only_what_it_knows(tmp_path: Path, era: str, has: set[str]) -> None:
    with run_mcp(tmp_path, "--tools", "full") as one:
        one.greet(era)
        for tool in one.result("tools/list")["tools"]:
            assert set(tool) == {"name", "description", "inputSchema"} | has
        result = one.result("tools/call", {"name": "list", "arguments": {}})
        assert json.loads(result["content"][0]["text"]) == {"memories": []}
        assert ("structuredContent" in result) is (era >= "2025-06-18")


def test_the_stateless_era_needs_no_handshake(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        one.era = MODERN
        found = one.result("server/discover")
        assert found["supportedVersions"] == [MODERN]
        assert found["resultType"] == "complete"
        assert found["cacheScope"] == "private"
        assert found["ttlMs"] > 0
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "commonplace"
        listed = one.result("tools/list")
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
        called = one.result("tools/call", {"name": "list", "arguments": {}})
        assert called["resultType"] == "complete"
        assert "ttlMs" not in called
        assert one.ask("ping")["error"]["code"] == -32601
        assert one.ask("initialize", greeting("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"


def test_a_version_nobody_speaks_is_refused_with_those_we_do(talker: McpProcess) -> None:
    wrong = talker.ask("tools/list", enveloped({}, "2031-01-01"))["error"]
    assert wrong["code"] == -32022
    assert wrong["data"] == {"supported": [MODERN], "requested": "2031-01-01"}
    half = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
    assert talker.ask("tools/list", half)["error"]["code"] == -32602


def test_ping(talker: McpProcess) -> None:
    assert talker.result("ping") == {}


# bad input: the documented code, and the loop lives on

BAD = {
    "broken UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n', -32700, None),
    "no JSON": (b"hello\n", -32700, None),
    "half an object": (b'{"jsonrpc":"2.0","id":\n', -32700, None),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}\n', -32700, None),
    "nested deeply": (b"[" * 200_000 + b"\n", -32700, None),
    "a huge number": (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}\n', -32700, None),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, None),
    "an empty batch": (b"[]\n", -32600, None),
    "a string": (b'"ping"\n', -32600, None),
    "null": (b"null\n", -32600, None),
    "no version": (b'{"id":7,"method":"ping"}\n', -32600, 7),
    "no method": (b'{"jsonrpc":"2.0","id":7}\n', -32600, 7),
    "a method of a number": (b'{"jsonrpc":"2.0","id":7,"method":5}\n', -32600, 7),
    "an id of null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
    "an id of true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', -32600, None),
    "an endless id": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}\n', -32600, None),
    "an id of a list": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}\n', -32600, None),
    "10 MB in a line": (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 10_000_000 + b'"}\n', -32600, None),
    "an unknown method": (b'{"jsonrpc":"2.0","id":7,"method":"memory/all"}\n', -32601, 7),
    "params that are a list": (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}\n', -32602, 7),
    "a call of nothing": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}\n', -32602, 7),
    "an unknown tool": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}\n', -32602, 7),
    "arguments that are a list": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get","arguments":[1]}}\n', -32602, 7,
    ),
    "a cursor we never gave": (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}\n', -32602, 7),
    "an unknown resource": (
        b'{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}\n', -32002, 7,
    ),
    "an unknown prompt": (b'{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"x"}}\n', -32602, 7),
    "a version of a number": (
        b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":5}}\n', -32602, 7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_answered_and_the_loop_lives_on(talker: McpProcess, what: str) -> None:
    data, code, id = BAD[what]
    talker.write(data)
    answer = talker.read()
    assert (answer["error"]["code"], answer["id"]) == (code, id)
    assert answer["error"]["message"]
    assert talker.result("ping") == {}


def test_what_needs_no_answer_gets_none(talker: McpProcess) -> None:
    talker.write(b"\n  \r\n")
    talker.write(b'{"jsonrpc":"2.0","id":3,"result":{}}\n{"jsonrpc":"2.0","method":"notifications/unheard"}\n')
    talker.write(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n')
    assert talker.result("ping") == {}


def test_a_line_may_end_as_on_windows_and_arrive_in_pieces(talker: McpProcess) -> None:
    talker.write(b'{"jsonrpc":"2.0","id":"a b","meth')
    talker.write(b'od":"ping"}\r\n{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n')
    assert [talker.read()["id"], talker.read()["id"]] == ["a b", 1.5]


def test_half_a_line_at_the_end_is_answered(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        one.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"met')
        assert one.hang_up() == 0
        assert one.read()["id"] == 1
        assert one.read()["error"]["code"] == -32700
        assert one.read() is None
    with run_mcp(tmp_path) as one:
        one.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')  # whole, only its end of line is missing
        assert one.hang_up() == 0
        assert one.read()["result"] == {}


def test_input_may_be_a_file(tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    with asked.open("rb") as stdin:
        done = subprocess.run(
            command("mcp"), stdin=stdin, capture_output=True, env=environment(tmp_path / "data"), timeout=SECONDS,
            check=True,
        )  # fmt: skip
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


# many at once


def test_answers_never_run_into_each_other(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        one.greet()
        ids = {
            one.send("tools/call", {"name": "remember", "arguments": {"content": f"note {n} " + "x" * 20_000}})
            for n in range(150)
        }
        assert {one.read()["id"] for _ in ids} == ids
        big = one.send("tools/call", {"name": "list", "arguments": {"limit": 150}})
        small = [one.send("ping") for _ in range(50)]
        assert {one.read()["id"] for _ in range(51)} == {big, *small}
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in one.lines)


def test_a_cancelled_call_is_not_answered(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        one.greet()
        # In one write, so that the call is cancelled before it can be done: the engine is not even open.
        call = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "list", "arguments": {}}}
        stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77, "reason": "no"}}
        one.write(json.dumps(call).encode() + b"\n" + json.dumps(stop).encode() + b"\n")
        assert one.call("list") == {"memories": []}
        assert 77 not in [json.loads(line).get("id") for line in one.lines]


def _with_modules_of(folder: Path) -> str:
    """The package that is tested stays where this process found it."""
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def test_stdout_carries_messages_only(tmp_path: Path) -> None:
    """What a library prints, in Python or below it, goes to stderr."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, threading\n"
        "def shout():\n"
        "    open(os.environ['SHOUT']).read()\n"
        "    print('from Python')\n"
        "    os.write(1, b'from below\\n')\n"
        "if os.environ.get('SHOUT'):\n"
        "    threading.Thread(target=shout, daemon=True).start()\n"
    )
    now = tmp_path / "now"
    os.mkfifo(now)  # whoever reads it waits for whoever writes it
    with run_mcp(tmp_path / "data", PYTHONPATH=_with_modules_of(tmp_path), SHOUT=str(now)) as one:
        one.greet()
        one.call("remember", content="Alice is allergic to peanuts")
        now.write_text("")
        heard: set[bytes] = set()
        while not {b"from Python\n", b"from below\n"} <= heard:
            heard.add(one.process.stderr.readline())  # type: ignore[union-attr]
        assert one.result("ping") == {}
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in one.lines)


# the end


@pytest.fixture
def watchdogs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those that were set, none of which ends this process."""
    found: list[Any] = []

    class RecordedTimer(threading.Timer):
        def start(self) -> None:
            found.append(self)

    monkeypatch.setattr(stdio.threading, "Timer", RecordedTimer)
    return found


def test_stopping_is_cut_off_before_two_seconds(tmp_path: Path, watchdogs: list[Any]) -> None:
    """Whatever hangs: from the moment it is told to stop, a watchdog is set that ends the process, once."""

    async def stop_twice() -> None:
        reading, writing = os.pipe()
        options = stdio.Options()
        server = stdio.StdioServer(configure(data=tmp_path), load_tool_set("commonplace"), options, reading, writing)
        server.stop()
        server.stop()
        os.close(reading)
        os.close(writing)

    asyncio.run(stop_twice())
    (watchdog,) = watchdogs
    assert watchdog.daemon
    assert (watchdog.function, watchdog.args) == (os._exit, (0,))
    assert stdio.GRACE_SECONDS < watchdog.interval < 2


class Pipes:
    """Both ends of stdin and stdout, for a server in this process."""

    def __init__(self) -> None:
        (self.stdin, self.client_out), (self.client_in, self.stdout) = os.pipe(), os.pipe()

    def server(self, data: Path, tools: ToolSet) -> stdio.StdioServer:
        return stdio.StdioServer(configure(data=data), tools, stdio.Options(), self.stdin, self.stdout)

    def ask(self, method: str, id: Any = 1, /, **params: Any) -> bytes:
        return self._write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> bytes:
        asked = json.dumps(message).encode() + b"\n"
        os.write(self.client_out, asked)
        return asked

    def stop_reading(self) -> None:
        os.close(self.client_in)
        self.client_in = -1

    def hang_up(self) -> None:
        os.close(self.client_out)
        self.client_out = -1

    @property
    def answer(self) -> Any:
        """None while there is none."""
        return next(iter(self.answers), None)

    @property
    def answers(self) -> list[Any]:
        """Those that have come since."""
        if not select.select([self.client_in], [], [], 0)[0]:
            return []
        return [json.loads(line) for line in os.read(self.client_in, 65_536).splitlines()]

    def close(self) -> None:
        for descriptor in (self.stdin, self.client_out, self.client_in, self.stdout):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipes(watchdogs: list[Any]) -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


@pytest.mark.parametrize("tools", ["commonplace", "trusty"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_read_after_a_signal(tmp_path: Path, pipes: Pipes, number: signal.Signals, tools: str) -> None:
    async def serve() -> bytes:
        running = asyncio.create_task(pipes.server(tmp_path, load_tool_set(tools)).run())
        pipes.ask("ping")
        while (answer := pipes.answer) is None:
            await asyncio.sleep(0)
        assert answer["result"] == {}
        os.kill(os.getpid(), number)
        await running
        asked = pipes.ask("ping")
        for _ in range(10):  # turns of the loop, in each of which it would read what is there
            await asyncio.sleep(0)
        return asked

    asked = asyncio.run(asyncio.wait_for(serve(), SECONDS))
    assert select.select([pipes.stdin], [], [], 0)[0], "it was read"
    assert os.read(pipes.stdin, 1000) == asked
    assert pipes.answer is None


@pytest.mark.parametrize("tools", ["commonplace", "trusty"])
@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT], ids=["EOF", "SIGTERM", "SIGINT"])
def test_a_call_that_was_begun_is_finished_and_answered(
    tmp_path: Path, pipes: Pipes, watchdogs: list[Any], number: signal.Signals | None, tools: str
) -> None:
    async def serve() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def work(session: McpSession, arguments: Any) -> Any:
            begun.set()
            await may_end.wait()
            return {"kept": True}

        offered = load_tool_set(tools)
        slow = offered.tools[0]._replace(name="slow", handler=work)
        running = asyncio.create_task(pipes.server(tmp_path, offered._replace(tools=(slow,))).run())
        pipes.ask("tools/call", name="slow", arguments={})
        await begun.wait()
        if number is None:
            pipes.hang_up()
        else:
            os.kill(os.getpid(), number)
        while not watchdogs:  # which is set by the first step of stopping
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        may_end.set()
        await running

    asyncio.run(asyncio.wait_for(serve(), SECONDS))
    assert json.loads(pipes.answer["result"]["content"][0]["text"]) == {"kept": True}


CALLS = {
    "commonplace": ("remember", {"content": "Alice moved to Lisbon"}),
    "amp": ("amp_store", {"record": {"type": "note", "content": "Alice moved to Lisbon"}}),
    "trusty": ("palace_create", {"name": "lisbon"}),
}


@pytest.fixture
def slow_opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """The engine opens once it is set."""
    may_open = asyncio.Event()
    at_once = StdioSession._open

    async def wait_and_open(self: StdioSession) -> Any:
        await may_open.wait()
        return await at_once(self)

    monkeypatch.setattr(StdioSession, "_open", wait_and_open)
    return may_open


def _ask_and_hang_up(pipes: Pipes, tools: str, ids: Sequence[Any]) -> None:
    name, arguments = CALLS[tools]
    pipes.ask("initialize", **greeting("2025-11-25"))
    for id in ids:
        pipes.ask("tools/call", id, name=name, arguments=arguments)
    pipes.hang_up()


@pytest.mark.parametrize("tools", CALLS)
def test_calls_that_wait_for_a_slow_opening_are_done_after_the_end_of_input(
    tmp_path: Path,
    pipes: Pipes,
    watchdogs: list[Any],
    slow_opening: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    tools: str,
) -> None:
    monkeypatch.setattr(stdio, "GRACE_SECONDS", SECONDS)  # however busy this machine is

    async def serve() -> None:
        running = asyncio.create_task(pipes.server(tmp_path, load_tool_set(tools)).run())
        _ask_and_hang_up(pipes, tools, [2, "three"])
        while not watchdogs:
            await asyncio.sleep(0)
        slow_opening.set()
        await running

    asyncio.run(asyncio.wait_for(serve(), SECONDS))
    answers = pipes.answers
    assert sorted(str(answer["id"]) for answer in answers) == ["1", "2", "three"]
    assert all("result" in answer and not answer["result"].get("isError") for answer in answers), answers


@pytest.mark.parametrize("tools", CALLS)
@pytest.mark.parametrize("number", [None, signal.SIGTERM], ids=["EOF", "SIGTERM"])
def test_what_is_not_done_in_time_is_answered_once_and_stopped(
    tmp_path: Path,
    pipes: Pipes,
    watchdogs: list[Any],
    slow_opening: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals | None,
    tools: str,
) -> None:
    """Also a second one under the same id and one whose turn has not come; not one that was cancelled."""
    monkeypatch.setattr(stdio, "GRACE_SECONDS", 0)
    name, arguments = CALLS[tools]
    ids = [2, "three", "three", 0.5, "e9be1d34-3c3f-4a40-9d0b-8d4b2f9f9f5e"]

    async def serve() -> list[Any]:
        offered = load_tool_set(tools)._replace(finish_seconds=0)
        running = asyncio.create_task(pipes.server(tmp_path, offered).run())
        for id in [*ids, "cancelled"]:
            pipes.ask("tools/call", id, name=name, arguments=arguments)
        pipes.notify("notifications/cancelled", requestId="cancelled")
        pipes.ask("ping", "last")
        if number is None:
            pipes.hang_up()
        else:
            while select.select([pipes.stdin], [], [], 0)[0]:  # all of them are read before the signal
                await asyncio.sleep(0)
            os.kill(os.getpid(), number)
        answers: list[Any] = []
        while len(answers) <= len(ids):  # while the engine still opens
            answers += pipes.answers
            await asyncio.sleep(0)
        slow_opening.set()
        await running
        return answers + pipes.answers

    answers = asyncio.run(asyncio.wait_for(serve(), SECONDS))
    assert sorted(str(answer["id"]) for answer in answers) == sorted(map(str, [*ids, "last"]))
    said = f"{name}: {stdio.STOPPED}" if tools == "trusty" else stdio.STOPPED
    stopped = [answer["error"] for answer in answers if "error" in answer and answer["id"] != "last"]
    assert stopped == [{"code": -32603, "message": said}] * len(ids)


def test_an_id_that_could_be_a_secret_is_not_repeated_unseen(
    tmp_path: Path, pipes: Pipes, slow_opening: asyncio.Event
) -> None:
    async def serve() -> list[Any]:
        offered = load_tool_set("commonplace")._replace(finish_seconds=0)
        running = asyncio.create_task(pipes.server(tmp_path, offered).run())
        pipes.ask("tools/call", "AKIA" + "QWERTYUIOPASDFGH", name="list", arguments={})
        pipes.hang_up()
        while not (answers := pipes.answers):
            await asyncio.sleep(0)
        slow_opening.set()
        await running
        return answers + pipes.answers

    (answer,) = asyncio.run(asyncio.wait_for(serve(), SECONDS))
    assert (answer["id"], answer["error"]["code"]) == (None, -32603)


@pytest.mark.parametrize("tools", CALLS)
@pytest.mark.parametrize("reads", [True, False], ids=["answers are read", "nobody reads"])
def test_how_long_requests_may_take_at_the_end(
    tmp_path: Path, pipes: Pipes, watchdogs: list[Any], slow_opening: asyncio.Event, tools: str, reads: bool
) -> None:
    async def serve() -> None:
        running = asyncio.create_task(pipes.server(tmp_path, load_tool_set(tools)).run())
        if not reads:
            pipes.stop_reading()
        name, arguments = CALLS[tools]
        pipes.ask("tools/call", name=name, arguments=arguments)
        pipes.hang_up()
        while not watchdogs:
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(10):
            await asyncio.sleep(0)
        slow_opening.set()
        await running

    asyncio.run(asyncio.wait_for(serve(), SECONDS))
    waits = [watchdog.interval for watchdog in watchdogs]
    assert waits[-1] < 2, "a signal after the end of input ends it as fast as one before"
    assert waits[:-1] == ([] if tools == "trusty" or not reads else [pytest.approx(10.6)])


def test_64_calls_are_worked_on_at_once_and_the_next_when_one_is_done(tmp_path: Path, pipes: Pipes) -> None:
    calls = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "slow"}} for id in range(66)]

    async def serve() -> tuple[int, list[Any]]:
        begun, may_end, answered = 0, asyncio.Event(), b""

        async def work(session: McpSession, arguments: Any) -> Any:
            nonlocal begun
            begun += 1
            await may_end.wait()
            return {}

        offered = load_tool_set("commonplace")
        slow = offered.tools[0]._replace(name="slow", handler=work)
        running = asyncio.create_task(pipes.server(tmp_path, offered._replace(tools=(slow,))).run())
        os.write(pipes.client_out, b"".join(json.dumps(call).encode() + b"\n" for call in calls))
        while begun < 64:
            await asyncio.sleep(0)
        for _ in range(10):  # turns of the loop, in each of which another could begin
            await asyncio.sleep(0)
        at_once = begun
        may_end.set()
        while answered.count(b"\n") < len(calls):
            if select.select([pipes.client_in], [], [], 0)[0]:
                answered += os.read(pipes.client_in, 65_536)
            await asyncio.sleep(0)
        pipes.hang_up()
        await running
        return at_once, [json.loads(line)["id"] for line in answered.splitlines()]

    at_once, ids = asyncio.run(asyncio.wait_for(serve(), SECONDS))
    assert (at_once, sorted(ids)) == (64, list(range(66)))


def _in_flight(one: McpProcess) -> None:
    one.greet()
    one.call("list")  # so that the store is open, whatever else this machine does
    one.send("tools/call", {"name": "remember", "arguments": {"content": "Alice moved to Lisbon"}}, id=9)


def test_at_the_end_of_input_what_is_in_flight_is_finished(tmp_path: Path) -> None:
    with run_mcp(tmp_path) as one:
        _in_flight(one)
        assert one.hang_up() == 0
        kept = one.read()
        assert kept["id"] == 9
        assert cli(tmp_path, "list")["memories"][0]["content"] == "Alice moved to Lisbon"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_is_in_flight(tmp_path: Path, number: signal.Signals) -> None:
    with run_mcp(tmp_path) as one:
        _in_flight(one)
        assert one.result("ping") == {}  # so that the call has been read
        assert one.signal(number) == 0
        answered = [json.loads(line)["id"] for line in _all(one)]
        assert 9 in answered
        assert cli(tmp_path, "list")["memories"][0]["content"] == "Alice moved to Lisbon"


def _all(one: McpProcess) -> list[bytes]:
    while one.read() is not None:
        pass
    return one.lines


def test_a_client_that_stops_reading_does_not_keep_us(tmp_path: Path) -> None:
    """The pipe is full, nobody empties it, and SIGTERM still ends the process."""
    process = subprocess.Popen(
        command("mcp"), env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        listing = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
        process.stdin.write(listing * 20)
        process.stdin.flush()
        process.stdout.read(1)
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


_PARENT = """
import subprocess, sys, threading
keep = subprocess.PIPE if sys.argv[1] == "pipe" else int(sys.argv[2])
child = subprocess.Popen(sys.argv[3:], stdin=keep, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("kind", ["pipe", "inherited"])
def test_no_process_survives_a_parent_that_was_killed(tmp_path: Path, kind: str) -> None:
    """Also not when somebody else holds the other end of its stdin."""
    if kind == "inherited" and not hasattr(os, "pidfd_open"):
        pytest.skip("this system has no way to watch a parent")
    reading, writing = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, kind, str(reading), *command("mcp")], env=environment(tmp_path),
        stdout=subprocess.PIPE, pass_fds=(reading,),
    )  # fmt: skip
    assert parent.stdout is not None
    try:
        child = int(parent.stdout.readline())
        watched = os.pidfd_open(child)
        if kind == "inherited":
            os.write(writing, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
        _until_it_runs(child, watched)
        parent.kill()
        parent.wait()
        _wait_for_end(watched)
        os.close(watched)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        os.close(reading)
        os.close(writing)


def _until_it_runs(pid: int, pidfd: int) -> None:
    """Until its own end is in place: it has taken stdout away, which is the first thing it does."""
    links: list[str] = []
    while len(links) < 2 or links[0] != links[1]:
        assert not select.select([pidfd], [], [], 0)[0], "the server did not start"
        links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in (1, 2) if os.path.exists(f"/proc/{pid}/fd/{n}")]


def _wait_for_end(pidfd: int) -> None:
    assert select.select([pidfd], [], [], SECONDS)[0], "the process outlived its client"


def test_it_ends_while_the_model_is_at_work(tmp_path: Path) -> None:
    """An embedder that hangs keeps nobody: the client is gone, and so is the process."""
    module = tmp_path / "slow_embedder.py"
    module.write_text(
        "import threading\nimport numpy as np\n"
        "def embed(texts):\n"
        "    if any('slow' in text for text in texts):\n"
        "        threading.Event().wait()\n"
        "    return np.ones((len(texts), 8), np.float32)\n"
    )
    settings = {"PYTHONPATH": _with_modules_of(tmp_path), "COMMONPLACE_EMBEDDER": "callable:slow_embedder:embed"}
    with run_mcp(tmp_path / "data", **settings) as one:
        one.greet()
        one.call("remember", content="quick")
        slow = one.send("tools/call", {"name": "remember", "arguments": {"content": "slow"}})
        assert one.result("ping") == {}
        assert one.signal(signal.SIGTERM) == 0
        answer = one.read()
        assert (answer["id"], answer["error"]["code"]) == (slow, -32603)
    assert [m["content"] for m in cli(tmp_path / "data", "list")["memories"]] == ["quick"]


# the command


def test_mistakes_are_told_on_stderr(tmp_path: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("mcp", *args), env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip

    wrong = run("--tools", "everything")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "commonplace, full, amp, trusty, all" in wrong.stderr
    unknown = run("--colour", "red")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "--colour" in unknown.stderr
    for flag, value, tools in (("--palace", "atlas", []), ("--http", "127.0.0.1:0", ["--tools", "amp"])):
        for more in ([], ["--json"]):
            misfit = run(flag, value, *tools, *more)
            assert misfit.returncode == 1
            assert f"{flag} is for trusty-memory's tools" in misfit.stdout + misfit.stderr
    taken = run("--tools", "trusty", "--http", "nowhere")
    assert (taken.returncode, taken.stdout) in ((0, ""), (1, ""))  # an input that ends at once may end it first
    assert "Example:" in run("--help").stdout


def test_a_clients_configuration_is_printed(tmp_path: Path) -> None:
    printed = cli(tmp_path, "mcp", "--tools", "trusty", "--palace", "atlas")
    args = ["mcp", "--tools", "trusty", "--palace", "atlas", "--data", str(tmp_path)]
    assert printed == {"mcpServers": {"commonplace": {"command": "commonplace", "args": args}}}


def test_a_store_that_cannot_be_opened_is_explained_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "commonplace.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with run_mcp(tmp_path) as one:
        one.greet()
        result = one.result("tools/call", {"name": "recall", "arguments": {"query": "anything"}})
        assert result["isError"] is True
        text = result["content"][0]["text"]
        assert "commonplace.db" in text
        assert "a person must look" in text
        assert "`commonplace doctor`" in text
        assert "once more" not in text
        assert one.result("ping") == {}
