"""What MCP asks of the headers of a POST, in both eras: the table that the official SDK's server answers by."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any

import pytest
from mcp_process import MODERN, enveloped
from server_process import SECONDS, Answer, ServerProcess

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
GET = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "list"}
CALL = {"name": "list", "arguments": {}}


def send(server: ServerProcess, headers: dict[str, str], message: dict[str, Any]) -> Answer:
    return server.post("/mcp", {"jsonrpc": "2.0", **message}, headers={**JSON, **headers})


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def request(method: str = "tools/list", params: Any = None, *, modern: bool = True) -> dict[str, Any]:
    return {"id": 1, "method": method, "params": enveloped(params) if modern else params or {}}


#: what → (headers, message, status, code of the error or None)
STATELESS: dict[str, tuple[dict[str, str], dict[str, Any], int, int | None]] = {
    "as it should be": (LIST, request(), 200, None),
    "a call that names its tool": (GET, request("tools/call", CALL), 200, None),
    "a name that is encoded": ({**GET, "Mcp-Name": encoded("list")}, request("tools/call", CALL), 200, None),
    "white space around a value": ({**LIST, "Mcp-Method": " tools/list "}, request(), 200, None),
    "no method": ({"Mcp-Protocol-Version": MODERN}, request(), 400, -32020),
    "another method": ({**LIST, "Mcp-Method": "prompts/list"}, request(), 400, -32020),
    "no name": ({**GET, "Mcp-Name": ""}, request("tools/call", CALL), 400, -32020),
    "another name": ({**GET, "Mcp-Name": "forget"}, request("tools/call", CALL), 400, -32020),
    "a name whose code is broken": ({**GET, "Mcp-Name": "=?base64?bGl?="}, request("tools/call", CALL), 400, -32020),
    "no envelope": (LIST, request(modern=False), 400, -32602),
    "another version than the envelope's": ({**LIST, "Mcp-Protocol-Version": "2031-01-01"}, request(), 400, -32020),
    "a call without a name": (GET, request("tools/call", {"arguments": {}}), 400, -32602),
    "a method that is not there": ({**LIST, "Mcp-Method": "memory/all"}, request("memory/all"), 404, -32601),
    "a handshake": ({**LIST, "Mcp-Method": "initialize"}, request("initialize"), 404, -32601),
    "a notification": (LIST, {"method": "notifications/cancelled", "params": {}}, 202, None),
    "an answer to nothing": (LIST, {"id": 1, "result": {}}, 400, -32600),
    "a notification of no version": (
        {"Mcp-Protocol-Version": "2031-01-01"}, {"method": "notifications/cancelled"}, 400, -32022),
}  # fmt: skip
#: Those with a handshake ask nothing of the other headers.
HANDSHAKE: dict[str, tuple[dict[str, str], dict[str, Any], int, int | None]] = {
    "no version": ({}, request(modern=False), 200, None),
    "its version": ({"Mcp-Protocol-Version": "2025-06-18"}, request(modern=False), 200, None),
    "a method that is another": ({"Mcp-Method": "x", "Mcp-Name": "y"}, request(modern=False), 200, None),
    "a method that is not there": ({}, request("memory/all", modern=False), 200, -32601),
    "a session that nobody opened": ({"Mcp-Session-Id": "1"}, request(modern=False), 200, None),
    "an answer to nothing": ({}, {"id": 1, "result": {}}, 202, None),
    "an error of nothing": ({}, {"id": 1, "error": {"code": 1, "message": "x"}}, 202, None),
    "a notification": ({}, {"method": "notifications/initialized"}, 202, None),
    "only JSON is taken": ({"Accept": "application/json"}, request(modern=False), 200, None),
    "anything is taken": ({"Accept": "*/*"}, request(modern=False), 200, None),
    "any application is": ({"Accept": "application/*;q=0.5"}, request(modern=False), 200, None),
    "no JSON is": ({"Accept": "text/event-stream"}, request(modern=False), 406, -32600),
}


@pytest.mark.parametrize("era", ["stateless", "handshake"])
def test_headers_are_asked_for_as_the_protocol_says(open_server: ServerProcess, era: str) -> None:
    table = STATELESS if era == "stateless" else HANDSHAKE
    answered = {}
    for what, (headers, message, _, _) in table.items():
        answer = send(open_server, headers, message)
        document = json.loads(answer.body) if answer.body else {}
        answered[what] = (answer.status, document.get("error", {}).get("code"))
        assert bool(answer.body) == (answer.status != 202)
        if "error" in document:
            assert document["error"]["message"], "a sentence"
    assert answered == {what: (status, code) for what, (_, _, status, code) in table.items()}


def test_a_header_that_is_there_twice_is_refused(open_server: ServerProcess) -> None:
    """One reader would believe the first and another the last."""
    body = json.dumps({"jsonrpc": "2.0", **request()}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", open_server.port, timeout=SECONDS)
    connection.putrequest("POST", "/mcp")
    for name, value in [*JSON.items(), *LIST.items(), ("Mcp-Method", "tools/list"), ("Content-Length", len(body))]:
        connection.putheader(name, str(value))
    connection.endheaders(body)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]["code"]) == (400, -32020)
    connection.close()
