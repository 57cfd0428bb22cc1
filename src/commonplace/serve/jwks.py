"""The public keys of an issuer, fetched when they are needed and kept for a while."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from commonplace.wire.errors import Fault, Unavailable, ValidationError
from commonplace.wire.http_client import NoRedirects
from commonplace.wire.shown_urls import shown_url

#: A key that was taken back is no longer believed after this long at the latest, as long as the issuer can be reached.
LIFE_SECONDS = 300.0
#: Where it cannot be reached what is known is believed for so long; after that none of its tokens opens this server.
STALE_SECONDS = 3600.0
#: A key that is not known is asked for at once, for it may be new, but no more often than this: made-up names must cost
#: the issuer nothing.
MAX_TRIES, TRIES_SECONDS = 3, 30.0
_TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 262_144
_LOCAL = ("localhost", "127.0.0.1", "::1")

Document = dict[str, Any]
#: An address → the JSON object there; raises OSError or ValueError.
Fetch = Callable[[str], Document]


def fetch_json(url: str) -> Document:
    # No redirect is followed: it would make the keys those of a host nobody named.
    handlers: list[urllib.request.BaseHandler] = [NoRedirects()]
    if urlsplit(url).hostname in _LOCAL:  # where plain HTTP is taken: a proxy would be somebody on the way
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS) as got:
            body = got.read(_MAX_BYTES + 1)
    except HTTPException as error:  # which is no OSError: what answered is no web server, or broke off
        raise ValueError(f"what answers there is no HTTP ({type(error).__name__})") from error
    if len(body) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES:,} bytes")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    return document


def check_https(url: str, field: str) -> str:
    """Keys that anyone on the way could replace prove nothing: plain HTTP is for this machine only."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it cannot be one, such as a password whose host was forgotten
        local = parts.scheme == "http" and parts.hostname in _LOCAL
    except ValueError:
        parts, local = urlsplit(""), False
    # Sentences for callers, and what clients are told to ask, have the issuer: with a password in it they would, too.
    if not parts.hostname or not (parts.scheme == "https" or local) or parts.username is not None:
        raise ValidationError(
            f"{field} must be an address such as https://login.example.org, not {shown_url(url, ())[:80]!r}",
            field=field,
        )
    return url


class KeySet:
    """Keys by their id, as the issuer writes them (RFC 7517)."""

    def __init__(
        self, issuer: str, jwks_url: str = "", *, fetch: Fetch = fetch_json, now: Callable[[], float] = time.monotonic
    ) -> None:
        # An issuer has neither (OpenID Connect Discovery, 3), and what callers are told has it whole.
        if "?" in issuer or "#" in issuer:
            raise ValidationError("oidc.issuer must be an address without ? and #", field="oidc.issuer")
        self._issuer = check_https(issuer, "oidc.issuer")
        self._url = check_https(jwks_url, "oidc.jwks_url") if jwks_url else ""
        self._fetch, self._now = fetch, now
        self._keys: Mapping[str, Document] = {}
        self._loaded_at = float("-inf")
        self._tries: list[float] = []  # when it was asked lately
        self._problem = ""
        self._loading = asyncio.Lock()

    async def find(self, id: str | None) -> Document | None:
        """None where the issuer has no such key. A token that names none means the only one there is."""
        if self._is_due(id):
            async with self._loading:
                if self._is_due(id):  # others may have waited for the same
                    await self._load()
        if self._now() - self._loaded_at > STALE_SECONDS:
            raise Unavailable(f"the keys of {self._issuer} could not be fetched: {self._problem}")
        return self._known(id)

    def _known(self, id: str | None) -> Document | None:
        if id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(id) if id is not None else None

    def _is_due(self, id: str | None) -> bool:
        now = self._now()
        self._tries = [tried for tried in self._tries if now - tried <= TRIES_SECONDS]
        if len(self._tries) >= MAX_TRIES:
            return False
        return now - self._loaded_at > LIFE_SECONDS or self._known(id) is None

    async def _load(self) -> None:
        started = self._now()
        self._tries.append(started)
        try:
            found = (await asyncio.to_thread(self._download)).get("keys")
            if not isinstance(found, list):
                raise ValueError("there is no list of keys")
        except HTTPError as error:
            error.close()
            self._problem = f"it answered {error.code}"
        except (OSError, ValueError, RecursionError, Fault) as error:
            self._problem = str(getattr(error, "reason", None) or error)[:200] or type(error).__name__
        else:
            signing = [key for key in found if isinstance(key, dict) and key.get("use", "sig") == "sig"]
            self._keys = {str(key.get("kid", "")): key for key in signing}
            self._loaded_at = started

    def _download(self) -> Document:
        url = self._url or check_https(str(self._discover().get("jwks_uri")), "jwks_uri")
        return self._fetch(url)

    def _discover(self) -> Document:
        """What the issuer says about itself: as OpenID Connect has it, else as OAuth (RFC 8414) does."""
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        origin = f"{parts.scheme}://{parts.netloc}"
        try:
            found = self._fetch(f"{origin}{path}/.well-known/openid-configuration")
        except HTTPError as error:
            error.close()
            found = self._fetch(f"{origin}/.well-known/oauth-authorization-server{path}")
        if found.get("issuer") != self._issuer:
            raise ValueError(f"it calls itself {shown_url(str(found.get('issuer')), ())[:80]!r}")
        return found
