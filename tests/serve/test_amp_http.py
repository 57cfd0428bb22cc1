"""AMP's table of routes: its handlers, its envelope, and the real process over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from server_process import ServerProcess, environment, run_server, token

from commonplace.serve.protocols.amp import PROTOCOLS
from commonplace.serve.query import parse_query
from commonplace.serve.routes import Call, Route, error_reply
from commonplace.testing.subject import Subject
from commonplace.wire.errors import Fault, NotFound, PayloadTooLarge, RateLimited, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.validate import check, schema_names

(PROTOCOL,) = PROTOCOLS
LESSON = {"type": "lesson", "title": "Pooling", "content": "Pool connections.", "tags": ["db", "ops"]}
ROUTES = {
    ("POST", "/amp/store"), ("POST", "/amp/search"), ("GET", "/amp/records"), ("GET", "/amp/status"),
    ("GET", "/amp/records/{id:path}"), ("DELETE", "/amp/records/{id:path}"), ("GET", "/amp/agents/{agent:path}/status"),
}  # fmt: skip


class HandlerCaller:
    """Handlers called as a server calls them: a fault becomes the protocol's envelope."""

    def __init__(self, subject: Subject, run: Callable[[Any], Any]) -> None:
        self.engine, self.run = subject.engine, run

    def __call__(
        self, method: str, template: str, body: Any = None, who: Principal | None = None, path: Any = None, **query: str
    ) -> tuple[int, Any]:
        (route,) = [b for b in PROTOCOL.routes if (b.method, b.path) == (method, template)]
        try:
            given = parse_query(route.operation, route.parameters, query)
            if body is None and route.needs_body:
                raise ValidationError(route.needs_body)
            document = body if route.has_body else {**given, **(path or {})}
            reply = self.run(route.handler(Call(self.engine, who or Principal(), document, path or {}, given)))
            check(route.response or "", reply.document)
        except Fault as fault:
            reply = error_reply(PROTOCOLS, route.path, fault)
            check("amp/error", reply.document)
        return reply.status, reply.document


@pytest.fixture
def served(over: tuple[Subject, Callable[[Any], Any]]) -> HandlerCaller:
    return HandlerCaller(*over)


def test_every_route_of_the_document_is_in_the_table() -> None:
    assert {(b.method, b.path) for b in PROTOCOL.routes} == ROUTES
    assert PROTOCOL.prefix == "/amp"


@pytest.mark.parametrize("route", PROTOCOL.routes, ids=lambda b: b.operation)
def test_each_route_names_schemas_and_the_least_role(route: Route) -> None:
    assert route.response in schema_names()
    assert (route.request in schema_names()) if route.method == "POST" else route.request is None
    assert route.role == ("writer" if route.operation in ("amp_store", "amp_delete") else "reader")
    assert route.summary.endswith(".")
    for parameter in route.parameters.values():
        assert parameter.rules["description"]


def test_a_record_lives_over_the_routes(served: HandlerCaller) -> None:
    status, stored = served("POST", "/amp/store", {"record": LESSON})
    assert (status, stored["created"]) == (200, True)
    id = stored["id"]
    assert served("GET", "/amp/records/{id:path}", path={"id": id})[1]["record"]["title"] == "Pooling"
    assert served("POST", "/amp/search", {"query": "pool connections"})[1]["results"][0]["id"] == id
    page = served("GET", "/amp/records", type="lesson", tags="db, ops", limit="10", offset="0", order="asc")[1]
    assert (page["total"], page["records"][0]["id"]) == (1, id)
    assert served("GET", "/amp/records", tags="db,other")[1]["total"] == 0
    assert served("GET", "/amp/records", agent="nobody", project="x")[1]["total"] == 0
    assert served("GET", "/amp/status")[1]["stats"]["lessons"] == 1
    checkpoint = {"type": "checkpoint", "agent": "radarr", "working_on": "Auth", "state": {"blockers": ["key"]}}
    served("POST", "/amp/store", {"operation": "store", "record": checkpoint})
    status, answer = served("GET", "/amp/agents/{agent:path}/status", path={"agent": "radarr"})
    assert (status, answer["status"], answer["current_task"]) == (200, "blocked", "Auth")
    assert served("DELETE", "/amp/records/{id:path}", path={"id": id}) == (200, {"success": True, "deleted": True})
    assert served("DELETE", "/amp/records/{id:path}", path={"id": id}) == (200, {"success": True, "deleted": False})
    assert served("GET", "/amp/records/{id:path}", path={"id": id})[0] == 404


@pytest.mark.parametrize(
    ("method", "template", "body", "query", "status", "code"),
    [
        ("POST", "/amp/store", None, {}, 400, "validation_error"),
        ("POST", "/amp/store", [], {}, 400, "validation_error"),
        ("POST", "/amp/store", {"record": {"type": "lesson"}}, {}, 400, "validation_error"),
        ("POST", "/amp/store", {"record": LESSON, "mode": 1}, {}, 400, "validation_error"),
        ("POST", "/amp/store", {"record": {**LESSON, "content": "x" * 262_145}}, {}, 413, "payload_too_large"),
        ("POST", "/amp/search", {"query": ""}, {}, 400, "validation_error"),
        ("POST", "/amp/search", {"query": "x", "limit": "ten"}, {}, 400, "validation_error"),
        ("GET", "/amp/records", None, {"limit": "ten"}, 400, "validation_error"),
        ("GET", "/amp/records", None, {"limit": "1001"}, 400, "validation_error"),
        ("GET", "/amp/records", None, {"offset": "-1"}, 400, "validation_error"),
        ("GET", "/amp/records", None, {"order": "up"}, 400, "validation_error"),
        ("GET", "/amp/records", None, {"colour": "red"}, 400, "validation_error"),
        ("GET", "/amp/status", None, {"verbose": "1"}, 400, "validation_error"),
    ],
)
def test_bad_requests(
    served: HandlerCaller, method: str, template: str, body: Any, query: dict[str, str], status: int, code: str
) -> None:
    answered, document = served(method, template, body, **query)
    assert (answered, document["success"], document["error"]["code"]) == (status, False, code)
    assert served("GET", "/amp/status")[1]["stats"]["total_records"] == 0


def test_an_ambiguous_id_is_a_conflict_and_a_foreign_one_is_not_found(served: HandlerCaller) -> None:
    for agent in ("alice", "bob"):
        served("POST", "/amp/store", {"record": {**LESSON, "id": "x", "agent": agent}})
    assert served("GET", "/amp/records/{id:path}", path={"id": "x"})[0] == 409
    assert served("GET", "/amp/records/{id:path}", path={"id": "x"}, agent="alice")[1]["record"]["agent"] == "alice"
    stranger = Principal("carol", "local", "writer", ("carol",))
    foreign = served("GET", "/amp/records/{id:path}", path={"id": "x"}, who=stranger)
    assert foreign == (404, {"success": False, "error": {"code": "not_found", "message": "no record x"}})
    assert served("POST", "/amp/store", {"record": {**LESSON, "agent": "alice"}}, who=stranger)[0] == 403


@pytest.mark.parametrize(
    ("fault", "status"), [(NotFound("x"), 404), (PayloadTooLarge("x"), 413), (RateLimited("x"), 429), (Fault("x"), 503)]
)
def test_the_envelope_says_code_and_message_and_nothing_else(fault: Fault, status: int) -> None:
    reply = error_reply(PROTOCOLS, "/amp/records", fault)
    assert reply.status == status
    assert reply.document == {"success": False, "error": {"code": fault.code, "message": "x"}}


# the real process


def ask(
    server: ServerProcess, method: str, path: str, body: Any = None, *, token: str | None = None
) -> tuple[int, Any]:  # fmt: skip
    answer = server.call(method, path, body, token=token)
    return answer.status, answer.json


def amp(server: ServerProcess, *args: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "commonplace.cli.amp", *args, "--url", server.url]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment(server.data))


@pytest.mark.slow
def test_the_process_answers_every_route(open_server: ServerProcess) -> None:
    status, stored = ask(
        open_server, "POST", "/amp/store", {"operation": "store", "record": {**LESSON, "agent": "routes"}}
    )
    assert (status, stored["created"]) == (200, True)
    id = stored["id"]
    status, found = ask(open_server, "GET", f"/amp/records/{id}")
    assert (status, found["record"]["title"]) == (200, "Pooling")
    check("amp/types/lesson", found["record"])
    status, results = ask(open_server, "POST", "/amp/search", {"query": "pool connections", "agent": "routes"})
    assert (status, results["results"][0]["id"]) == (200, id)
    check("amp/operations/search.response", results)
    status, page = ask(
        open_server, "GET", "/amp/records?type=lesson&limit=10&agent=routes&tags=db,ops&order=asc&offset=0"
    )
    assert (status, page["total"], page["has_more"]) == (200, 1, False)
    check("amp/operations/list.response", page)
    check("amp/operations/status.response", ask(open_server, "GET", "/amp/status")[1])
    status, agent = ask(open_server, "GET", "/amp/agents/routes/status")
    assert (status, agent["status"]) == (200, "idle")
    assert ask(open_server, "DELETE", f"/amp/records/{id}") == (200, {"success": True, "deleted": True})
    assert ask(open_server, "DELETE", f"/amp/records/{id}") == (200, {"success": True, "deleted": False})
    assert ask(open_server, "GET", f"/amp/records/{id}")[0] == 404


@pytest.mark.slow
@pytest.mark.parametrize("id", ["a/b", "..%", "päth ?#&=+", "日本", "-x", "a//b/", "lesson_a1b2c3d4"])
def test_an_id_of_any_spelling_can_be_read_and_deleted(open_server: ServerProcess, id: str) -> None:
    assert ask(open_server, "POST", "/amp/store", {"record": {**LESSON, "id": id, "agent": "spelling"}})[1]["id"] == id
    path = f"/amp/records/{quote(id, safe='')}?agent=spelling"
    assert ask(open_server, "GET", path)[1]["record"]["id"] == id
    assert ask(open_server, "DELETE", path)[1]["deleted"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "raw", "status", "code"),
    [
        ("POST", "/amp/store", b"{", 400, "validation_error"),
        ("POST", "/amp/store", b"\xff\xfe", 400, "validation_error"),
        ("POST", "/amp/store", b"[" * 100_000, 400, "validation_error"),
        ("POST", "/amp/store", b'{"record": {"type": "x", "content": NaN}}', 400, "validation_error"),
        ("POST", "/amp/store", b'{"record": {"type": "x", "content": "\\ud800"}}', 400, "validation_error"),
        ("POST", "/amp/store", b"", 400, "validation_error"),
        ("POST", "/amp/store", b"null", 400, "validation_error"),
        ("POST", "/amp/store", b'{"record": 1}', 400, "validation_error"),
        ("POST", "/amp/store", b" " * (5 * 2**20), 413, "payload_too_large"),
        ("POST", "/amp/search", b'{"query": "x", "top_k": 3}', 400, "validation_error"),
        ("PUT", "/amp/store", b"{}", 405, "validation_error"),
        ("GET", "/amp/store", None, 405, "validation_error"),
        ("GET", "/amp/records?limit=0", None, 400, "validation_error"),
        ("GET", "/amp/records?colour=red", None, 400, "validation_error"),
        ("GET", "/amp/records/nope", None, 404, "not_found"),
        ("GET", "/amp/nothing", None, 404, "not_found"),
    ],
)
def test_bad_input_gets_amps_envelope_and_writes_nothing(
    open_server: ServerProcess, method: str, path: str, raw: bytes | None, status: int, code: str
) -> None:
    before = ask(open_server, "GET", "/amp/status")[1]["stats"]["total_records"]
    answered, document = ask(open_server, method, path, raw)
    assert (answered, document["success"], document["error"]["code"]) == (status, False, code)
    check("amp/error", document)
    assert "Traceback" not in json.dumps(document)
    assert ask(open_server, "GET", "/amp/status")[1]["stats"]["total_records"] == before


@pytest.mark.slow
def test_the_command_against_a_server_says_what_it_says_locally(open_server: ServerProcess) -> None:
    project = ("--project", "session")
    lesson = ("--type", "lesson", "--title", "PostgreSQL connection pooling", "--content", "Always pool connections.")
    stored = amp(open_server, "store", *lesson, "--tags", "postgresql,devops", *project)
    assert re.fullmatch(r"stored lesson_[0-9a-f-]{36}\n", stored.stdout)
    found = amp(open_server, "search", "database connection pooling production", "--type", "lesson", *project)
    assert re.match(r'"PostgreSQL connection pooling" \(score: [01]\.\d\d\)\n', found.stdout)
    amp(open_server, "store", "--type", "checkpoint", "--agent", "radarr", "--working-on", "Debugging auth flow",
                "--state", '{"blockers": ["Missing API key for OAuth provider"]}')  # fmt: skip
    assert (
        "Debugging auth flow"
        in amp(open_server, "list", "--type", "checkpoint", "--agent", "radarr", "--limit", "1").stdout
    )
    assert "blocked" in amp(open_server, "agent-status", "radarr").stdout
    assert json.loads(amp(open_server, "list", "--tags", "postgresql,devops", *project, "--json").stdout)["total"] == 1
    missing = amp(open_server, "get", "nope")
    assert (missing.returncode, missing.stderr) == (1, "amp: no record nope\n")
    assert amp(open_server, "delete", "nope").returncode == 1
    id = stored.stdout.split()[1]
    assert amp(open_server, "delete", id).stdout == f"deleted {id}\n"
    assert amp(open_server, "store", "--type", "lesson").stderr == "amp: record.title is required\n"


@pytest.mark.slow
def test_what_was_asked_is_not_in_the_log(open_server: ServerProcess) -> None:
    ask(open_server, "POST", "/amp/search", {"query": "xyzzyplugh frobnicate"})
    ask(open_server, "POST", "/amp/store", {"record": {**LESSON, "content": "xyzzyplugh kept", "agent": "logs"}})
    assert "xyzzyplugh" not in open_server.log_with('"amp_store"')


@pytest.mark.slow
def test_tokens_decide_whose_records_are_seen(tmp_path: Path) -> None:
    with run_server(tmp_path, "--token-required") as server:
        status, document = ask(server, "GET", "/amp/status")
        assert (status, document["error"]["code"]) == (401, "unauthenticated")
        check("amp/error", document)
        alice = token(tmp_path, "--role", "writer", "--agents", "alice,shared")
        bob = token(tmp_path, "--role", "writer", "--agents", "bob")
        reader = token(tmp_path, "--role", "reader", "--agents", "alice")
        other = token(tmp_path, "--role", "admin", "--tenant", "other")
        id = ask(server, "POST", "/amp/store", {"record": {**LESSON, "agent": "alice", "id": "plan"}}, token=alice)[1][
            "id"
        ]
        missing = ask(server, "GET", "/amp/records/none", token=bob)
        for stranger in (bob, other):
            foreign = ask(server, "GET", f"/amp/records/{id}", token=stranger)
            assert foreign == (404, json.loads(json.dumps(missing[1]).replace("none", id)))
            assert ask(server, "DELETE", f"/amp/records/{id}", token=stranger)[1] == {"success": True, "deleted": False}
            assert ask(server, "POST", "/amp/search", {"query": "pool"}, token=stranger)[1]["total"] == 0
            assert ask(server, "GET", "/amp/records", token=stranger)[1]["total"] == 0
        assert ask(server, "GET", "/amp/records?agent=alice", token=bob)[0] == 403
        assert ask(server, "POST", "/amp/store", {"record": LESSON}, token=bob)[0] == 403
        assert ask(server, "POST", "/amp/store", {"record": {**LESSON, "agent": "alice"}}, token=reader)[0] == 403
        assert ask(server, "DELETE", f"/amp/records/{id}", token=reader)[0] == 403
        assert ask(server, "GET", f"/amp/records/{id}", token=reader)[0] == 200
        assert amp(server, "status").returncode == 1
        assert amp(server, "get", id, "--token", alice).returncode == 0
