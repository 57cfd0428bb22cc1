"""A client of trusty-memory and our server, message by message: the guide's own examples, and what can go wrong."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trusty_guide as guide
from mcp_process import MODERN, enveloped, greeting
from server_process import SECONDS, environment
from trusty_process import SIGNALS, Client, mcp, parsed, prefill, run_trusty

from commonplace.engine.types import Draft
from commonplace.serve.json_rpc import JsonRpcError
from commonplace.serve.mcp.handler import McpHandler
from commonplace.serve.mcp.versions import HANDSHAKE_VERSIONS
from commonplace.serve.protocols.trusty import TOOLS
from commonplace.wire.record import Principal

DOCS = Path(__file__).parents[2] / "docs" / "trusty.md"
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INTERNAL = -32700, -32600, -32601, -32603


def others() -> list[Draft]:
    """141 drawers that matter more or answer less, so that the guide's own is found by its meaning alone."""
    lunch = [Draft("my-project", "semantic", f"lunch menu of day {i}", importance=0.9) for i in range(141)]
    return [*lunch, Draft("agent-pm", "semantic", "plans")]


@pytest.fixture(params=["default palace", "no default", "empty palace"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    empty, bound = request.param == "empty palace", request.param != "no default"
    if not empty:
        prefill(tmp_path, *others())
    with run_trusty(tmp_path, *(("--palace", "my-project") if bound else ())) as found:
        found.data, found.bound, found.empty = tmp_path, bound, empty  # type: ignore[attr-defined]
        yield found


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all tests that leave no trace."""
    with run_trusty(tmp_path_factory.mktemp("bound"), "--palace", "my-project") as found:
        yield found


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with run_trusty(tmp_path_factory.mktemp("free")) as found:
        yield found


# the guide, request by request


def test_every_example_of_the_guide_is_answered_as_it_shows(client: Any) -> None:
    server = json.loads(json.dumps(guide.SERVER))
    listed = json.loads(json.dumps(guide.TOOLS))
    if client.bound:
        for tool in listed["tools"]:
            if "palace" in tool["inputSchema"].get("required", ()):
                tool["inputSchema"]["required"].remove("palace")
    else:
        del server["serverInfo"]["default_palace"]
    assert client.ask(guide.INITIALIZE) == {"jsonrpc": "2.0", "id": 1, "result": server}
    client.send(guide.INITIALIZED)
    # The next line that comes belongs to the next request: a notification has no answer.
    answer = client.ask(guide.LIST)
    assert json.dumps(answer) == json.dumps({"jsonrpc": "2.0", "id": 2, "result": listed})

    seen: dict[str, Any] = {}
    for request, expected in guide.CALLS:
        answer = client.ask(request)
        assert answer["id"] == json.loads(request)["id"]
        found = parsed(answer)
        assert list(found) == list(expected)
        if client.empty and "palaces" in expected:
            expected = {"palaces": ["client-acme", "my-project"]}
        if client.empty and "drawer_count" in expected:
            expected = {**expected, "drawer_count": 1}
        if "results" in expected:
            shape = ["drawer_id", "content", "score", "layer", "tags", "importance"]
            assert all(list(result) == shape for result in found["results"])
            assert len(found["results"]) <= json.loads(request)["params"]["arguments"]["top_k"]
            if client.empty:
                assert [result["content"] for result in found["results"]] == [guide.GATEWAY], "nothing to fill up with"
            kept = [r for r in found["results"] if r["content"] == guide.GATEWAY][: len(expected["results"])]
            found = {**found, "results": kept}
        compare(expected, found, seen)
    assert seen["folder"] == str(client.data)


@pytest.mark.slow
def test_on_an_empty_folder_the_model_that_ships_scores_as_the_guide_does(tmp_path: Path) -> None:
    """Within what docs/trusty.md states."""
    stated = re.search(r"within (0\.\d+) of it", DOCS.read_text("utf-8"))
    assert stated is not None
    results = []
    with run_trusty(tmp_path, "--palace", "my-project", COMMONPLACE_EMBEDDER="encoder") as client:
        client.ask(guide.INITIALIZE)
        client.send(guide.INITIALIZED)
        for request, _ in guide.CALLS:
            results.append(parsed(client.ask(request)).get("results"))
    found, deep = (each for each in results if each is not None)
    ((answer,), (other,)) = found, deep
    assert (answer["content"], answer["layer"], answer["importance"]) == (guide.GATEWAY, 2, 0.5)
    assert answer["score"] == pytest.approx(guide.SHOWN_SCORE, abs=float(stated[1]))
    assert (other["content"], other["layer"]) == (guide.GATEWAY, 3)
    assert other["score"] < 0.2, "it says nothing of deployment"


def compare(expected: Any, found: Any, seen: dict[str, Any]) -> None:
    """Field for field; what differs from run to run is checked for its kind, and for being the same everywhere."""
    if expected is guide.DRAWER:
        assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found)
        assert seen.setdefault("drawer", found) == found
    elif expected is guide.SCORE:
        assert isinstance(found, float)
        assert 0 < found <= 1
    elif expected is guide.NOW:
        assert found.endswith("Z")
        assert abs(datetime.fromisoformat(found) - datetime.now(UTC)).total_seconds() < 60
    elif expected is guide.FOLDER:
        seen["folder"] = found
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            compare(value, found[key], seen)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            compare(one, other, seen)
    else:
        assert found == expected
        assert type(found) is type(expected)


# the handshake


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2024-11-05"),
        ("2099-01-01", "2024-11-05"),
        (None, "2024-11-05"),
    ],
)
def test_a_version_we_speak_is_echoed_and_any_other_is_the_guides(
    bound: Client, asked: str | None, answered: str
) -> None:
    params = {} if asked is None else {"protocolVersion": asked, "capabilities": {}, "clientInfo": {}}
    result = bound.request("initialize", **params)["result"]
    assert result["protocolVersion"] == answered
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"] == guide.SERVER["serverInfo"]


def test_clients_of_the_first_era_see_the_guides_list_and_later_ones_hints(bound: Client) -> None:
    for era, hints, structured in (
        ("2025-03-26", True, False),
        ("2025-06-18", True, True),
        ("2024-11-05", False, False),
    ):
        bound.request("initialize", protocolVersion=era)
        tools = bound.request("tools/list")["result"]["tools"]
        for tool, listed in zip(tools, guide.TOOLS["tools"], strict=True):
            assert ("annotations" in tool) is hints
            assert ("outputSchema" in tool) is structured
            if hints:
                assert {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} <= set(
                    tool["annotations"]
                )
            ours = {key: tool[key] for key in tool if key not in ("annotations", "outputSchema")}
            required = listed["inputSchema"].get("required")
            kept = {} if required is None else {"required": [name for name in required if name != "palace"]}
            assert ours == {**listed, "inputSchema": {**listed["inputSchema"], **kept}}
        result = bound.request("tools/call", name="palace_list", arguments={})["result"]
        assert ("structuredContent" in result) is structured
        assert "isError" not in result or result["isError"] is False


def test_a_session_without_a_handshake_is_answered(free: Client) -> None:
    assert free.request("ping") == {"jsonrpc": "2.0", "id": free._id, "result": {}}
    assert len(free.request("tools/list")["result"]["tools"]) == 10


@pytest.mark.parametrize(
    "method",
    ["notifications/initialized", "notifications/cancelled", "notifications/nonsense", "ping", "tools/list", "foo"],
)
def test_a_notification_is_never_answered(bound: Client, method: str) -> None:
    """Whatever it is called: what has no id is one."""
    bound.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": {"requestId": 77}}))
    assert "result" in bound.request("ping")


# errors


@pytest.mark.parametrize(
    "method", ["foo", "resources/list", "prompts/list", "logging/setLevel", "server/discover", "tools/", "INITIALIZE"]
)
def test_only_six_methods_are_known(bound: Client, method: str) -> None:
    answer = bound.request(method)
    error = {"code": NO_METHOD, "message": f"Method not found: {method}"}
    assert answer == {"jsonrpc": "2.0", "id": bound._id, "error": error}


@pytest.mark.parametrize(
    ("wrong", "code", "id"),
    [
        ({"jsonrpc": None}, INVALID_REQUEST, 7),
        ({"jsonrpc": "1.0"}, INVALID_REQUEST, 7),
        ({"jsonrpc": 2.0}, INVALID_REQUEST, 7),
        ({"method": None}, INVALID_REQUEST, 7),
        ({"method": 5}, INVALID_REQUEST, 7),
        ({"id": None}, INVALID_REQUEST, None),
        ({"id": True}, INVALID_REQUEST, None),
        ({"id": [7]}, INVALID_REQUEST, None),
        ({"params": [1]}, INTERNAL, 7),
        ({"params": "all"}, INTERNAL, 7),
    ],
)
def test_a_request_has_the_members_of_json_rpc_2(bound: Client, wrong: dict[str, Any], code: int, id: Any) -> None:
    answer = bound.ask(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}} | wrong))
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert "result" in bound.request("ping")


@pytest.mark.parametrize("missing", ["jsonrpc", "method"])
def test_a_request_without_its_version_or_method_is_refused(bound: Client, missing: str) -> None:
    whole = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
    answer = bound.ask(json.dumps({name: value for name, value in whole.items() if name != missing}))
    assert (answer["id"], answer["error"]["code"]) == (7, INVALID_REQUEST)
    assert "result" in bound.request("ping")


def test_a_client_of_the_stateless_era_is_sent_back_to_the_handshake(free: Client) -> None:
    probed = free.request("server/discover", **enveloped({}))
    assert probed["error"] == {"code": NO_METHOD, "message": "Method not found: server/discover"}
    other = free.request("tools/list", **enveloped({}))["error"]
    assert (other["code"], other["data"]["supported"]) == (-32022, list(HANDSHAKE_VERSIONS))
    assert free.request("initialize", **greeting(MODERN))["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[0]


@pytest.mark.parametrize(
    "line",
    [b"{\n", b"not json\n", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"\n', b'{"text": "\xff\xfe"}\n', b"\x80\n",
     b'{"id": NaN}\n'],
)  # fmt: skip
def test_what_is_not_json_is_a_parse_error_and_the_loop_lives_on(bound: Client, line: bytes) -> None:
    answer = bound.ask(line)
    assert (answer["id"], answer["error"]["code"]) == (None, PARSE_ERROR)
    assert "result" in bound.request("ping")


@pytest.mark.parametrize("escaped", [False, True])
def test_text_of_any_script_is_utf_8_both_ways(tmp_path: Path, escaped: bool) -> None:
    text = "Zürich, 東京, δοκιμή and 🦊"
    with run_trusty(tmp_path, "--palace", "p") as client:
        call = {"name": "memory_remember", "arguments": {"text": text}}
        stored = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        parsed(client.ask(json.dumps(stored, ensure_ascii=escaped).encode("utf-8") + b"\n"))
        assert [drawer["content"] for drawer in client.call("memory_list")["drawers"]] == [text]


def test_a_batch_is_refused_as_a_whole(bound: Client) -> None:
    for batch in ("[]", f"[{guide.LIST}, {guide.LIST}]"):
        answer = bound.ask(batch)
        assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)
    assert "result" in bound.request("ping")


def test_a_line_of_ten_megabytes_is_refused_and_the_loop_lives_on(bound: Client) -> None:
    text = "x" * 10_000_000
    answer = bound.ask(json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "memory_remember", "arguments": {"text": text}}}))  # fmt: skip
    assert answer["error"]["code"] == INVALID_REQUEST
    assert "result" in bound.request("ping")


def test_an_unknown_tool_is_an_internal_error(bound: Client) -> None:
    assert bound.error("memory_dance") == {"code": INTERNAL, "message": "unknown tool: memory_dance"}


@pytest.mark.parametrize(
    "tool",
    ["memory_remember", "memory_recall", "memory_recall_deep", "kg_assert", "kg_query", "memory_list", "memory_forget",
     "palace_info"],
)  # fmt: skip
def test_a_palace_omitted_without_a_default_is_said_in_the_guides_words(free: Client, tool: str) -> None:
    expected = {"code": INTERNAL, "message": f"{tool}: missing 'palace' (no --palace default configured)"}
    assert free.error(tool) == expected


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("memory_remember", {}, "memory_remember: missing 'text'"),
        ("memory_recall", {}, "memory_recall: missing 'query'"),
        ("memory_recall_deep", {"top_k": 3}, "memory_recall_deep: missing 'query'"),
        ("palace_create", {}, "palace_create: missing 'name'"),
        ("kg_assert", {"subject": "a"}, "kg_assert: missing 'predicate'"),
        ("kg_query", {}, "kg_query: missing 'subject'"),
        ("memory_forget", {}, "memory_forget: missing 'drawer_id'"),
    ],
)
def test_a_missing_argument_is_an_internal_error_that_names_it(
    bound: Client, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert bound.error(tool, **arguments) == {"code": INTERNAL, "message": sentence}


def test_every_failure_of_a_tool_is_an_error_and_never_a_result(bound: Client) -> None:
    for tool, arguments in (
        ("memory_forget", {"drawer_id": "a3f1c2d4-..."}),
        ("memory_list", {"palace": "nowhere"}),
        ("palace_create", {"name": "../up"}),
        ("palace_create", {"name": "x" * 129}),
        ("memory_remember", {"text": "   "}),
        ("memory_remember", {"text": "x", "tags": 5}),
    ):
        error = bound.error(tool, **arguments)
        assert error["code"] == INTERNAL
        assert error["message"].startswith(f"{tool}: ")
    for wrong in ({}, {"name": 5}, {"name": "palace_list", "arguments": []}, {"name": "palace_list", "arguments": 5}):
        assert bound.request("tools/call", **wrong)["error"]["code"] == INTERNAL


def test_a_tool_that_breaks_is_an_error_like_any_other() -> None:
    """Also when what breaks is the opening of the store, without which no secret can be taken out of an answer."""
    reported: list[str] = []

    class BrokenSession:
        who, agent, palace = Principal(), "default", "p"

        async def engine(self) -> Any:
            raise RuntimeError("the disk is gone")

    handler = McpHandler(TOOLS, lambda operation, error: reported.append(f"{operation}: {error}"))
    params = {"name": "palace_list", "arguments": {}}
    with pytest.raises(JsonRpcError) as refused:
        asyncio.run(handler.answer(BrokenSession(), "2024-11-05", "tools/call", params))
    said = "palace_list: internal error; the server's log says where"
    assert refused.value.document() == {"code": INTERNAL, "message": said}
    assert reported == ["palace_list: the disk is gone"]


# the pipe


def test_answers_come_in_the_order_of_the_requests(free: Client) -> None:
    free.call("palace_create", name="ordered")
    lines = []
    for i in range(10):
        arguments = {"palace": "ordered", "text": f"note {i}"}
        lines.append(json.dumps({"jsonrpc": "2.0", "id": 3 * i, "method": "tools/call", "params": {
            "name": "memory_remember", "arguments": arguments}}))  # fmt: skip
        lines.append(json.dumps({"jsonrpc": "2.0", "id": 3 * i + 1, "method": "tools/call", "params": {
            "name": "palace_info", "arguments": {"palace": "ordered"}}}))  # fmt: skip
        lines.append(json.dumps({"jsonrpc": "2.0", "id": 3 * i + 2, "method": "ping"}))
        lines.append("what is no request is refused in its turn, too")
    free.send("\n".join(lines))
    answers = [free.receive() for _ in lines]
    expected = [id for i in range(10) for id in (3 * i, 3 * i + 1, 3 * i + 2, None)]
    assert [answer["id"] for answer in answers] == expected
    # Each call finds what the one before it wrote.
    assert [parsed(answer)["drawer_count"] for answer in answers[1::4]] == list(range(1, 11))


def test_a_palace_may_be_named_although_there_is_a_default(bound: Client) -> None:
    bound.request("initialize", protocolVersion="2024-11-05")
    bound.call("palace_create", name="elsewhere")
    assert bound.call("memory_remember", palace="elsewhere", text="x")["palace"] == "elsewhere"
    assert bound.call("palace_info", palace="elsewhere")["drawer_count"] == 1


def test_the_default_palace_is_there_from_the_start(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--palace", "fresh") as client:
        assert client.call("palace_list") == {"palaces": ["fresh"]}
        assert client.call("memory_remember", text="x")["palace"] == "fresh"
    with run_trusty(tmp_path) as again:
        assert again.call("palace_info", palace="fresh")["drawer_count"] == 1


@pytest.mark.parametrize("name", ["../up", "a/b", "x" * 129])
def test_a_default_palace_that_cannot_be_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    with run_trusty(tmp_path, "--palace", name) as client:
        assert client.process.wait(30) == 1
        assert client.rest() == []
        assert "a palace's name has" in "".join(client.told())


def test_stdout_carries_messages_only(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--palace", "p", COMMONPLACE_DEBUG="1") as client:
        client.ask(guide.INITIALIZE)
        client.call("memory_remember", text="x")
        client.call("memory_recall", query="x")
        assert client.end() == 0
        assert client.rest() == []
        assert client.told() == [], "nothing happened that is worth a line in a log"


def test_requests_are_read_from_stdin_and_answered_on_stdout(tmp_path: Path) -> None:
    sent = f"{guide.INITIALIZE}\n{guide.INITIALIZED}\nno json\n{guide.LIST}\n"
    done = subprocess.run(
        mcp(), env=environment(tmp_path), input=sent.encode(), capture_output=True, timeout=SECONDS, check=True
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, None, 2]
    assert done.stderr == b""


def test_what_goes_wrong_is_logged_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "commonplace.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with run_trusty(tmp_path, "--palace", "p") as client:
        client.ask(guide.INITIALIZE)
        assert client.error("palace_list")["code"] == INTERNAL
        assert client.end() == 0
        assert client.rest() == []
        logged = [json.loads(line) for line in client.told()]
    assert {line["level"] for line in logged} == {"warning"}
    assert any("commonplace.db" in line["message"] for line in logged)


# the end


@pytest.mark.parametrize("number", SIGNALS, ids=["EOF", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("used", [False, True])
def test_it_ends_with_zero(tmp_path: Path, number: int | None, used: bool) -> None:
    with run_trusty(tmp_path, "--palace", "p") as client:
        client.ask(guide.INITIALIZE)
        if used:
            client.call("memory_remember", text="x")
        assert client.end(number) == 0


def test_half_a_line_at_the_end_is_a_parse_error_and_a_whole_one_is_answered(tmp_path: Path) -> None:
    for sent, code in ((guide.LIST[:20], PARSE_ERROR), (guide.LIST, None)):
        with run_trusty(tmp_path) as client:
            client.send(sent.encode())
            assert client.end() == 0
            (answer,) = client.rest()
            assert answer.get("error", {}).get("code") == code


def test_what_is_in_flight_is_finished_when_stdin_ends(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--palace", "p") as client:
        client.call("palace_list")
        for i in range(5):
            client.send(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {
                "name": "memory_remember", "arguments": {"text": f"last words {i}"}}}))  # fmt: skip
        assert client.end() == 0
        answers = client.rest()
        assert [answer["id"] for answer in answers] == list(range(5))
    with run_trusty(tmp_path, "--palace", "p") as again:
        kept = {drawer["drawer_id"] for drawer in again.call("memory_list")["drawers"]}
        assert kept == {parsed(answer)["drawer_id"] for answer in answers}


def test_what_was_answered_before_a_signal_is_kept(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--palace", "p") as client:
        stored = {client.call("memory_remember", text=f"note {i}")["drawer_id"] for i in range(3)}
        client.call("memory_recall", query="note")
        assert client.end(SIGNALS[1]) == 0
    with run_trusty(tmp_path, "--palace", "p") as again:
        drawers = again.call("memory_list")["drawers"]
        assert {d["drawer_id"] for d in drawers} == stored
        # The recall a moment before the signal was counted, too.
        assert {d["importance"] for d in drawers} == {0.55}


def test_a_second_server_sees_the_writes_of_the_first_at_once(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--palace", "p") as one, run_trusty(tmp_path, "--palace", "p") as two:
        one.call("palace_list")
        two.call("palace_list")
        id = one.call("memory_remember", text="seen by both")["drawer_id"]
        assert [d["drawer_id"] for d in two.call("memory_list")["drawers"]] == [id]
        two.call("memory_forget", drawer_id=id)
        assert one.call("memory_list")["drawers"] == one.call("memory_recall", query="both")["results"] == []
