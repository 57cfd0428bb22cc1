"""An endpoint that takes OpenAI's chat request, in a thread of this process: what it says is the test's to choose."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatEndpoint(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.says = ""
        self.raw: bytes | None = None
        self.was_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def spec(self, extra: str = "") -> str:
        return f"llm://127.0.0.1:{self.server_port}/v1?model=small{extra}"

    def asked(self) -> list[Any]:
        """What each request was about."""
        return [json.loads(request["messages"][1]["content"]) for request in self.requests]


class Handler(BaseHTTPRequestHandler):
    server: ChatEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        self.server.was_asked.set()
        self.server.may_answer.wait(60)
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


@contextmanager
def serving_chat() -> Iterator[ChatEndpoint]:
    with ChatEndpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
