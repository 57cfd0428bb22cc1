"""What `health` looks at beside a store's own answer; tests/backends/test_health.py takes it away from each product."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from commonplace.stores.health_checks import EmbeddingsEndpoint, require_file, require_folder
from commonplace.wire.errors import Unavailable


def test_a_file_that_is_gone_is_said_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    file.touch()
    require_file(file)
    with file.open() as held:  # whoever has it open can go on in it
        file.unlink()
        assert held.read() == ""
        with pytest.raises(Unavailable, match="is gone, and nothing is kept there any more; stop, put it back"):
            require_file(file)


def test_a_folder_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    require_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Unavailable, match="cannot be written: No such file or directory; put that right"):
        require_folder(tmp_path / "gone")


@contextmanager
def endpoint(status: int, answer: Any) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, asked) == ("/v1/embeddings", {"model": "any", "input": ["health"]})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


def ask(url: str) -> None:
    async def work() -> None:
        held = EmbeddingsEndpoint(url, "any", 3, 5)
        try:
            await held.require()
        finally:
            held.close()

    asyncio.run(work())


#: What an endpoint answers, and what is said of it.
ANSWERS: dict[str, tuple[int, Any, str]] = {
    "a failure": (500, {"detail": "Alice"}, "no embeddings.* answered 500"),
    "a refusal": (401, {"error": {"message": "Alice"}}, "no embeddings"),
    "something else": (200, {"models": []}, "is no such endpoint; check embeddings= in its URL"),
    "no vectors": (200, {"data": []}, "is no such endpoint; check embeddings= in its URL"),
    "a list": (200, [1, 2, 3], "no embeddings.* no object"),
    "too few numbers": (200, {"data": [{"embedding": [1, 0]}]}, "and the embedder's have 3; start .* or resync into"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_endpoint_that_makes_no_such_vectors_is_said(case: str) -> None:
    status, answer, said = ANSWERS[case]
    with endpoint(status, answer) as url, pytest.raises(Unavailable, match=said) as refused:
        ask(url)
    assert "Alice" not in str(refused.value)


def test_an_endpoint_that_answers_is_well_and_one_that_is_gone_is_named() -> None:
    with endpoint(200, {"data": [{"embedding": [1, 0, 0]}]}) as url:
        ask(url)
    with pytest.raises(Unavailable, match=r"no embeddings, .* could not be reached: .*`commonplace serve"):
        ask(url)
