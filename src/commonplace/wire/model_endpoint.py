"""Addresses of models that others serve: endpoints that speak OpenAI's requests, as a setting names them."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from commonplace.wire.errors import Unavailable
from commonplace.wire.http_client import LOCAL_HOSTS, NoRedirects
from commonplace.wire.shown_urls import shown_parameter_name, shown_variable

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True, frozen=True)
class EndpointSpec:
    """What `SCHEME://HOST[:PORT]/PATH?model=NAME&key=VARIABLE&…` says."""

    url: str  # as HTTP spells it; plain HTTP is the default on this machine only
    address: str
    settings: dict[str, str]

    def whole_number(self, name: str, limit: int) -> int | None:
        text = self.settings.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and 0 < int(text) < limit):
            raise ValueError(f"{name} must be a whole number above 0")
        return int(text)


def parse_endpoint(spec: str, allowed: Iterable[str]) -> EndpointSpec:
    """Raises ValueError, worded to follow the spec: only the caller knows what kind of thing it is for. Nothing in it
    quotes what may be a secret."""
    form = f"write it as {spec.partition(':')[0]}://HOST/v1?model=NAME&key=VARIABLE"
    try:
        parts = urlsplit(spec)
        host, port = parts.hostname, parts.port
    except ValueError:  # which quotes what it takes for the host or the port, and that may be a password
        raise ValueError(form) from None
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    settings = dict(pairs)
    if unknown := [name for name, _ in pairs if name not in allowed]:
        raise ValueError(f"unknown setting {shown_parameter_name(unknown[0], spec)}; there are: {', '.join(allowed)}")
    if len(settings) != len(pairs):
        raise ValueError("a setting is given twice")
    if not host or not settings.get("model") or parts.username is not None:
        raise ValueError(form)
    # It becomes a part of the name that is shown and kept, and what follows a semicolon would, too.
    if "=" in settings["model"]:
        raise ValueError("no model's name has an equals sign; & comes between settings")
    if not _VARIABLE.fullmatch(settings.get("key") or "_"):
        raise ValueError("key is the name of an environment variable, not the key itself")
    tls = settings.get("tls", "no" if host in LOCAL_HOSTS else "yes") != "no"
    address = f"{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    return EndpointSpec(f"http{'s' if tls else ''}://{address}", address, settings)


class ModelEndpoint:
    """One address that takes POSTs of JSON, with the key that an environment variable holds; none unless it is named.

    `owner` is who says so when the key is missing. Refusals and failures come as urllib raises them.
    """

    def __init__(self, url: str, owner: str, key_variable: str | None, max_bytes: int) -> None:
        self.url = url
        self._owner = owner
        self._key_variable = key_variable
        self._max_bytes = max_bytes
        handlers: list[urllib.request.BaseHandler] = [NoRedirects()]
        if urlsplit(url).hostname in LOCAL_HOSTS:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def post(self, document: Any, timeout: float) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._key_variable:
            key = os.environ.get(self._key_variable, "").strip()
            if not key:
                shown = shown_variable(self._key_variable)
                raise Unavailable(f"{self._owner}: the environment variable {shown}, which `key` names, is not set")
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.url, json.dumps(document).encode(), headers)
        with self._opener.open(request, timeout=timeout) as response:
            return json.loads(response.read(self._max_bytes))
