"""Against a real HTTP server in a thread of this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from commonplace.judges.llm import NO, YES, LLMJudge, open_llm
from commonplace.wire.errors import Unavailable

SECRET = "Alice keeps the spare key under the blue pot"
QUESTION = "Where is the spare key?"


class EndpointServer(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.says = '{"answers": [1]}'
        self.raw: bytes | None = None

    def judge(self, extra: str = "", inner: Any = None) -> LLMJudge:
        return open_llm(f"llm://127.0.0.1:{self.server_port}/v1?model=small{extra}", inner=inner)


class Handler(BaseHTTPRequestHandler):
    server: EndpointServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        answer = {"choices": [{"message": {"content": self.server.says}}], "usage": {"total_tokens": 120}}
        data = self.server.raw if self.server.raw is not None else json.dumps(answer).encode()
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class FixedJudge:
    name = "fixed"
    note: str | None = None

    def __init__(self, *logits: float) -> None:
        self.logits = list(logits)

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        return self.logits[: len(texts)]


@pytest.fixture
def endpoint() -> Iterator[EndpointServer]:
    with EndpointServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def sent(endpoint: EndpointServer) -> dict[str, Any]:
    (request,) = endpoint.requests
    loaded: dict[str, Any] = json.loads(request["messages"][1]["content"])
    return loaded


def test_only_the_uncertain_are_asked_about_in_one_request(endpoint: EndpointServer) -> None:
    judge = endpoint.judge(inner=FixedJudge(5.0, 0.5, -8.0, -1.0))
    assert judge.judge(QUESTION, ["sure", "maybe", "surely not", "maybe not"]) == [5.0, YES, -8.0, NO]
    assert sent(endpoint) == {"question": QUESTION, "memories": {"1": "maybe", "2": "maybe not"}}
    assert (judge.usage.calls, judge.usage.tokens, judge.usage.failures) == (1, 120, 0)
    assert judge.note is None


def test_when_nothing_is_uncertain_nothing_is_asked(endpoint: EndpointServer) -> None:
    assert endpoint.judge(inner=FixedJudge(5.0, -8.0)).judge(QUESTION, ["a", "b"]) == [5.0, -8.0]
    assert endpoint.requests == []


def test_alone_it_is_asked_about_everything(endpoint: EndpointServer) -> None:
    endpoint.says = "Sure:\n```json\n[2, 7]\n```"
    assert endpoint.judge().judge(QUESTION, ["a", "b"]) == [NO, YES]


def test_the_key_comes_from_the_variable(endpoint: EndpointServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "abc")
    endpoint.judge("&key=JUDGE_KEY").judge(QUESTION, ["a"])
    assert endpoint.requests[0]["key"] == "Bearer abc"
    assert endpoint.requests[0]["path"] == "/v1/chat/completions"
    endpoint.judge().judge(QUESTION, ["a"])
    assert endpoint.requests[1]["key"] is None


@pytest.mark.parametrize(
    ("status", "says", "raw", "complaint"),
    [
        (500, "", None, "refused (HTTP 500)"),
        (302, "", None, "refused (HTTP 302)"),
        (200, "I cannot tell", None, "something else than asked"),
        (200, "", b"{}", "something else than asked"),
        (200, "", SECRET.encode(), "something else than asked"),
    ],
)
def test_a_failure_leaves_the_other_judges_word_and_a_note_without_texts(
    endpoint: EndpointServer, status: int, says: str, raw: bytes | None, complaint: str
) -> None:
    endpoint.status, endpoint.says, endpoint.raw = status, says, raw
    judge = endpoint.judge(inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, [SECRET]) == [0.5]
    assert complaint in (judge.note or "")
    assert "spare" not in (judge.note or "")
    assert judge.usage.failures == 1
    with pytest.raises(Unavailable):
        endpoint.judge().judge(QUESTION, [SECRET])


def test_a_spent_budget_asks_no_more(endpoint: EndpointServer) -> None:
    judge = endpoint.judge("&calls=1", inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, ["a"]) == [YES]
    assert judge.judge(QUESTION, ["a"]) == [0.5]
    assert "spent its budget (1 calls, 120 tokens)" in (judge.note or "")
    thrifty = endpoint.judge("&tokens=100", inner=FixedJudge(0.5))
    assert [thrifty.judge(QUESTION, ["a"]) for _ in range(2)] == [[YES], [0.5]]
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_not_there_is_a_note() -> None:
    judge = open_llm("llm://127.0.0.1:9/v1?model=small&timeout=1", inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, ["a"]) == [0.5]
    assert "cannot be reached: 127.0.0.1:9 could not be reached: Connection refused" in (judge.note or "")
