"""`memorywire+http(s)://`: another Commonplace, or any server of our HTTP binding, as a replica.

`memorywire+https://HOST[:PORT][/PATH]?token_env=NAME`; the variable NAME holds the token. It is asked as anyone's
`MemoryStore` is, but what it holds is listed and not recalled.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode

from commonplace.stores.base import StoreSettings
from commonplace.stores.foreign import ForeignStore
from commonplace.stores.urls import split_options, token_advice, token_of
from commonplace.wire.errors import Unauthenticated, Unavailable, ValidationError
from commonplace.wire.http_client import AnswerTooLarge, JsonClient
from commonplace.wire.models import (
    ExpireRequest,
    ExpireResponse,
    ForgetRequest,
    ForgetResponse,
    MergeRequest,
    MergeResponse,
    Message,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
)
from commonplace.wire.record import CAPABILITIES, Clock, system_clock
from commonplace.wire.validate import parse

M = TypeVar("M", bound=Message)
#: JSON is parsed in one go that no other thread can interrupt: a large answer, to whatever, would stop everyone.
_MAX_ANSWER = 1 << 20
_MAX_HEALTH = 64 << 10
_MAX_STATUS = 4 << 20  # it names every agent
#: Of a recall: so much, and so much more for each hit that it was asked for. It is far less than as many of the longest
#: content (260 kB; most memories have one).
_MAX_RECALL, _MAX_RECALL_HIT = 4 << 20, 16 << 10
_MAX_PAGE = 4 << 20  # one memory of the longest content, however it is spelled: a larger page is asked for with fewer
_PAGE = 200  # memories, at most and at first


class HttpMemoryStore:
    """The five operations by HTTP."""

    def __init__(self, url: str, token: str | None, timeout: float, token_advice: str) -> None:
        self._has_token = token is not None
        self._client = JsonClient(
            url, token, timeout, connections=4, max_bytes=_MAX_ANSWER, is_quoted=False, token_advice=token_advice
        )
        self.capabilities = CAPABILITIES
        self._page = _PAGE  # as many as lately fitted

    async def remember(self, request: RememberRequest, /) -> RememberResponse:
        return await self._post(RememberResponse, "remember", request)

    async def recall(self, request: RecallRequest, /) -> RecallResponse:
        def check(document: Any) -> None:
            _check_count(document, "results", "recall", request.k)

        limit = _MAX_RECALL + request.k * _MAX_RECALL_HIT
        return await self._post(RecallResponse, "recall", request, max_bytes=limit, check=check)

    async def forget(self, request: ForgetRequest, /) -> ForgetResponse:
        return await self._post(ForgetResponse, "forget", request)

    async def merge(self, request: MergeRequest, /) -> MergeResponse:
        return await self._post(MergeResponse, "merge", request)

    async def expire(self, request: ExpireRequest, /) -> ExpireResponse:
        return await self._post(ExpireResponse, "expire", request)

    async def health(self) -> dict[str, Any]:
        try:
            found = await self._client.call("GET", "/v0/health", max_bytes=_MAX_HEALTH)
        except Unauthenticated as fault:
            said = "it refuses the token" if self._has_token else "it wants a token"
            raise Unavailable(f"{said}; {fault.hint}") from None
        if found.get("status") not in ("ok", "degraded", "down"):
            raise Unavailable("it answers, but not as a memorywire server does")
        return found

    async def status(self) -> dict[str, Any]:
        return await self._client.call("GET", "/v0/status", max_bytes=_MAX_STATUS)

    async def list_page(
        self, *, agent_id: str, filter: dict[str, Any], limit: int, cursor: str | None
    ) -> dict[str, Any]:
        """Of no more than `limit`, and fewer where so many would be too much to be read at once."""
        while True:
            count = min(limit, self._page)
            try:
                page = await self._page_of(agent_id, filter, count, cursor)
            except AnswerTooLarge:
                if count == 1:
                    raise
                self._page = count // 2
            else:
                self._page = min(max(self._page, 2 * count), _PAGE)
                return page

    async def _page_of(self, agent_id: str, filter: dict[str, Any], count: int, cursor: str | None) -> dict[str, Any]:
        query = {"agent_id": agent_id, "limit": count, "filter": json.dumps(filter)}
        path = "/v0/memories?" + urlencode(query | ({"cursor": cursor} if cursor else {}))

        def read(document: Any) -> Any:
            _check_count(document, "memories", "a listing", count)
            return document

        return await self._client.call("GET", path, max_bytes=_MAX_PAGE, read=read)

    def close(self) -> None:
        self._client.close()

    async def _post(
        self,
        answer: type[M],
        operation: str,
        request: Message,
        *,
        max_bytes: int | None = None,
        check: Callable[[Any], None] | None = None,
    ) -> M:
        def read(document: Any) -> M:
            if check is not None:
                check(document)
            try:
                return parse(answer, document)
            except ValidationError:  # which quotes what it was given, and that may be a memory
                raise Unavailable(
                    f"it answers {operation}, but not as memorywire has it; upgrade the older of the two"
                ) from None

        asked = request.model_dump(exclude_unset=True)
        found: M = await self._client.exchange("POST", f"/v0/{operation}", asked, max_bytes=max_bytes, read=read)
        return found


def _check_count(document: Any, name: str, operation: str, most: int) -> None:
    """Before each of them is looked at: there may be hundreds of thousands."""
    if isinstance(document, dict) and isinstance(given := document.get(name), list) and len(given) > most:
        raise Unavailable(f"it answers {operation} with {len(given):,} {name}, and was asked for at most {most:,}")


class WireStore(ForeignStore):
    def __init__(self, url: str, token: str | None, timeout: float, token_advice: str) -> None:
        self._server = HttpMemoryStore(url, token, timeout, token_advice)
        super().__init__(self._server, "memorywire", self._server.list_page)

    async def close(self) -> None:
        self._server.close()


def open_url(url: str, clock: Clock = system_clock, settings: StoreSettings | None = None) -> WireStore:
    address, given = split_options(url)
    advice = token_advice(given, "a token of a writer for every agent there")
    timeout = (settings or StoreSettings()).timeout
    return WireStore(address.removeprefix("memorywire+"), token_of(given), timeout, advice)
