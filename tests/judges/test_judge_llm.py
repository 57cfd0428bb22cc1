"""Against a real HTTP server in a thread of this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from chat_endpoint import ChatEndpoint, serving_chat
from other_protocol import run_other_protocol

from commonplace.judges.llm import NO, YES, LLMJudge, open_llm
from commonplace.wire.errors import Unavailable

SECRET = "Alice keeps the spare key under the blue pot"
QUESTION = "Where is the spare key?"


class FixedJudge:
    name = "fixed"
    note: str | None = None

    def __init__(self, *logits: float) -> None:
        self.logits = list(logits)

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        return self.logits[: len(texts)]


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with serving_chat() as server:
        server.says = '{"answers": [1]}'
        yield server


def open_judge(endpoint: ChatEndpoint, extra: str = "", inner: Any = None) -> LLMJudge:
    return open_llm(endpoint.spec(extra), inner=inner)


def test_only_the_uncertain_are_asked_about_in_one_request(endpoint: ChatEndpoint) -> None:
    judge = open_judge(endpoint, inner=FixedJudge(5.0, 0.5, -8.0, -1.0))
    assert judge.judge(QUESTION, ["sure", "maybe", "surely not", "maybe not"]) == [5.0, YES, -8.0, NO]
    assert endpoint.asked() == [{"question": QUESTION, "memories": {"1": "maybe", "2": "maybe not"}}]
    assert (judge.usage.calls, judge.usage.tokens, judge.usage.failures) == (1, 120, 0)
    assert judge.note is None


def test_when_nothing_is_uncertain_nothing_is_asked(endpoint: ChatEndpoint) -> None:
    assert open_judge(endpoint, inner=FixedJudge(5.0, -8.0)).judge(QUESTION, ["a", "b"]) == [5.0, -8.0]
    assert endpoint.requests == []


def test_alone_it_is_asked_about_everything(endpoint: ChatEndpoint) -> None:
    endpoint.says = "Sure:\n```json\n[2, 7]\n```"
    assert open_judge(endpoint).judge(QUESTION, ["a", "b"]) == [NO, YES]


def test_the_key_comes_from_the_variable(endpoint: ChatEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "abc")
    open_judge(endpoint, "&key=JUDGE_KEY").judge(QUESTION, ["a"])
    assert endpoint.requests[0]["key"] == "Bearer abc"
    assert endpoint.requests[0]["path"] == "/v1/chat/completions"
    open_judge(endpoint).judge(QUESTION, ["a"])
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
    endpoint: ChatEndpoint, status: int, says: str, raw: bytes | None, complaint: str
) -> None:
    endpoint.status, endpoint.says, endpoint.raw = status, says, raw
    judge = open_judge(endpoint, inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, [SECRET]) == [0.5]
    assert complaint in (judge.note or "")
    assert "spare" not in (judge.note or "")
    assert judge.usage.failures == 1
    with pytest.raises(Unavailable):
        open_judge(endpoint).judge(QUESTION, [SECRET])


def test_a_spent_budget_asks_no_more(endpoint: ChatEndpoint) -> None:
    judge = open_judge(endpoint, "&calls=1", inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, ["a"]) == [YES]
    assert judge.judge(QUESTION, ["a"]) == [0.5]
    assert "spent its budget (1 calls, 120 tokens)" in (judge.note or "")
    thrifty = open_judge(endpoint, "&tokens=100", inner=FixedJudge(0.5))
    assert [thrifty.judge(QUESTION, ["a"]) for _ in range(2)] == [[YES], [0.5]]
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_not_there_is_a_note() -> None:
    judge = open_llm("llm://127.0.0.1:9/v1?model=small&timeout=1", inner=FixedJudge(0.5))
    assert judge.judge(QUESTION, ["a"]) == [0.5]
    assert "cannot be reached: 127.0.0.1:9 could not be reached: Connection refused" in (judge.note or "")
    with run_other_protocol() as port:
        judge = open_llm(f"llm://127.0.0.1:{port}/v1?model=small", inner=FixedJudge(0.5))
        assert judge.judge(QUESTION, ["a"]) == [0.5]
        assert f"127.0.0.1:{port} could not be reached: BadStatusLine; is that a server's port" in (judge.note or "")
