"""How a request of the `amp` command is answered: by the store on this machine, or by a server's /amp routes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from commonplace.cli.amp import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Data, Json, Session, with_options
from commonplace.cli.support.output import Document, remarks
from commonplace.wire.http_client import JsonClient

_TIMEOUT_S = 60
_MAX_BYTES = 64 * 2**20


class AmpClient(Session):
    """A session on the local store, or what asks a server instead."""

    def __init__(self, url: str | None, token: str | None, as_json: bool, data: Path | None) -> None:
        super().__init__(data, None, as_json=as_json)
        self._url, self._token = url, token

    def ask(self, operation: str, **request: Any) -> Document:
        """The operation's response; a fault is raised."""
        request = {name: value for name, value in request.items() if value not in (None, [])}
        if self._url is not None:
            return self._ask_server(operation, request, self._url)
        from commonplace.dialects.amp import Amp

        answer: Document = self(getattr(Amp(self.engine, OPERATOR), operation)(request))
        known = (answer.get("note"), *self.config_notes)
        remarks(text for text in self.warnings if text not in known)
        return answer

    def _ask_server(self, operation: str, request: Document, url: str) -> Document:
        server = JsonClient(url.rstrip("/").removesuffix("/amp"), self._token, _TIMEOUT_S, 1, _MAX_BYTES)
        try:
            return self(server.call(*route(operation, request)))
        finally:
            server.close()


def _with_client(body: Callable[..., Answer]) -> Callable[..., None]:
    url, token, data = (options.Url, None), (options.Token, None), (Data, None)
    return with_options(body, AmpClient, url=url, token=token, as_json=(Json, False), data=data)


#: A verb's body takes a client; --url, --token, --json and --data follow the options of its own.
AmpCommands = partial(Commands, wrap=_with_client)


def route(operation: str, request: Document) -> tuple[str, str, Document | None]:
    """Method, path with its query string, and body of a request."""
    rest = dict(request)
    match operation:
        case "store" | "search":
            return "POST", f"/amp/{operation}", request
        case "get" | "delete":
            path = f"/amp/records/{quote(rest.pop('id'), safe='')}"
        case "list":
            path = "/amp/records"
        case "agent_status":
            path = f"/amp/agents/{quote(rest.pop('agent'), safe='')}/status"
        case _:
            path = f"/amp/{operation}"
    if "tags" in rest:
        rest["tags"] = ",".join(rest["tags"])
    return "DELETE" if operation == "delete" else "GET", path + (f"?{urlencode(rest)}" if rest else ""), None
