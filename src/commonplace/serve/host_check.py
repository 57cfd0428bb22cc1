"""Which names the server answers to, and which web pages may call it: the defence against DNS rebinding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from commonplace.wire.errors import Forbidden, ValidationError

_PORTS = {"http": 80, "https": 443}
_HARMLESS = frozenset({"GET", "HEAD"})


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class HostCheck:
    """A page on another site can make a browser call a local server; its Host or Origin gives it away."""

    def __init__(self, loopback: bool, allowed: Iterable[str] = ()) -> None:
        self._loopback = loopback
        self._allowed = frozenset(name.lower() for name in allowed)

    def check(self, method: str, headers: Mapping[str, str], forwarded: str = "") -> None:
        """`forwarded` is the name under which a trusted proxy was asked."""
        if isinstance(headers, Headers):
            for name in ("host", "origin"):
                if len(headers.getlist(name)) > 1:  # a proxy may have gone by the other one
                    raise ValidationError(f"a request has one {name.title()} header; send it once")
        host = headers.get("host")
        # Without a Host there is no browser. Beyond loopback tokens are required, which no foreign page has.
        # The proxy's own word is no reason to let the Host pass: a page that has made this machine answer to its name
        # can send both.
        for name in filter(None, (host, forwarded)):
            if self._loopback and not (is_loopback(_name(name)) or _name(name) in self._allowed):
                raise Forbidden(
                    f"this server does not answer to the name {_name(name)[:80]!r}; allow it with --allow-host or "
                    "allowed_hosts in commonplace.toml"
                )
        origin = headers.get("origin")
        if origin is not None:
            if not self._same(origin, forwarded or host or ""):
                raise Forbidden(f"pages of {origin[:80]!r} may not call this server")
        elif method not in _HARMLESS and headers.get("sec-fetch-site") == "cross-site":
            raise Forbidden("pages of other sites may not call this server")

    def _same(self, origin: str, host: str) -> bool:
        try:
            page = urlsplit(origin)
            here = urlsplit(f"{page.scheme}://{host}")
            if page.hostname is None:
                return False
            if page.hostname in self._allowed:
                return True
            default = _PORTS.get(page.scheme)
            return (page.hostname, page.port or default) == (here.hostname, here.port or default)
        except ValueError:
            return False


def _name(host: str) -> str:
    """`Example.org:8420` is example.org, `[::1]:8420` is ::1."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, separator, port = host.rpartition(":")
    return (name if separator and port.isdigit() else host).lower()
