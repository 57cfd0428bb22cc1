"""What a page is asked and what it answers; it knows neither HTTP nor who let the caller in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from commonplace.engine import Engine, require_role
from commonplace.wire.errors import Forbidden, ValidationError
from commonplace.wire.record import Principal, Role

LatencyPoint = tuple[int, int, float, float]  # minute (ms), requests, median ms, 95th percentile ms


@dataclass(slots=True)
class PageRequest:
    engine: Engine
    who: Principal
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    base: str = "/ui"  # what every address of the page begins with
    fragment: bool = False  # asked for by htmx, which puts a part of a page into one that is there
    latencies: Callable[[], Mapping[str, Sequence[LatencyPoint]]] = dict
    kept: dict[str, Any] = field(default_factory=dict)  # what pages remember from one request to the next

    def may(self, role: Role) -> bool:
        """Whether to offer what needs this role; the engine decides who may."""
        try:
            require_role(self.who, role)
        except Forbidden:
            return False
        return True

    def value(self, name: str, default: str = "") -> str:
        """What a form says under this name, without white space around it."""
        return next(iter(self.form.get(name, ())), default).strip()

    def text(self, name: str) -> str:
        """A longer text of a form as it was typed, but for line ends, which browsers send as CRLF."""
        return next(iter(self.form.get(name, ())), "").replace("\r\n", "\n")

    def whole(self, name: str, text: str) -> int | None:
        """A whole number that a form or an address gives; None where it is empty."""
        if not text:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) <= 15):
            raise ValidationError(f"{name} must be a whole number", field=name)
        return int(text)

    def link(self, path: str, **query: str | int | None) -> str:
        """An address of the page; what is empty or None is left out of it."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{self.base}/{path}" + (f"?{urlencode(given)}" if given else "")


class TemplatePage(NamedTuple):
    template: str
    values: Mapping[str, Any]
    status: int = 200


class Redirect(NamedTuple):
    """To another page, by GET, once what was asked for is done."""

    to: str


class Download(NamedTuple):
    """A file, sent as it is made; or, without a name, something that another page shows, such as a picture."""

    name: str
    content_type: str
    chunks: AsyncIterator[bytes]


Answer = TemplatePage | Redirect | Download
Handler = Callable[[PageRequest], Awaitable[Answer]]


class PageRoute(NamedTuple):
    method: str
    path: str  # below the base: "inbox/{review}"
    handler: Handler
    operation: str  # for logs and metrics
