"""A language model chooses among what the person said, against a real HTTP server in a thread of this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from chat_endpoint import ChatEndpoint, serving_chat
from transfer_scenarios import WHO

from commonplace.testing.subject import Subject
from commonplace.transfer.capture import CaptureReport, CaptureTarget, capture
from commonplace.transfer.llm_extraction import open_extractor
from commonplace.transfer.transcripts import Turn
from commonplace.wire.errors import ValidationError

SECRET = "ghp_" + "a1B2" * 9
TURNS = [
    Turn("user", "I prefer tabs over spaces. The blue server is in Bergen. What is our port?", "1", "s1"),
    Turn("assistant", "The red server is in Oslo. I prefer spaces.", "2", "s1"),
    Turn("user", f"Alice has the keys and {SECRET} with her. Tell me where our logs are.", "3", "s1"),
]


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with serving_chat() as server:
        server.says = '{"keep": {}}'
        yield server


def captured(subject: Subject, run: Any, endpoint: ChatEndpoint, turns: list[Turn], extra: str = "") -> CaptureReport:
    target = CaptureTarget("agent", review=False)
    extractor = open_extractor(endpoint.spec(extra))
    report: CaptureReport = run(capture(subject.engine, WHO, turns, "codex", target, extractor=extractor))
    return report


def contents(report: CaptureReport) -> list[tuple[str, str]]:
    return [(each["kind"], each["content"]) for each in report.proposed]


def test_it_is_shown_what_the_rules_left_without_questions_secrets_and_the_agents_words(
    subject: Subject, run: Any, endpoint: ChatEndpoint
) -> None:
    report = captured(subject, run, endpoint, TURNS)
    (asked,) = endpoint.asked()
    assert asked == {
        "1": "The blue server is in Bergen.",
        "2": "Alice has the keys and <REDACTED:github_token> with her.",
    }
    assert SECRET not in json.dumps(endpoint.requests)
    assert contents(report) == [("preference", "I prefer tabs over spaces.")]
    assert report.note is None


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize(
    ("comment", "end"), [("Comment: I use the blue server", "-----END PGP PRIVATE KEY BLOCK-----"), ("", "")]
)
def test_no_line_of_a_key_is_shown_to_it_or_kept(
    subject: Subject, run: Any, endpoint: ChatEndpoint, newline: str, comment: str, end: str
) -> None:
    """Pasted without a fence, each line of it is a sentence, and its comment looks like a fact."""
    lines = [f"lQdGBGX{number}" + "a1B2c3D4" * 7 for number in range(30)]
    key = ["-----BEGIN PGP PRIVATE KEY BLOCK-----", comment, "", *lines, end]
    said = newline.join(["The blue server is in Bergen.", *key, "", "The red server is in Oslo.", "I prefer tabs."])
    endpoint.says = json.dumps({"keep": {str(n): "fact" for n in range(1, 61)}})
    report = captured(subject, run, endpoint, [Turn("user", said, "1")])
    kept = ["I prefer tabs.", "The blue server is in Bergen.", "The red server is in Oslo."]
    assert [text for _, text in contents(report)] == kept
    assert [list(asked.values()) for asked in endpoint.asked()] == [kept[1:]]
    assert sorted(memory.content for memory in run(subject.list())) == kept


def test_what_it_chooses_is_kept_in_the_persons_words(subject: Subject, run: Any, endpoint: ChatEndpoint) -> None:
    endpoint.says = 'Sure:\n```json\n{"keep": {"1": "fact", "2": ["fact"], "7": "fact"}, "3": "Bob owns it all"}\n```'
    report = captured(subject, run, endpoint, TURNS)
    assert contents(report)[1:] == [("fact", "The blue server is in Bergen.")]
    (kept,) = (memory for memory in run(subject.list()) if memory.kind == "fact")
    assert kept.provenance["captured"]["by"] == endpoint.spec()
    assert captured(subject, run, endpoint, TURNS).proposed == [], "and not twice"


def test_a_reviewer_is_told_who_chose_it(subject: Subject, run: Any, endpoint: ChatEndpoint) -> None:
    endpoint.says = '{"keep": {"1": "fact"}}'
    extractor = open_extractor(endpoint.spec())
    run(capture(subject.engine, WHO, TURNS, "codex", CaptureTarget("agent"), extractor=extractor))
    reasons = [review["reasoning"] for review in run(subject.engine.reviews.list(WHO))]
    assert reasons == [
        "said in a conversation; taken for a preference",
        f"said in a conversation; taken for a fact by {endpoint.spec()}",
    ]
    assert run(subject.list()) == []


@pytest.mark.parametrize(
    ("status", "says", "raw", "complaint"),
    [
        (500, "", None, "refused (HTTP 500)"),
        (302, "", None, "refused (HTTP 302)"),
        (200, "none of them", None, "answered something else than asked for"),
        (200, '{"keep": [1]}', None, "answered something else than asked for"),
        (200, "", b"{}", "answered something else than asked for"),
        (200, "", SECRET.encode(), "answered something else than asked for"),
    ],
)
def test_where_it_fails_the_rules_stand_and_it_is_said(
    subject: Subject, run: Any, endpoint: ChatEndpoint, status: int, says: str, raw: bytes | None, complaint: str
) -> None:
    endpoint.status, endpoint.says, endpoint.raw = status, says, raw
    report = captured(subject, run, endpoint, TURNS)
    assert contents(report) == [("preference", "I prefer tabs over spaces.")]
    assert complaint in (report.note or "")
    assert "Bergen" not in (report.note or "")


@pytest.mark.parametrize("review", [True, False])
def test_what_the_rules_found_is_kept_before_it_is_asked(
    subject: Subject, run: Any, endpoint: ChatEndpoint, review: bool
) -> None:
    """A hook that takes too long is killed."""
    endpoint.says = '{"keep": {"1": "fact"}}'
    endpoint.may_answer.clear()
    target, extractor = CaptureTarget("agent", review=review), open_extractor(endpoint.spec())

    async def kept() -> list[str]:
        staged = [review["request"]["content"] for review in await subject.engine.reviews.list(WHO)]
        return staged + [memory.content for memory in await subject.list()]

    async def look_while_it_thinks() -> CaptureReport:
        begun = asyncio.create_task(capture(subject.engine, WHO, TURNS, "codex", target, extractor=extractor))
        try:
            assert await asyncio.to_thread(endpoint.was_asked.wait, 60)
            assert await kept() == ["I prefer tabs over spaces."]
        finally:
            endpoint.may_answer.set()
            report = await begun
        return report

    report = run(look_while_it_thinks())
    assert sorted(run(kept())) == ["I prefer tabs over spaces.", "The blue server is in Bergen."]
    assert (report.staged, report.written) == ((2, 0) if review else (0, 2))
    assert contents(report) == [("preference", "I prefer tabs over spaces."), ("fact", "The blue server is in Bergen.")]


def test_it_spends_no_more_than_its_budget(subject: Subject, run: Any, endpoint: ChatEndpoint) -> None:
    turns = [Turn("user", f"The server number {number} is in Bergen.", str(number)) for number in range(150)]
    for extra, calls in (("", 3), ("&calls=2", 2), ("&tokens=100", 1)):
        endpoint.requests.clear()
        endpoint.says = '{"keep": {"1": "fact"}}'
        note = captured(subject, run, endpoint, turns, extra).note
        assert [len(asked) for asked in endpoint.asked()] == [60, 60, 30][:calls]
        assert ("has spent its budget" in (note or "")) is (calls < 3)
    assert len(run(subject.list())) == 3, "what it chose before that is kept"


def test_what_is_said_only_by_the_agent_asks_nobody(subject: Subject, run: Any, endpoint: ChatEndpoint) -> None:
    assert captured(subject, run, endpoint, [Turn("assistant", "The red server is in Oslo.", "1")]).proposed == []
    assert endpoint.requests == []


def test_the_rules_alone_unless_somebody_configures_one() -> None:
    assert open_extractor("rules") is None
    with pytest.raises(ValidationError, match="there is no extractor 'gpt'; there are: rules, llm://HOST"):
        open_extractor("gpt")
    with pytest.raises(ValidationError, match="extractor 'llm://host/v1': write it as llm://HOST"):
        open_extractor("llm://host/v1")
