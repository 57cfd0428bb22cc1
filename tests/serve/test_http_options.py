"""Every option of every operation, crossed, over every way in: an answer or a refusal, never a failure of ours."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from generated import crossings, document
from mcp_process import McpProcess, run_mcp
from server_process import PROTOCOLS, Answer, ServerProcess
from trusty_process import http_call, run_trusty

from commonplace.serve.companion import Events
from commonplace.serve.protocols import trusty
from commonplace.serve.routes import Route
from commonplace.wire.validate import schema

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("no_rules_left")]
FEW, MANY = 20, 520
NOT_DONE_HERE = 501  # said on purpose, of the one operation of a protocol that there is no need for
ROUTES = {f"{r.method} {r.path}": r for p in PROTOCOLS for r in p.routes if r.tag != "system" and r.operation != "rpc"}
TOOL_SETS = ("/mcp", "/mcp/amp", "/mcp/trusty")
COMPANION = {f"{r.method} {r.path}": r for r in trusty.companion_protocol(None, Events()).routes}
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def known(open_server: ServerProcess) -> list[str]:
    """Ids of memories that are there."""
    ids = []
    for n in range(8):
        metadata = {"tags": ["x"], "session_id": "s", "speaker": "Alice", "entity_name": f"thing {n}"}
        body = {"agent_id": "ada", "type": "semantic", "content": f"Alice paid {n}00 euros on 2024-03-0{n + 1}"}
        ids.append(open_server.post("/v0/remember", {**body, "metadata": metadata}).json["id"])
    return ids


SendHttp = Callable[[str, str, Any], Answer]


def as_http(route: Route, made: dict[str, Any], dice: random.Random, known: list[str]) -> tuple[str, str, Any]:
    path = route.path
    while "{" in path:
        start, end = path.index("{"), path.index("}")
        named = quote(dice.choice([*known, "ada", "x y", "n" * 300, "%ff", "é"]), safe="%")
        path = path[:start] + named + path[end + 1 :]
    if route.has_body:
        return route.method, path, made
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in made.items()}
    # Half a surrogate pair has no UTF-8; the bytes of one are what a careless client sends.
    return route.method, f"{path}?{urlencode(texts, errors='surrogatepass')}", None


def rules_of(route: Route) -> dict[str, Any]:
    if route.request is not None:
        return schema(route.request)
    return {"properties": {n: p.rules for n, p in route.parameters.items()},
            "required": [n for n, p in route.parameters.items() if p.required]}  # fmt: skip


def requests(rules: dict[str, Any], dice: random.Random, known: list[str], cases: int) -> Iterator[dict[str, Any]]:
    """Every second one has something in it that is to be refused; boolean and enumerated options meet in all ways."""
    crossed = crossings(rules)
    options = {name for options in crossed for name in options}
    dice.shuffle(crossed)
    for case in range(cases):
        if case % 2 == 0:
            yield document(rules, dice, known, odd=0.15)
        else:
            made = document(rules, dice, known, odd=0.0)
            others = {name: value for name, value in made.items() if name not in options}
            yield others | crossed[case // 2 % len(crossed)]


def hammer(send: SendHttp, route: Route, known: list[str], cases: int) -> Counter[int]:
    dice = random.Random(f"{route.method} {route.path}")
    found: Counter[int] = Counter()
    for made in requests(rules_of(route), dice, known, cases):
        method, path, body = as_http(route, made, dice, known)
        answer = send(method, path, body)
        assert answer.status < 500 or answer.status == NOT_DONE_HERE, (method, path, body, answer.status, answer.body)
        found[answer.status] += 1
    return found


@pytest.mark.parametrize("name", ROUTES)
def test_every_option_of_a_route(open_server: ServerProcess, known: list[str], name: str) -> None:
    hammer(open_server.call, ROUTES[name], known, FEW)


def rpc_methods(server: ServerProcess) -> Iterator[tuple[str, dict[str, Any]]]:
    for route in ROUTES.values():
        if route.path.startswith("/v0/"):
            rules = rules_of(route)
            named = {"id": {"type": "string"}} if "{id" in route.path else {}
            yield f"memory.{route.operation}", {**rules, "properties": {**rules.get("properties", {}), **named}}


def tools(server: ServerProcess, path: str) -> dict[str, Any]:
    listed = call_mcp(server, path, "tools/list", {})
    return {tool["name"]: tool["inputSchema"] for tool in listed["result"]["tools"]}


def call_mcp(server: ServerProcess, path: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = server.post(path, message, headers=_JSON)
    assert answer.status < 500, (params, answer.status, answer.body)
    found: dict[str, Any] = answer.json
    return found


Send = Callable[[str, dict[str, Any]], str]


def hammer_calls(send: Send, named: dict[str, dict[str, Any]], known: list[str], cases: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, rules in named.items():
        for made in requests(rules, random.Random(name), known, cases):
            said = send(name, made)
            assert "internal error" not in said, (name, made, said)
            assert '"unavailable"' not in said, (name, made, said)
            found[name] += 1
    return found


def rpc_sender(server: ServerProcess) -> Send:
    def send(method: str, params: dict[str, Any]) -> str:
        answer = server.post("/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert answer.status < 500, (method, params, answer.status, answer.body)
        return answer.body.decode()

    return send


def tool_sender(server: ServerProcess, path: str) -> Send:
    return lambda name, made: json.dumps(call_mcp(server, path, "tools/call", {"name": name, "arguments": made}))


def test_every_option_of_a_method(open_server: ServerProcess, known: list[str]) -> None:
    hammer_calls(rpc_sender(open_server), dict(rpc_methods(open_server)), known, FEW)


@pytest.mark.parametrize("path", TOOL_SETS)
def test_every_option_of_a_tool(open_server: ServerProcess, known: list[str], path: str) -> None:
    hammer_calls(tool_sender(open_server, path), tools(open_server, path), known, FEW)


# on stdio, and by the companion server beside it


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    with run_mcp(tmp_path_factory.mktemp("stdio"), "--tools", "all", "--palace", "ada") as process:
        process.greet()
        yield process


def stdio_sender(process: McpProcess) -> Send:
    return lambda name, made: json.dumps(process.ask("tools/call", {"name": name, "arguments": made}))


def stdio_tools(process: McpProcess) -> dict[str, Any]:
    return {tool["name"]: tool["inputSchema"] for tool in process.ask("tools/list")["result"]["tools"]}


@pytest.fixture(scope="module")
def companion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SendHttp]:
    folder = tmp_path_factory.mktemp("companion")
    with run_trusty(folder, "--palace", "ada", "--http", "127.0.0.1:0") as client:
        port = client.port
        yield lambda method, path, body: http_call(port, method, path, body, {})


def test_every_option_of_a_tool_on_stdio(stdio: McpProcess, known: list[str]) -> None:
    hammer_calls(stdio_sender(stdio), stdio_tools(stdio), known, FEW)


@pytest.mark.parametrize("name", COMPANION)
def test_every_option_of_a_route_of_the_companion(companion: SendHttp, known: list[str], name: str) -> None:
    hammer(companion, COMPANION[name], known, FEW)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_every_option_very_often_on_stdio_and_by_the_companion(
    stdio: McpProcess, companion: SendHttp, known: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    calls = hammer_calls(stdio_sender(stdio), stdio_tools(stdio), known, MANY)
    total: Counter[int] = Counter()
    for route in COMPANION.values():
        total += hammer(companion, route, known, MANY)
    with capsys.disabled():
        print(f"\n{len(calls)} tools, {calls.total()} calls: none failed")
        print(f"{len(COMPANION)} routes of the companion, {MANY} requests each: {dict(sorted(total.items()))}")


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_every_option_very_often(
    open_server: ServerProcess, known: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    total: Counter[int] = Counter()
    for name in ROUTES:
        total += hammer(open_server.call, ROUTES[name], known, MANY)
    calls = hammer_calls(rpc_sender(open_server), dict(rpc_methods(open_server)), known, MANY)
    for path in TOOL_SETS:
        calls += hammer_calls(tool_sender(open_server, path), tools(open_server, path), known, MANY)
    with capsys.disabled():
        print(f"\n{len(ROUTES)} routes, {MANY} requests each: {dict(sorted(total.items()))}")
        print(f"{len(calls)} methods and tools, {calls.total()} calls: none failed")
