"""Bad input: each its status and its envelope, nothing written, no stack trace, never a 5xx."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from server_process import PROTOCOLS, Answer, ServerProcess

from commonplace.serve.routes import error_reply
from commonplace.wire.errors import Fault
from commonplace.wire.validate import check

REMEMBER = {"agent_id": "bad", "type": "semantic", "content": "must never be kept"}
DEEP = b'{"agent_id":"bad","type":"semantic","content":"x","metadata":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"


def refused(answer: Answer, status: int, code: str) -> str:
    """Our envelope exactly, and nothing of how the server is made."""
    assert answer.status == status, answer.body
    check("memorywire/error", answer.json)
    assert answer.code == code
    message: str = answer.json["error"]["message"]
    assert "Traceback" not in message
    assert ".py" not in message
    return message


def test_each_fault_has_its_status() -> None:
    statuses = {
        "validation_error": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404, "conflict": 409,
        "payload_too_large": 413, "secret_leakage": 422, "rate_limited": 429, "unavailable": 503,
    }  # fmt: skip
    for kind in (kind for kind in Fault.__subclasses__() if kind.__module__ == Fault.__module__):
        reply = error_reply(PROTOCOLS, "/v0/remember", kind("it went wrong"))
        if kind.code in statuses:
            assert (kind.code, reply.status) == (kind.code, statuses.pop(kind.code))
            check("memorywire/error", reply.document)
    assert statuses == {}


BODIES: list[tuple[str, Any, int, str, str]] = [
    ("not JSON", b'{"agent_id": ', 400, "validation_error", "not valid JSON"),
    ("nothing", b"", 400, "validation_error", "must be an object"),
    ("not UTF-8", b'{"agent_id": "\xff"}', 400, "validation_error", "not UTF-8"),
    ("UTF-16", json.dumps(REMEMBER).encode("utf-16"), 400, "validation_error", "not UTF-8"),
    ("NaN", b'{"agent_id":"bad","type":"semantic","content":"x","confidence":NaN}', 400, "validation_error", "NaN"),
    ("an endless number", b'{"agent_id":"bad","confidence":' + b"9" * 5000 + b"}", 400, "validation_error", "JSON"),
    ("too deep", DEEP, 400, "validation_error", "nested"),
    ("half a surrogate pair", b'{"agent_id":"bad","type":"semantic","content":"\\ud800"}', 400, "validation_error", ""),
    ("a list", [REMEMBER], 400, "validation_error", "must be an object"),
    ("text", "hello", 400, "validation_error", "must be an object"),
    ("null", b"null", 400, "validation_error", "must be an object"),
    ("a missing field", {"agent_id": "bad", "type": "semantic"}, 400, "validation_error", "content is required"),
    ("an unknown field", {**REMEMBER, "contnet": 1}, 400, "validation_error", "did you mean 'content'?"),
    ("a wrong type", {**REMEMBER, "content": 5}, 400, "validation_error", "content must be"),
    ("an unknown word", {**REMEMBER, "type": "fact"}, 400, "validation_error", "one of semantic"),
    ("out of range", {**REMEMBER, "confidence": 2}, 400, "validation_error", "from 0 to 1"),
    ("the past", {**REMEMBER, "expires_at": 1}, 400, "validation_error", "future"),
    ("white space", {**REMEMBER, "content": "  \n"}, 400, "validation_error", "must not be blank"),
    ("a null", {**REMEMBER, "user_id": None}, 400, "validation_error", "leave it out"),
    ("a wrong vector", {**REMEMBER, "embedding": [1.0]}, 400, "validation_error", "256 numbers"),
    ("long content", {**REMEMBER, "content": "x" * 262_145}, 413, "payload_too_large", "262,145"),
    ("a huge body", {**REMEMBER, "content": "x" * (5 << 20)}, 413, "payload_too_large", "4,194,304"),
]


@pytest.mark.parametrize(("body", "status", "code", "words"), [c[1:] for c in BODIES], ids=[c[0] for c in BODIES])
def test_a_bad_body_is_refused(open_server: ServerProcess, body: Any, status: int, code: str, words: str) -> None:
    assert words in refused(open_server.post("/v0/remember", body), status, code)
    assert open_server.get("/v0/memories?agent_id=bad").json["memories"] == []


FAR = {"event_time": 99_999_999_999_999_999}
_UPDATE = {"agent_id": "far", "metadata": FAR}
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
EVENTS: list[tuple[str, str, Any]] = [
    ("POST", "/v0/remember", {**REMEMBER, "agent_id": "far", "metadata": FAR}),
    ("POST", "/v0/remember", {**REMEMBER, "agent_id": "far", "metadata": FAR, "approval_required": True}),
    ("POST", "/v0/remember/batch", {"items": [{**REMEMBER, "agent_id": "far", "metadata": FAR}]}),
    ("PATCH", "/v0/memories/{id}", _UPDATE),
    ("POST", "/v0/rpc", {"jsonrpc": "2.0", "id": 1, "method": "memory.update", "params": {"id": "{id}", **_UPDATE}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "remember", "arguments": {**REMEMBER, "agent_id": "far", "metadata": FAR}}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "update", "arguments": {"id": "{id}", **_UPDATE}}}),
    ("POST", "/amp/store", {"record": {"type": "note", "agent": "far", "content": "never kept", **FAR}}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), EVENTS)
def test_an_event_out_of_all_time_is_refused(open_server: ServerProcess, method: str, path: str, body: Any) -> None:
    if not (kept := open_server.get("/v0/memories?agent_id=far").json["memories"]):
        open_server.post("/v0/remember", {**REMEMBER, "agent_id": "far"})
        kept = open_server.get("/v0/memories?agent_id=far").json["memories"]
    sent = json.loads(json.dumps(body).replace("{id}", kept[0]["id"]))
    answer = open_server.call(method, path.replace("{id}", kept[0]["id"]), sent, headers=_MCP)
    assert "event_time must be milliseconds since 1970" in answer.body.decode()
    assert open_server.get("/v0/memories?agent_id=far").json["memories"] == kept
    assert [r for r in open_server.get("/v0/reviews").json["reviews"] if r["agent_id"] == "far"] == []


PATHS = [
    ("GET", "/v0/nothing", 404, "not_found"),
    ("GET", "/nothing/at/all", 404, "not_found"),
    ("GET", "/v0/recall", 405, "validation_error"),
    ("DELETE", "/v0/remember", 405, "validation_error"),
    ("POST", "/v0/health", 405, "validation_error"),
    ("OPTIONS", "/v0/recall", 405, "validation_error"),
    ("GET", "/v0/memories", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&limit=0", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&limit=1e3", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&limit=-1", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&type=fact", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&cursor=guess", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&filter=[]", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&filter=%7B%22a%22:%7B%22$no%22:1%7D%7D", 400, "validation_error"),
    ("GET", "/v0/memories?agent_id=x&unknown=1", 400, "validation_error"),
    ("GET", "/v0/memories/none?agent_id=x", 404, "not_found"),
    ("GET", "/v0/memories/none/history?agent_id=x", 404, "not_found"),
    ("GET", "/v0/reviews?status=maybe", 400, "validation_error"),
    ("GET", "/v0/reviews/none", 404, "not_found"),
    ("GET", "/v0/audit?cursor=x", 400, "validation_error"),
    ("GET", "/v0/audit?since=yesterday", 400, "validation_error"),
    ("GET", "/schemas/none.json", 404, "not_found"),
]


@pytest.mark.parametrize(("method", "path", "status", "code"), PATHS)
def test_a_bad_request_is_refused(open_server: ServerProcess, method: str, path: str, status: int, code: str) -> None:
    answer = open_server.call(method, path)
    refused(answer, status, code)
    if status == 405:
        assert answer.headers["allow"]


#: Words that the schema leaves to the engine, which knows them.
KNOWN_WORDS = {("/v0/audit", "operation"): "remember", ("/v0/lifecycle/runs", "job"): "consolidate"}
#: Texts that mean whatever their author meant.
FREE = {"agent", "agent_id", "user_id", "tag", "tags", "project", "filter", "subject", "predicate", "start", "end",
        "memory_id", "memoryRef", "query", "runId"}  # fmt: skip
FREE_TYPES = {("/amp/records", "type")}  # in AMP a type is any word
PAGED_BY = {"cursor", "before"}
NEEDED = {"agent_id": "x", "subject": "x", "start": "x", "end": "x", "memory_id": "x", "entry": "1", "from": "1"}


def _text_parameters() -> Iterator[tuple[str, str, Any, dict[str, str]]]:
    """(path, name, rules, what else is required) for each text in the query string of a GET route."""
    for route in (route for protocol in PROTOCOLS for route in protocol.routes if route.method == "GET"):
        known = route.query() if callable(route.query) else route.query
        needed = {name: NEEDED.get(name, "x") for name, each in known.items() if each.required}
        for name, each in known.items():
            if each.rules.get("type") != "integer":
                yield route.path, name, each.rules, {n: text for n, text in needed.items() if n != name}


CLOSED = [
    (path, name, next(iter(rules["enum"])) if "enum" in rules else KNOWN_WORDS[path, name], needed)
    for path, name, rules, needed in _text_parameters()
    if "enum" in rules or (path, name) in KNOWN_WORDS
]


def test_every_text_in_a_query_string_is_a_known_word_a_place_or_free() -> None:
    others = [
        (path, name) for path, name, rules, _ in _text_parameters()
        if "enum" not in rules and (path, name) not in {*KNOWN_WORDS, *FREE_TYPES} and name not in FREE | PAGED_BY
    ]  # fmt: skip
    assert others == []
    assert {(path, name) for path, name, _, _ in CLOSED} >= KNOWN_WORDS.keys()


@pytest.mark.parametrize(("path", "name", "word", "needed"), CLOSED, ids=lambda each: each if each else "-")
def test_a_word_that_a_route_does_not_know_is_refused_with_those_it_knows(
    open_server: ServerProcess, path: str, name: str, word: str, needed: dict[str, str]
) -> None:
    where = re.sub(r"{.*?}", "none", path)
    wrong = open_server.get(f"{where}?{urlencode({**needed, name: 'bogus'})}")
    assert wrong.status == 400, wrong.body
    said = wrong.body.decode()
    assert "bogus" in said
    assert word in said, "those that there are"
    right = open_server.get(f"{where}?{urlencode({**needed, name: word})}")
    assert right.status != 400 or f'"field":"{name}"' not in right.body.decode(), right.body


UUID = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
#: Where a page of each list ended.
PLACES = {
    "memories": f"1978c3f27b1.{UUID}", "audit": "12", "audit, newest first": "-12", "vouches": "1763300000000-abc",
    "reviews": f"review-0a1b2c3d-{UUID}", "runs": UUID,
}  # fmt: skip
#: Every list that is read page by page, and whose places it takes.
PAGED = {
    "/v0/memories?agent_id=x&cursor=": "memories", "/ui/memories?cursor=": "memories",
    "/v0/audit?cursor=": "audit", "/ui/audit?cursor=": "audit, newest first", "/mrp/vouches?cursor=": "vouches",
    "/ui/inbox?cursor=": "none", "/v0/lifecycle/runs?before=": "runs", "/ui/lifecycle?before=": "runs",
}  # fmt: skip


def test_every_route_that_has_pages_is_among_them() -> None:
    paged = {path for path, name, _, _ in _text_parameters() if name in PAGED_BY}
    assert paged == {path.partition("?")[0] for path in PAGED if not path.startswith("/ui/")}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", PAGED)
def test_a_place_in_another_list_is_refused(open_server: ServerProcess, path: str, place: str) -> None:
    open_server.post("/v0/remember", {**REMEMBER, "agent_id": "paged", "content": "so that there is a list"})
    answer = open_server.get(path + quote(PLACES[place]))
    assert answer.status == (200 if PAGED[path] == place else 400), answer.body
    if answer.status == 400:
        assert path.rpartition("?")[2].rpartition("&")[2].removesuffix("=") in answer.body.decode().lower()


def test_what_cannot_be_read_as_http_is_refused_in_the_same_words(open_server: ServerProcess) -> None:
    refused(open_server.get("/v0/memories?agent_id=x&filter=" + "%F0%9F%8D%B5" * 6000), 431, "validation_error")
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=10) as line:
        line.sendall(b"tea, please\r\n\r\n")
        head, _, body = b"".join(iter(lambda: line.recv(65_536), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert json.loads(body)["error"]["code"] == "validation_error"


def test_allow_names_every_method(open_server: ServerProcess) -> None:
    assert open_server.call("PUT", "/v0/memories/x").headers["allow"] == "GET, HEAD, PATCH"


def test_amp_paths_answer_in_amps_own_envelope(open_server: ServerProcess) -> None:
    for method, path, status in [("GET", "/amp/nothing", 404), ("PUT", "/amp/store", 405), ("POST", "/amp/store", 400)]:
        answer = open_server.call(method, path)
        assert answer.status == status
        check("amp/error", answer.json)


@pytest.mark.parametrize("route", [b for p in PROTOCOLS for b in p.routes if b.request], ids=lambda b: b.operation)
@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"unknown": true}', b"5", b""])
def test_no_route_fails_on_a_bad_body(open_server: ServerProcess, route: Any, body: bytes) -> None:
    answer = open_server.call(route.method, route.path.replace("{id:path}", "x").replace("{id}", "x"), body)
    assert 400 <= answer.status < 500 or (route.operation == "rpc" and answer.status == 200)
    assert "error" in answer.json or "error" in answer.json[0]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"])
def test_a_name_that_is_not_ours_is_refused(open_server: ServerProcess, host: str) -> None:
    refused(open_server.get("/v0/health", headers={"Host": host}), 403, "forbidden")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:8420", "my.localhost"])
def test_names_of_this_machine_are_ours(open_server: ServerProcess, host: str) -> None:
    assert open_server.get("/v0/health", headers={"Host": host}).status == 200


def test_pages_of_other_sites_are_refused(open_server: ServerProcess) -> None:
    own = f"http://127.0.0.1:{open_server.port}"
    for origin, status in [
        ("https://evil.example", 403),
        ("null", 403),
        (f"{own}0", 403),
        ("http://[", 403),
        (own, 400),
    ]:
        assert open_server.post("/v0/recall", {}, headers={"Origin": origin}).status == status
    assert open_server.post("/v0/recall", {}, headers={"Sec-Fetch-Site": "cross-site"}).status == 403


def test_a_body_that_says_it_is_huge_is_refused_unread(open_server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=10) as line:
        line.sendall(b"POST /v0/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()


def test_a_body_without_a_length_is_counted(open_server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=10) as line:
        line.sendall(b"POST /v0/remember HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(80):
            line.sendall(chunk)
        line.sendall(b"0\r\n\r\n")
        answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
