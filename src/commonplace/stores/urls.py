"""What a store's URL says of how it is used beside others: its name, timeout, weight and types. The rest is the
store's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MEMORY_TYPES

_OPTIONS = ("name", "timeout", "weight", "types")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_SECRET = re.compile(r"(?i)(key|token|password|secret)=[^&]*")


@dataclass(slots=True, frozen=True)
class StoreUrl:
    url: str  # without the options that are not the store's own
    name: str | None = None
    timeout: float | None = None  # seconds
    weight: float = 1.0
    types: frozenset[str] | None = None

    @property
    def shown(self) -> str:
        return shown_url(self.url)


def shown_url(url: str) -> str:
    """Without what is nobody's business: who logs in with what, and what is secret among its options."""
    address, mark, query = url.partition("?")
    scheme, slashes, place = address.partition("://")
    _, at, host = place.rpartition("@")
    return f"{scheme}{slashes}{'…@' if at else ''}{host}" + mark + _SECRET.sub(r"\1=…", query)


def parse_store_url(url: str) -> StoreUrl:
    address, mark, query = url.partition("?")
    given: dict[str, str] = {}
    rest: list[str] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _OPTIONS:
            given[name] = value
        else:
            rest.append(f"{quote(name, safe='')}={quote(value, safe=':/@,')}")
    plain = f"{address}?{'&'.join(rest)}" if rest else address
    if not mark:
        return StoreUrl(plain)
    if "name" in given and not _NAME.match(given["name"]):
        raise _wrong("name", given["name"], "letters, digits, dots and dashes")
    types = None
    if "types" in given:
        types = frozenset(filter(None, given["types"].split(",")))
        if not types or not types <= set(MEMORY_TYPES):
            raise _wrong("types", given["types"], f"some of {','.join(MEMORY_TYPES)}")
    timeout = _number(given, "timeout", 600.0)
    weight = _number(given, "weight", 1000.0)
    return StoreUrl(plain, given.get("name"), timeout, 1.0 if weight is None else weight, types)


def _number(given: dict[str, str], name: str, most: float) -> float | None:
    if name not in given:
        return None
    try:
        number = float(given[name])
    except ValueError:
        number = 0.0
    if not 0 < number <= most:
        raise _wrong(name, given[name], f"a number above 0, up to {most:g}")
    return number


def _wrong(name: str, value: str, wanted: str) -> ValidationError:
    return ValidationError(f"{name}={value!r} in a store's URL must be {wanted}", field="stores")
