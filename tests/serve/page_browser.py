"""The page without a browser: cookies, forms and what the HTML says, over plain HTTP."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode

from server_process import Answer, ServerProcess

_CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


@dataclass
class Visitor:
    """One person at the page; the cookie is kept from answer to answer."""

    server: ServerProcess
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self._call("GET", path, None, headers)

    def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]], **headers: str) -> Answer:
        """As a form of this session sends it."""
        given = dict(fields) if isinstance(fields, dict) else list(fields)
        pairs = list(given.items()) if isinstance(given, dict) else given
        return self.post_raw(path, [("csrf", self.csrf()), *pairs], **headers)

    def post_raw(self, path: str, pairs: list[tuple[str, str]], **headers: str) -> Answer:
        form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return self._call("POST", path, urlencode(pairs).encode(), form)

    def csrf(self) -> str:
        found = _CSRF.search(self.get("/ui/login").body.decode())
        assert found is not None
        return found[1]

    def log_in(self, token: str) -> Answer:
        return self.post("/ui/login", {"token": token, "next": "/ui/inbox"})

    def _call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        sent = {**self.headers, **headers, **({"Cookie": self.cookie} if self.cookie else {})}
        answer = self.server.call(method, path, body, headers=sent)
        if given := answer.headers.get("set-cookie"):
            self.cookie = given.partition(";")[0]
        return answer


def text_of(answer: Answer) -> str:
    """What a person reads of it."""
    return unescape(re.sub(r"<[^>]*>", " ", answer.body.decode()))
