"""One call through the real server, with what it called on the way and what it asked of its store."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from commonplace.stores.base import Primary
from commonplace.stores.optional import FileUpkeep, Reindexable

Document = dict[str, Any]

PACKAGE = "commonplace."


class CountingStore:
    """Any primary, with the verbs that the engine asked of it in `reads` and whose work it ran in `transactions`."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.name: str = store.name
        self.capabilities: frozenset[str] = store.capabilities
        self.reads: list[str] = []
        self.transactions: list[str] = []

    def clear(self) -> None:
        self.reads, self.transactions = [], []


def _delegate(verb: str) -> Callable[..., Any]:
    def call(self: CountingStore, *args: Any, **more: Any) -> Any:
        if verb == "transact":
            self.transactions.append(_named(args[1]))
        else:
            self.reads.append(verb)
        return getattr(self.store, verb)(*args, **more)

    return call


# Set on the class and not found by __getattr__: `isinstance(store, FileUpkeep)` must hold as it does for the store.
for _protocol in (Primary, FileUpkeep, Reindexable):
    for _verb in dir(_protocol):
        if not _verb.startswith("_") and _verb not in ("name", "capabilities"):
            setattr(CountingStore, _verb, _delegate(_verb))


def _named(work: Callable[..., Any]) -> str:
    """The function that a unit of work was written in."""
    return f"{work.__module__}.{work.__qualname__}".removeprefix(PACKAGE).partition(".<locals>")[0]


@dataclass
class Calls:
    """Functions of ours by module and name, each where it was first called."""

    functions: dict[str, None] = field(default_factory=dict)

    def missing_in_order(self, expected: list[str]) -> list[str]:
        """What of `expected` was not called, or not after the one before it."""
        left, missing = iter(self.functions), []
        for name in expected:
            if not any(called == name for called in left):
                missing.append(name)
                left = iter(self.functions)
        return missing


@contextmanager
def recorded_calls() -> Iterator[Calls]:
    calls = Calls()

    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith(PACKAGE):
            calls.functions.setdefault(f"{module}.{frame.f_code.co_qualname}".removeprefix(PACKAGE))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@dataclass
class Response:
    status: int
    document: Any


async def request(
    app: Any, method: str, path: str, body: Document | None = None, headers: dict[str, str] | None = None
) -> Response:
    """One HTTP request to an ASGI application in this process."""
    route, _, query = path.partition("?")
    given = {"host": "127.0.0.1", "content-type": "application/json", "accept": "application/json", **(headers or {})}
    content = b"" if body is None else json.dumps(body).encode()
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": route, "raw_path": route.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8420),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    body_parts = iter([content])

    async def receive() -> dict[str, Any]:
        for part in body_parts:
            return {"type": "http.request", "body": part, "more_body": False}
        return await asyncio.get_running_loop().create_future()  # the client stays for its answer

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    answer = b"".join(message.get("body", b"") for message in sent)
    return Response(sent[0]["status"], json.loads(answer) if answer else None)
