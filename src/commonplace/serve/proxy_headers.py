"""What a proxy says about a request that it passes on: how, by which name and under which path it was asked. Pure.

Anyone can send these headers, so they count only from addresses that the operator has named. From anyone else they are
refused, not ignored: either somebody lies, or there is a proxy that nobody told us of, behind which callers from
everywhere look like this machine's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers

from commonplace.config import is_path_prefix
from commonplace.wire.errors import Forbidden, ValidationError

_PROTO, _HOST, _PREFIX, _STANDARD = "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix", "forwarded"
#: Whoever sends one of them is a proxy, or says that it is.
_CLAIMS = (_STANDARD, _PROTO, _HOST, _PREFIX, "x-forwarded-for", "x-forwarded-port")
_NAME = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?\Z")
#: One `name=value` of RFC 7239, and what separates it from the next: ";" within what one proxy says, "," between two.
_PAIR = re.compile(r'\s*([A-Za-z0-9-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))\s*(;|,|\Z)')


@dataclass(slots=True, frozen=True)
class ForwardedAddress:
    """How the caller reached the outermost proxy that is trusted; "" is what it did not say."""

    scheme: str = ""
    host: str = ""
    prefix: str = ""


class TrustedProxies:
    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(each, strict=False) for each in networks]
        #: The first parts of our own paths, which no prefix may have: nobody could tell them apart.
        self.reserved: frozenset[str] = frozenset()

    def read(self, peer: str, headers: Headers) -> ForwardedAddress | None:
        """What the peer says as a proxy; None where it does not speak as one."""
        given = [name for name in _CLAIMS if name in headers]
        if not given:
            return None
        if not self._is_trusted(peer):
            raise Forbidden(
                f"this request carries {given[0].title()}, and {peer or 'who sends it'} is no proxy that this server "
                "trusts; name it with --trusted-proxy or trusted_proxies in commonplace.toml, or send it without"
            )
        named: Mapping[str, str] = {name: _one(headers, name) for name in (_PROTO, _HOST, _PREFIX) if name in headers}
        if _STANDARD in headers:
            if named:
                raise ValidationError(
                    f"this request carries both Forwarded and {next(iter(named)).title()}; a proxy sets one of them "
                    "and drops the other, which its caller may have made up"
                )
            named = self._outermost(",".join(headers.getlist(_STANDARD)))
        return self._checked(named.get(_PROTO, "").lower(), named.get(_HOST, ""), named.get(_PREFIX, ""))

    def check_prefix(self, prefix: str, label: str) -> str:
        """As it is put before our paths, without the slash at its end."""
        bare = prefix.rstrip("/")
        if bare and not is_path_prefix(bare):
            raise ValidationError(f"{label} must be a path such as /memory, not {prefix[:80]!r}")
        if first_part(bare) in self.reserved:
            raise ValidationError(f"{label} may not begin with /{first_part(bare)}, which is a path of this server")
        return bare

    def _is_trusted(self, peer: str) -> bool:
        address = _address(peer)
        return address is not None and any(address in network for network in self._networks)

    def _outermost(self, text: str) -> Mapping[str, str]:
        """Each proxy adds what it saw at the end: believed as far back as the one before was trusted, too."""
        said = _elements(text)
        while len(said) > 1 and self._is_trusted(_node(said[-1].get("for", ""))):
            said.pop()
        return {_PROTO: said[-1].get("proto", ""), _HOST: said[-1].get("host", "")}

    def _checked(self, scheme: str, host: str, prefix: str) -> ForwardedAddress:
        if scheme not in ("", "http", "https"):
            raise ValidationError(f"a proxy is asked by http or https, not by {scheme[:20]!r}")
        if host and not _NAME.match(host):
            raise ValidationError(f"a proxy says under which name it was asked; {host[:80]!r} is none")
        return ForwardedAddress(scheme, host, self.check_prefix(prefix, "X-Forwarded-Prefix"))


def first_part(path: str) -> str:
    """`v0` of /v0/recall; "" of a path that has none."""
    return path.lstrip("/").partition("/")[0]


def without_prefix(path: str, prefix: str) -> str:
    """The path as our routes have it, whether or not a proxy has taken the prefix away already."""
    if not prefix or not (path == prefix or path.startswith(f"{prefix}/")):
        return path
    return path[len(prefix) :] or "/"


def _one(headers: Headers, name: str) -> str:
    """A list of them would be what each proxy added to what its caller had sent: nobody knows whose word is whose."""
    values = [part.strip() for line in headers.getlist(name) for part in line.split(",")]
    if len(values) > 1:
        raise ValidationError(f"{name.title()} has {len(values)} values; let the proxy set it instead of adding to it")
    return values[0]


def _elements(text: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{}]
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or pair.end() == at:
            raise ValidationError("Forwarded could not be read; it is written as RFC 7239 says: for=…;host=…;proto=…")
        name, quoted, plain, separator = pair.groups()
        found[-1][name.lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain
        if separator == ",":
            found.append({})
        at = pair.end()
    return found


def _node(name: str) -> str:
    """`[2001:db8::1]:4711` and `192.0.2.1:80` without their ports."""
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0] if name.count(":") == 1 else name


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    # A socket for both kinds of addresses shows the one kind as the other.
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found
