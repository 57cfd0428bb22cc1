"""Who is at the browser: a cookie that names a session, and the token that was shown to open it.

A session that nobody has logged in to is nothing but its cookie; its CSRF token follows from that, so strangers cost no
memory. Tokens are kept in this process alone: after a restart people log in again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace

from commonplace.wire.record import Clock, Principal

_ID = re.compile(r"[A-Za-z0-9_-]{43}\Z")
MAX_SESSIONS = 1000
MAX_OF_PERSON = 20  # so that nobody pushes others out, however many tokens an issuer gives them
IDLE_MS = 12 * 3_600_000
LIFE_MS = 7 * 24 * 3_600_000


@dataclass(slots=True, frozen=True)
class Login:
    """What is kept of a session that someone has logged in to."""

    token: str
    person: tuple[str, str]  # tenant and name
    begun: int
    seen: int


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._logins: OrderedDict[str, Login] = OrderedDict()

    def known(self, id: str | None) -> str | None:
        """The id, where it is the shape of ours."""
        return id if id is not None and _ID.match(id) else None

    def fresh(self) -> str:
        return secrets.token_urlsafe(32)

    def csrf(self, id: str) -> str:
        """What every form of this session carries, and no other site can know."""
        return hmac.new(self._key, id.encode(), hashlib.sha256).hexdigest()

    def is_csrf(self, id: str, given: str) -> bool:
        return hmac.compare_digest(self.csrf(id).encode(), given.encode("utf-8", "surrogatepass"))

    def log_in(self, token: str, who: Principal) -> str:
        """Under an id that nobody has seen before: one that was there may have been planted."""
        id, now, person = self.fresh(), self._clock(), (who.tenant, who.name)
        own = [key for key, login in self._logins.items() if login.person == person]  # the least lately used first
        for key in own[: max(0, len(own) + 1 - MAX_OF_PERSON)]:
            del self._logins[key]
        self._logins[_key(id)] = Login(token, person, now, now)
        while len(self._logins) > MAX_SESSIONS:
            self._logins.popitem(last=False)  # the one that was used least lately
        return id

    def token(self, id: str) -> str | None:
        """The token of whoever logged in, unless that was too long ago."""
        key, now = _key(id), self._clock()
        login = self._logins.get(key)
        if login is None:
            return None
        if now - login.seen > IDLE_MS or now - login.begun > LIFE_MS:
            del self._logins[key]
            return None
        self._logins[key] = replace(login, seen=now)
        self._logins.move_to_end(key)
        return login.token

    def log_out(self, id: str) -> None:
        self._logins.pop(_key(id), None)


def _key(id: str) -> str:
    """Looked up by a hash, so that how long a look-up takes says nothing about any id."""
    return hashlib.sha256(id.encode()).hexdigest()
