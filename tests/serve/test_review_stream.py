"""The stream of reviews: told as it happens, whichever process staged it, and resumed where it broke off."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from conftest import TokenServer
from server_process import ServerProcess

pytestmark = pytest.mark.process
_SECONDS = 30


@contextmanager
def listening(server: ServerProcess, path: str = "", token: str = "", **headers: str) -> Iterator[Any]:
    host = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=_SECONDS)
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("GET", f"/v0/reviews/stream{path}", headers={**authorization, **headers})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def frame(answer: Any) -> dict[str, str]:
    """The next event; comments are passed over."""
    found: dict[str, str] = {}
    while True:
        line = answer.readline().decode().rstrip("\n")
        if not line and found:
            return found
        name, _, value = line.partition(": ")
        if name:
            found[name] = value


def stage(server: ServerProcess, agent: str, token: str | None = None) -> str:
    body = {"agent_id": agent, "type": "semantic", "content": "Bob moved", "approval_required": True}
    return str(server.call("POST", "/v0/remember", body, token=token).json["review_id"])


def test_a_new_review_is_told_and_the_stream_goes_on_where_it_broke_off(open_server: ServerProcess) -> None:
    with listening(open_server) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.readline() == b": connected\n"
        first = stage(open_server, "streamed")
        told = frame(answer)
    assert (told["event"], json.loads(told["data"])["id"]) == ("review.staged", first)
    open_server.post(f"/v0/reviews/{first}", {"approved": True})
    for path, headers in ((f"?after={told['id']}", {}), ("", {"Last-Event-ID": told["id"]})):
        with listening(open_server, path, **headers) as answer:
            resumed = frame(answer)
            assert (resumed["event"], json.loads(resumed["data"])["id"]) == ("review.approved", first)


def test_each_listener_is_told_of_their_own(guarded: TokenServer) -> None:
    server, tokens = guarded.server, guarded.tokens
    with listening(server) as answer:
        assert answer.status == 401
    with listening(server, token=tokens["acme/bea"]) as bea, listening(server, token=tokens["acme/ada"]) as ada:
        assert bea.readline() == ada.readline() == b": connected\n"
        stage(server, "ada", tokens["globex"])
        theirs = stage(server, "bea", tokens["acme"])
        mine = stage(server, "ada", tokens["acme"])
        assert json.loads(frame(ada)["data"])["id"] == mine
        assert json.loads(frame(bea)["data"])["id"] == theirs


@pytest.mark.parametrize("path", ["?after=x", "?after=-1", "?since=1", "?after=1234567890123456"])
def test_a_wrong_position_is_refused(open_server: ServerProcess, path: str) -> None:
    answer = open_server.get(f"/v0/reviews/stream{path}")
    assert (answer.status, answer.code) == (400, "validation_error")
