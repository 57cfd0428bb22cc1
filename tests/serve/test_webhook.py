"""The webhook: signed, in order, retried until it is answered, and its failures are shown."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from commonplace.config import GovernanceConfig
from commonplace.engine import Decision, Draft
from commonplace.serve.webhook import SIGNATURE, Webhook, signature, wait_after
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import ValidationError

SECRET = "".join(("0123", "4567", "89ab", "cdef"))


class Receiver:
    """Takes what it is sent, answering as it is told."""

    def __init__(self) -> None:
        self.status, self.taken = 200, list[tuple[str, bytes]]()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.taken.append((self.headers[SIGNATURE], body))
                self.send_response(receiver.status)
                if receiver.status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/reviews"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def over() -> Iterator[tuple[Subject, Any]]:
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as opened:
        yield opened


def webhook(subject: Subject, url: str, monkeypatch: pytest.MonkeyPatch) -> Webhook:
    monkeypatch.setenv("COMMONPLACE_WEBHOOK_SECRET", SECRET)
    return Webhook(subject.engine, GovernanceConfig(webhook=url))


def stage(subject: Subject, run: Any, content: str = "zanzibar") -> str:
    draft = Draft("agent", "semantic", content)
    return str(run(subject.engine.remember(WHO, draft, approval={"content": content})).review_id)


def test_new_and_decided_reviews_are_told_signed_and_without_what_memories_say(
    over: tuple[Subject, Any], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, run = over
    subject.engine.settings.review_url = "http://localhost:8420/v0/reviews"
    stage(subject, run, "before there was a webhook")
    hook = webhook(subject, receiver.url, monkeypatch)
    assert run(hook.deliver()) == 0
    review = stage(subject, run)
    run(subject.engine.reviews.decide(WHO, review, Decision(True, "Alice")))
    assert (run(hook.deliver()), run(hook.deliver())) == (2, 0)
    messages = []
    for signed, body in receiver.taken:
        at = signed.split(",")[0].removeprefix("t=")
        expected = hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert signed == f"t={at},v1={expected}" == signature(SECRET, int(at), body)
        assert b"zanzibar" not in body
        messages.append(json.loads(body))
    assert [message["event"] for message in messages] == ["review.staged", "review.approved"]
    assert {message["review"]["id"] for message in messages} == {review}
    assert messages[0]["approval_url"] == f"http://localhost:8420/v0/reviews/{review}"
    assert len({message["id"] for message in messages}) == 2


@pytest.mark.parametrize("status", [500, 404, 302])
def test_what_is_not_answered_is_tried_again_in_order_and_shown(
    over: tuple[Subject, Any], receiver: Receiver, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    subject, run = over
    hook = webhook(subject, receiver.url, monkeypatch)
    run(hook.deliver())
    receiver.status = status
    ids = [stage(subject, run, text) for text in ("one", "two")]
    for attempt in (1, 2, 3):
        assert run(hook.deliver()) == 0
        shown = run(subject.engine.upkeep.status(WHO))["webhook"]
        assert (shown["attempts"], shown["error"]) == (attempt, f"it answered {status}")
        run(hook.deliver())  # too early: nothing is tried
        assert run(subject.engine.upkeep.status(WHO))["webhook"]["attempts"] == attempt
        subject.clock.advance(wait_after(attempt))
    receiver.status = 200
    again = webhook(subject, receiver.url, monkeypatch)  # as after a restart
    assert run(again.deliver()) == 2
    assert [json.loads(body)["review"]["id"] for _, body in receiver.taken] == ids
    assert run(subject.engine.upkeep.status(WHO))["webhook"] == {}


def test_one_that_is_down_is_said_to_be(over: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    subject, run = over
    hook = webhook(subject, "http://127.0.0.1:1/reviews", monkeypatch)
    run(hook.deliver())
    stage(subject, run)
    assert run(hook.deliver()) == 0
    assert "it cannot be reached" in run(subject.engine.upkeep.status(WHO))["webhook"]["error"]


def test_waiting_grows_and_has_an_end() -> None:
    waits = [wait_after(attempt) for attempt in range(1, 60)]
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == max(waits) == 300_000


def test_a_webhook_needs_an_address_and_a_secret(over: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    subject, _ = over
    with pytest.raises(ValidationError, match=r"such as https://example\.org/reviews"):
        webhook(subject, "ftp://example.org", monkeypatch)
    monkeypatch.delenv("COMMONPLACE_WEBHOOK_SECRET")
    with pytest.raises(ValidationError, match="COMMONPLACE_WEBHOOK_SECRET"):
        Webhook(subject.engine, GovernanceConfig(webhook="https://example.org"))


def test_it_runs_until_it_is_cancelled(
    over: tuple[Subject, Any], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, run = over
    hook = webhook(subject, receiver.url, monkeypatch)

    async def cancelled() -> bool:
        task = asyncio.create_task(hook.run())
        await asyncio.sleep(0)
        task.cancel()
        return bool(await asyncio.gather(task, return_exceptions=True))

    assert run(cancelled())
