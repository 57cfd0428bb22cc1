"""One client's batch of long texts, with the default model: meanwhile everyone else is answered. Prints its figure."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server_process import ServerProcess, cli, run_server

pytestmark = [pytest.mark.process, pytest.mark.slow]

ITEMS, CHARS = 1_000, 3_900
WORDS = ("harbour", "crane", "painted", "green", "before", "regatta", "began", "nobody", "complained")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(data: Path) -> Iterator[ServerProcess]:
    with run_server(data, COMMONPLACE_EMBEDDER="encoder") as server:
        yield server
        server.process.kill()  # what is left to embed would take minutes, and the next process takes it up


def long_text(number: int) -> str:
    text = f"ticket {number} lantern{number}"
    while len(text) < CHARS:
        text += f" {WORDS[len(text) * 7 % len(WORDS)]}"
    return text[:CHARS]


def test_everyone_else_is_answered_beside_a_big_batch(server: ServerProcess, data: Path) -> None:
    quiet = {"agent_id": "quiet", "type": "semantic", "content": "Alice is allergic to peanuts"}
    assert server.post("/v0/remember", quiet).status == 200
    batch = [{"agent_id": "busy", "type": "semantic", "content": long_text(n)} for n in range(ITEMS)]

    def answered_question(number: int) -> None:
        assert server.get("/healthz").status == 200
        asked = {"agent_id": "quiet", "query": f"what is Alice allergic to, question {number}?"}
        found = server.post("/v0/recall", asked)
        assert (found.status, found.json["results"][0]["content"]) == (200, quiet["content"])

    questions = 0
    with ThreadPoolExecutor(1) as other:
        written = other.submit(server.post, "/v0/remember/batch", {"items": batch})
        while not written.done():
            answered_question(questions)
            questions += 1
    assert (written.result().status, questions > 0) == (200, True)

    # Acknowledged is not yet embedded; found by its words it is.
    answered_question(questions)
    found = server.post("/v0/recall", {"agent_id": "busy", "query": "lantern777"})
    assert found.json["results"][0]["content"].startswith("ticket 777 ")
    left = cli(data, "status")["without_vectors"]
    print(
        f"{questions} questions were answered before the batch was acknowledged; {left} of {ITEMS} are embedded later"
    )
    assert left > 0, "the last question waited until everything was embedded"
