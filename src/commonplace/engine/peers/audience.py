"""Whom a message is meant for: whether that is this server. Pure.

A server that is asked could send the same signed bytes on to another one and read what that one shows their author. So
what counts is what leads to us alone: our key, an address of ours, or the name our operator has set, which is worth as
much as the care of whoever wrote it there and which our own client never sends. What a caller says in a header (Host,
X-Forwarded-Host) is a relay's to choose and is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from commonplace.config import MrpConfig
from commonplace.wire.errors import Fault
from commonplace.wire.origins import make_origin, origin_of

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(slots=True, frozen=True)
class Address:
    """Where a message came in: the socket's own end, and the names its operator has said lead there."""

    host: str
    port: int
    names: tuple[str, ...] = field(default=())

    def origins(self) -> set[str]:
        """Another machine's loopback is not ours, but nothing that comes in there shows the difference: who is behind
        a proxy sets `origins`, and these no longer count."""
        hosts = _LOOPBACK if self.host in _LOOPBACK or self.host.startswith("127.") else ()
        own = {make_origin("http", host, self.port) for host in (self.host, *hosts)}
        return own | {make_origin(s, name, port) for name in self.names for s, port in _ways(self.port)}


def _ways(port: int) -> Iterable[tuple[str, int | None]]:
    """A name is asked at the port that is listened on, or through a proxy at the scheme's own."""
    return [(scheme, each) for scheme in ("http", "https") for each in (port, None)]


def is_own(audience: str, settings: MrpConfig, key: str, address: Address | None = None) -> bool:
    """Whether a message for `audience` is for the server with this key, asked at this address."""
    if audience == key:
        return True
    if audience == settings.name:
        return settings.name != MrpConfig().name  # which is what every server is called that was given no name
    try:
        given = origin_of(audience)
    except Fault:
        return False
    if settings.origins:
        return given in {origin_of(each) for each in settings.origins}
    return address is not None and given in address.origins()
