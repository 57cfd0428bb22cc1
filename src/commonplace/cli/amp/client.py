"""How a request of the `amp` command is answered: by the store on this machine, or by a server's /amp routes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from commonplace.cli.amp import options
from commonplace.cli.support.command import OPERATOR, Answer, Commands, Data, Json, Session, with_options
from commonplace.cli.support.output import Document, remarks
from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.http_client import DEFAULT_URL, unreachable_url

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
            return _ask_server(operation, request, self._url, self._token)
        from commonplace.dialects.amp import Amp

        answer: Document = self(getattr(Amp(self.engine, OPERATOR), operation)(request))
        remarks(text for text in self.warnings if text != answer.get("note"))
        return answer


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


def _ask_server(operation: str, request: Document, url: str, token: str | None) -> Document:
    method, path, body = route(operation, request)
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    sent = Request(_base(url) + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
    try:
        with build_opener(_NoRedirects).open(sent, timeout=_TIMEOUT_S) as reply:
            return _document(reply.read(_MAX_BYTES), url)
    except HTTPError as refused:
        with refused:
            raise _fault(refused.code, refused.read(_MAX_BYTES), url) from None
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
        raise Unavailable(unreachable_url(reason, url)) from None


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to wherever it leads."""

    def redirect_request(self, *args: Any) -> None:
        return None


def _base(url: str) -> str:
    wrong = ValidationError(f"--url takes a server's address such as {DEFAULT_URL}, not {url!r}", field="url")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # a port or an address that cannot be one
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    return url.rstrip("/").removesuffix("/amp")


def _document(data: bytes, url: str) -> Document:
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Unavailable(f"{url} answered with something other than AMP")
    return document


def _fault(status: int, data: bytes, url: str) -> Fault:
    """The fault behind an error answer, so that it is reported like a local one."""
    error = None
    with suppress(Unavailable):
        error = _document(data, url).get("error")
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return Unavailable(f"{url} answered with status {status}, and not in AMP's way")
    fault = Fault(error["message"])
    fault.code = str(error.get("code", "unavailable"))
    return fault
