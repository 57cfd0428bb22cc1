"""The companion server beside the stdio loop: its routes, its stream, its door, and that neither outlives the other."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from server_process import SECONDS, Answer, cli, token
from trusty_process import SIGNALS, Client, http_call, run_trusty

from commonplace import config
from commonplace.engine import Engine
from commonplace.engine.types import Draft
from commonplace.serve.companion import Companion as CompanionServer, Events, parse_address
from commonplace.serve.protocols.trusty import companion_protocol
from commonplace.serve.routes import Call
from commonplace.testing.subject import Subject
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.record import Principal

NOBODYS = "a3f1c2d4-1234-5678-9abc-def012345678"
NIL = "00000000-0000-0000-0000-000000000000"


class Companion:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.port = client.port

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return http_call(self.port, method, path, body, headers)

    def get(self, path: str) -> Any:
        answer = self("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def remember(self, palace: str, content: str, **more: Any) -> str:
        answer = self("POST", f"/api/v1/palaces/{palace}/drawers", {"content": content, **more})
        assert answer.status == 200, answer.body
        assert list(answer.json) == ["id"]
        return str(answer.json["id"])

    def stream(self, **headers: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.request("GET", "/sse", headers=headers)
        return connection, connection.getresponse()


@pytest.fixture(scope="module")
def companion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Companion]:
    data = tmp_path_factory.mktemp("companion")
    with run_trusty(data, "--palace", "home", "--http", "127.0.0.1:0") as client:
        found = Companion(client)
        found.data = data  # type: ignore[attr-defined]
        yield found


def frame(response: http.client.HTTPResponse) -> dict[str, Any]:
    line = response.readline()
    assert line.startswith(b"data: ")
    assert response.readline() == b"\n"
    event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    return event


# routes


def test_health_is_ok(companion: Companion) -> None:
    answer = companion("GET", "/health")
    assert (answer.status, answer.body) == (200, b"ok")
    assert answer.headers["content-type"].startswith("text/plain")


def test_status_and_config(companion: Companion) -> None:
    for palace in ("home", "annexe"):
        companion("POST", "/api/v1/palaces", {"name": palace})
        companion.remember(palace, "something")
    companion("POST", "/api/v1/palaces/annexe/kg", {"subject": "it", "predicate": "is", "object": "counted"})
    status = companion.get("/api/v1/status")
    assert list(status) == [
        "version", "palace_count", "default_palace", "data_root", "total_drawers", "total_vectors", "total_kg_triples",
    ]  # fmt: skip
    assert (status["version"], status["default_palace"]) == ("0.1.10", "home")
    assert status["data_root"] == str(companion.data)  # type: ignore[attr-defined]
    palaces = companion.get("/api/v1/palaces")
    assert status["palace_count"] == len(palaces) > 1
    for name in ("drawer", "vector", "kg_triple"):
        assert status[f"total_{name}s"] == sum(palace[f"{name}_count"] for palace in palaces) > 0
    assert companion.get("/api/v1/config") == {
        "openrouter_configured": False, "model": "", "data_root": status["data_root"],
    }  # fmt: skip


def test_palaces_are_made_listed_and_shown(companion: Companion) -> None:
    made = companion("POST", "/api/v1/palaces", {"name": " acme ", "description": "A client"})
    assert (made.status, made.json) == (200, {"id": "acme"})
    assert companion("POST", "/api/v1/palaces", {"name": "acme", "description": None}).json == {"id": "acme"}
    shown = companion.get("/api/v1/palaces/acme")
    assert list(shown) == [
        "id", "name", "description", "drawer_count", "vector_count", "kg_triple_count", "wing_count", "created_at",
    ]  # fmt: skip
    assert (shown["id"], shown["name"], shown["description"]) == ("acme", "acme", "A client")
    assert [shown[f"{name}_count"] for name in ("drawer", "vector", "kg_triple", "wing")] == [0] * 4
    assert abs(datetime.fromisoformat(shown["created_at"]) - datetime.now(UTC)).total_seconds() < 600
    listed = companion.get("/api/v1/palaces")
    assert shown in listed
    assert "home" in [palace["id"] for palace in listed]
    assert companion.client.call("palace_info", palace="acme")["drawer_count"] == 0


def test_a_drawer_is_stored_listed_and_deleted(companion: Companion) -> None:
    companion("POST", "/api/v1/palaces", {"name": "drawers"})
    id = companion.remember("drawers", "The gateway checks tokens", room="Kitchen", tags=["auth"], importance=0.8)
    other = companion.remember("drawers", "lunch", room=None, importance=None)
    listed = companion.get("/api/v1/palaces/drawers/drawers")
    assert [drawer["id"] for drawer in listed] == [id, other]
    assert list(listed[0]) == [
        "id", "room_id", "content", "importance", "source_file", "created_at", "tags", "last_accessed_at",
        "access_count",
    ]  # fmt: skip
    assert (listed[0]["importance"], listed[0]["tags"], listed[0]["access_count"]) == (0.8, ["auth"], 0)
    assert listed[1]["importance"] == 0.5
    assert listed[0]["room_id"] != listed[1]["room_id"]
    for query in ("room=Kitchen", "room=Custom(Kitchen)", "tag=auth", "limit=1"):
        assert [d["id"] for d in companion.get(f"/api/v1/palaces/drawers/drawers?{query}")] == [id]
    # What one transport stored the other finds.
    assert companion.client.call("memory_list", palace="drawers", tag="auth")["drawers"][0]["drawer_id"] == id
    gone = companion("DELETE", f"/api/v1/palaces/drawers/drawers/{id}")
    assert (gone.status, gone.body) == (204, b"")
    assert companion("DELETE", f"/api/v1/palaces/drawers/drawers/{NOBODYS}").status == 204
    bad = companion("DELETE", "/api/v1/palaces/drawers/drawers/no-uuid")
    assert (bad.status, list(bad.json)) == (400, ["error"])
    assert [d["id"] for d in companion.get("/api/v1/palaces/drawers/drawers")] == [other]


def test_a_list_has_fifty_drawers_unless_said(companion: Companion) -> None:
    companion("POST", "/api/v1/palaces", {"name": "full"})
    for i in range(51):
        companion.remember("full", f"note {i}")
    assert len(companion.get("/api/v1/palaces/full/drawers")) == 50
    assert len(companion.get("/api/v1/palaces/full/drawers?limit=51")) == 51


def test_what_waits_for_approval_is_accepted_and_not_shown(
    over: tuple[Subject, Callable[[Any], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = Engine.remember

    async def staged(engine: Engine, who: Principal, draft: Draft) -> Any:
        return await plainly(engine, who, draft, approval={"agent_id": draft.agent_id, "content": draft.content})

    monkeypatch.setattr(Engine, "remember", staged)
    routes = {(route.method, route.path): route.handler for route in companion_protocol("home", Events()).routes}
    drawers = "/api/v1/palaces/{id}/drawers"
    subject, run = over
    call = Call(subject.engine, Principal(), {"content": "x"}, {"id": "home"})
    answer = run(routes["POST", drawers](call))
    assert (answer.status, answer.document["status"]) == (202, "pending")
    assert list(answer.document) == ["id", "status"]
    assert run(routes["GET", drawers](call)).document == []


def test_recall_gives_drawers_with_scores_and_layers(companion: Companion) -> None:
    companion("POST", "/api/v1/palaces", {"name": "recalled"})
    for i in range(16):
        companion.remember("recalled", f"lunch {i}", importance=0.9)
    id = companion.remember("recalled", "the gateway checks tokens", importance=0.1)
    for deep, layer in (("false", 2), ("true", 3)):
        found = companion.get(f"/api/v1/palaces/recalled/recall?q=gateway+tokens&top_k=4&deep={deep}")
        assert len(found) == 4
        assert all(list(result) == ["drawer", "score", "layer"] for result in found)
        (hit,) = (result for result in found if result["layer"] == layer and result["drawer"]["id"] == id)
        assert 0 < hit["score"] <= 1
        tool = "memory_recall_deep" if deep == "true" else "memory_recall"
        told = companion.client.call(tool, palace="recalled", query="gateway tokens", top_k=4)["results"]
        assert [(r["drawer"]["id"], r["score"], r["layer"]) for r in found] == [
            (r["drawer_id"], r["score"], r["layer"]) for r in told
        ]
    assert len(companion.get("/api/v1/palaces/recalled/recall?q=lunch")) == 10
    assert companion.get("/api/v1/palaces/recalled/drawers?limit=100")[-1]["access_count"] == 4


def test_a_recall_begins_with_the_identity(companion: Companion, tmp_path: Path) -> None:
    companion.remember("home", "something")
    (tmp_path / "identity.txt").write_text("I am the project.", "utf-8")
    data: Path = companion.data  # type: ignore[attr-defined]
    cli(data, "palace", "identity", "home", "--file", str(tmp_path / "identity.txt"))
    try:
        first, second = companion.get("/api/v1/palaces/home/recall?q=something&top_k=2")
    finally:
        cli(data, "palace", "identity", "home", "--clear")
    assert (first["drawer"]["id"], first["drawer"]["room_id"], first["score"], first["layer"]) == (NIL, NIL, 1.0, 0)
    assert first["drawer"]["content"] == "I am the project."
    assert second["layer"] == 2


def test_facts_are_stated_and_read(companion: Companion) -> None:
    body = {"subject": "auth", "predicate": "version", "object": "2.4.1", "confidence": 0.95, "provenance": None}
    made = companion("POST", "/api/v1/palaces/home/kg", body)
    assert (made.status, made.body) == (204, b"")
    (triple,) = companion.get("/api/v1/palaces/home/kg?subject=auth")
    assert {name: triple[name] for name in body} == body
    assert (triple["valid_to"], triple["valid_from"][-1]) == (None, "Z")
    assert companion.get("/api/v1/palaces/home")["kg_triple_count"] == 1
    assert companion.get("/api/v1/palaces/home/kg?subject=auth&as_of=2001-01-01") == []
    companion("POST", "/api/v1/palaces/home/kg", {"subject": "plain", "predicate": "is", "object": "certain"})
    assert companion.get("/api/v1/palaces/home/kg?subject=plain")[0]["confidence"] == 1.0


def test_dreaming_merges_what_lies_twice_and_says_when_it_ran(companion: Companion) -> None:
    never = {
        "running": False, "last_run_at": None, "merged": 0, "decayed": 0, "pruned": 0, "compacted": 0,
        "closets_updated": 0, "duration_ms": 0,
    }  # fmt: skip
    assert companion.get("/api/v1/dream/status") == companion.get("/api/v1/palaces/home/dream/status") == never
    companion("POST", "/api/v1/palaces", {"name": "dreams"})
    texts = ("The gateway validates tokens", "the gateway validates tokens.", "The gateway does not validate tokens")
    first, second, third = (
        companion("POST", "/api/v1/palaces/dreams/drawers", {"content": text}).json["id"] for text in texts
    )
    ran = companion("POST", "/api/v1/dream/run")
    assert (ran.status, set(ran.json)) == (200, {"merged", "decayed", "pruned", "duration_ms"})
    assert (ran.json["merged"] >= 1, ran.json["pruned"]) == (True, 0), "every palace of this server, others' too"
    left = companion.get("/api/v1/palaces/dreams/drawers")
    assert {drawer["id"] for drawer in left} == {first, third}
    status = companion.get("/api/v1/dream/status")
    assert (status["running"], status["merged"], status["last_run_at"][-1]) == (False, ran.json["merged"], "Z")
    assert companion("POST", "/api/v1/dream/run").json["merged"] == 0
    assert second


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/palaces/nowhere", None, 404),
        ("GET", "/api/v1/palaces/nowhere/drawers", None, 404),
        ("POST", "/api/v1/palaces/nowhere/drawers", {"content": "x"}, 404),
        ("GET", "/api/v1/palaces/nowhere/recall?q=x", None, 404),
        ("GET", "/api/v1/palaces/nowhere/dream/status", None, 404),
        ("POST", "/api/v1/palaces", {}, 400),
        ("POST", "/api/v1/palaces", {"name": "  "}, 400),
        ("POST", "/api/v1/palaces", {"name": "../up"}, 400),
        ("POST", "/api/v1/palaces", b"{", 400),
        ("POST", "/api/v1/palaces", None, 400),
        ("POST", "/api/v1/palaces/home/drawers", {"content": ""}, 400),
        ("POST", "/api/v1/palaces/home/drawers", {"content": "x", "importance": 2}, 400),
        ("POST", "/api/v1/palaces/home/drawers", {"content": "x", "tags": [1]}, 400),
        ("GET", "/api/v1/palaces/home/drawers?limit=-1", None, 400),
        ("GET", "/api/v1/palaces/home/recall", None, 400),
        ("GET", "/api/v1/palaces/home/recall?q=x&top_k=many", None, 400),
        ("GET", "/api/v1/palaces/home/kg", None, 400),
        ("POST", "/api/v1/palaces/home/kg", {"subject": "a"}, 400),
        ("PUT", "/api/v1/palaces", None, 405),
        ("GET", "/api/v1/nothing", None, 404),
        ("GET", "/", None, 404),
    ],
)
def test_every_error_is_an_object_with_a_sentence(
    companion: Companion, method: str, path: str, body: Any, status: int
) -> None:
    answer = companion(method, path, body)
    assert answer.status == status
    assert list(answer.json) == ["error"]
    assert isinstance(answer.json["error"], str)


# the stream


def test_the_stream_greets_and_tells_what_happens(companion: Companion) -> None:
    connection, response = companion.stream()
    try:
        assert response.status == 200
        assert response.getheader("content-type") == "text/event-stream"
        assert response.readline() == b'data: {"type":"connected"}\n'
        assert response.readline() == b"\n"
        companion("POST", "/api/v1/palaces", {"name": "streamed"})
        assert frame(response) == {"type": "palace_created", "id": "streamed", "name": "streamed"}
        id = companion.remember("streamed", "x")
        assert frame(response) == {"type": "drawer_added", "palace_id": "streamed", "drawer_count": 1}
        companion("DELETE", f"/api/v1/palaces/streamed/drawers/{id}")
        assert frame(response) == {"type": "drawer_deleted", "palace_id": "streamed", "drawer_count": 0}
    finally:
        connection.close()


def test_a_listener_hears_only_of_its_own_and_what_it_missed() -> None:
    import asyncio

    async def scenario() -> None:
        events = Events()
        frames = events.frames(Principal("someone", "local", "reader", ("mine",)))
        assert await anext(frames) == b'data: {"type":"connected"}\n\n'
        events.publish(Principal(), "other", {"type": "drawer_added"})
        events.publish(Principal(tenant="elsewhere"), "mine", {"type": "drawer_added"})
        for i in range(200):
            events.publish(Principal(), "mine", {"type": "drawer_added", "i": i})
        for i in range(128):
            assert json.loads((await anext(frames))[6:])["i"] == i
        events.publish(Principal(), "mine", {"type": "last"})
        assert json.loads((await anext(frames))[6:]) == {"type": "lag", "skipped": 72}
        assert json.loads((await anext(frames))[6:]) == {"type": "last"}
        events.end()
        with pytest.raises(StopAsyncIteration):
            await anext(frames)
        assert not events.has_listeners

    asyncio.run(scenario())


# the door


def test_names_and_pages_of_others_are_kept_out(companion: Companion) -> None:
    for path in ("/api/v1/status", "/health", "/sse"):
        assert companion("GET", path, Host="evil.example").status == 403
        assert companion("GET", path, Origin="https://evil.example").status == 403
    assert companion("POST", "/api/v1/palaces", {"name": "x"}, Origin="https://evil.example").status == 403
    assert companion("GET", "/api/v1/status", Host="localhost").status == 200


def test_where_there_are_tokens_one_is_asked_for(tmp_path: Path) -> None:
    secret = token(tmp_path, "--role", "reader", "--agents", "home")
    with run_trusty(tmp_path, "--palace", "home", "--http", "127.0.0.1:0") as client:
        companion = Companion(client)
        client.call("memory_remember", text="x")
        assert companion("GET", "/health").status == 200
        for path in ("/api/v1/status", "/sse"):
            answer = companion("GET", path)
            assert (answer.status, list(answer.json)) == (401, ["error"])
        mine = {"Authorization": f"Bearer {secret}"}
        assert len(http_call(companion.port, "GET", "/api/v1/palaces/home/drawers", None, mine).json) == 1
        assert http_call(companion.port, "GET", "/api/v1/palaces/other/drawers", None, mine).status == 403
        assert http_call(companion.port, "POST", "/api/v1/palaces", {"name": "y"}, mine).status == 403
        assert http_call(companion.port, "GET", "/api/v1/status", None, mine).json["data_root"] is None


def test_what_is_asked_makes_no_default_palace_and_tells_nobody_elses(tmp_path: Path) -> None:
    acme = {"Authorization": f"Bearer {token(tmp_path, '--role', 'admin', '--tenant', 'acme')}"}
    other = {"Authorization": f"Bearer {token(tmp_path, '--role', 'writer', '--agents', 'other')}"}
    reader = {"Authorization": f"Bearer {token(tmp_path, '--role', 'reader', '--agents', 'fresh')}"}
    with run_trusty(tmp_path, "--palace", "fresh", "--http", "127.0.0.1:0") as client:
        port = client.port

        def get(path: str, mine: dict[str, str]) -> Any:
            answer = http_call(port, "GET", f"/api/v1/{path}", None, mine)
            assert answer.status == 200, answer.body
            return answer.json

        # Nobody has spoken on stdin yet.
        status = get("status", reader)
        assert (status["default_palace"], status["palace_count"], status["total_drawers"]) == ("fresh", 1, 0)
        assert [palace["id"] for palace in get("palaces", reader)] == ["fresh"]
        assert get("palaces/fresh/drawers", reader) == []
        for mine in (acme, other):
            assert get("status", mine)["default_palace"] is None
            assert get("palaces", mine) == []
        never = [http_call(port, "GET", f"/api/v1/palaces/{name}", None, acme) for name in ("fresh", "other")]
        assert [answer.status for answer in never] == [404, 404]
        body = {"content": "x"}
        assert http_call(port, "POST", "/api/v1/palaces/fresh/drawers", body, acme).status == 404
        assert get("palaces", acme) == []
        assert client.call("palace_list") == {"palaces": ["fresh"]}


def test_what_is_not_there_is_answered_with_a_place_that_is(companion: Companion) -> None:
    lost = companion("GET", "/docs")
    assert (lost.status, lost.json) == (
        404, {"error": "there is nothing at /docs; /api/v1/status is a place to begin"},
    )  # fmt: skip
    assert companion("GET", "/api/v1/status").status == 200


def test_a_stream_ends_with_the_token_it_was_opened_with(tmp_path: Path) -> None:
    made = cli(tmp_path, "token", "create", "--role", "reader", "--agents", "home")
    with run_trusty(tmp_path, "--palace", "home", "--http", "127.0.0.1:0") as client:
        companion = Companion(client)
        writer = {"Authorization": f"Bearer {token(tmp_path)}"}
        reader = {"Authorization": f"Bearer {made['token']}"}
        connection, response = companion.stream(**reader)
        assert frame(response) == {"type": "connected"}
        body = {"content": "x"}
        assert http_call(companion.port, "POST", "/api/v1/palaces/home/drawers", body, writer).status == 200
        assert frame(response)["type"] == "drawer_added"
        cli(tmp_path, "token", "revoke", made["id"])
        while http_call(companion.port, "GET", "/api/v1/palaces", None, reader).status == 200:
            pass  # within the quarter of a second that a server may take to hear of it
        assert http_call(companion.port, "POST", "/api/v1/palaces/home/drawers", body, writer).status == 200
        assert response.read() == b""
        connection.close()


def test_other_machines_reach_it_only_where_tokens_are_asked_for(tmp_path: Path) -> None:
    with run_trusty(tmp_path, "--http", "0.0.0.0:0") as client:
        assert client.process.wait(SECONDS) == 1
        said = "".join(client.told())
        assert "without tokens" in said
        assert "listening" not in said
    token(tmp_path, "--role", "admin")
    with run_trusty(tmp_path, "--http", "0.0.0.0:0") as client:
        assert Companion(client)("GET", "/api/v1/status").status == 401


# its life


@pytest.mark.parametrize("number", SIGNALS, ids=["EOF", "SIGTERM", "SIGINT"])
def test_the_end_of_the_loop_is_the_end_of_the_server(tmp_path: Path, number: int | None) -> None:
    with run_trusty(tmp_path, "--palace", "home", "--http", "127.0.0.1:0") as client:
        companion = Companion(client)
        companion.remember("home", "x")
        connection, response = companion.stream()
        assert frame(response) == {"type": "connected"}
        assert client.end(number) == 0
        assert response.read() == b""
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            companion("GET", "/health")


def test_it_listens_where_it_was_told(companion: Companion, tmp_path: Path) -> None:
    assert f"listening on http://127.0.0.1:{companion.port}\n" in "".join(companion.client.err)
    # At another port it would find a place.
    port = companion.port
    with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1 port {port}: .*--http"):
        CompanionServer(config.load(data=tmp_path), f"127.0.0.1:{port}", None)


def test_an_address_that_is_taken_ends_it_with_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with run_trusty(tmp_path, "--http", f"127.0.0.1:{taken.getsockname()[1]}") as client:
            assert client.process.wait(SECONDS) == 2
            said = "".join(client.told())
            assert "cannot listen on 127.0.0.1" in said
            assert "--http" in said
            assert "Traceback" not in said


@pytest.mark.parametrize("given", ["3031", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", ":3031", "::1:3031", "h:99999"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ValidationError):
        parse_address(given)


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [("127.0.0.1:3031", "127.0.0.1", 3031), ("[::1]:0", "::1", 0), ("localhost:1", "localhost", 1)],
)
def test_addresses_are_read_as_they_are_written(given: str, host: str, port: int) -> None:
    assert parse_address(given) == (host, port)
