"""Who is calling: a bearer token, ours or one of an issuer that is trusted, or anyone while the server is open."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping

from commonplace.config import Config
from commonplace.engine import Engine, Token, TokenBucket, authenticate, rate_limited
from commonplace.serve.oidc import open_verifier
from commonplace.wire.errors import Unauthenticated
from commonplace.wire.record import Principal

#: How old the server's view of the tokens may be: a revoked token is refused after this long at the latest.
REFRESH_SECONDS = 0.25
#: For tokens we do not know the store is asked at most this often, so that guessing costs it nothing.
_AGAIN_SECONDS = 0.05

NOBODY = Principal("nobody", "", "reader", ())
#: A process on the same data directory that uses the server's embedder: it may read no agent's memory here.
EMBEDDER_CLIENT = Principal("embedder-client", "", "reader", ())
#: What it may ask all the same, as whoever looks after the data directory: it has read a file that only they can.
_OWNERS_OPERATIONS = frozenset({"stores"})
_MISSING = "send `Authorization: Bearer TOKEN`; whoever runs this server makes one: `commonplace token create`"


def as_owner(who: Principal, operation: str) -> Principal:
    return Principal() if who is EMBEDDER_CLIENT and operation in _OWNERS_OPERATIONS else who


class Authenticator:
    """Open only on loopback, while no token has ever been made and none is required; behind a proxy never, for whoever
    reaches that would be let in as somebody on this machine."""

    def __init__(self, engine: Engine, config: Config, *, loopback: bool, shared_token: str = "") -> None:
        """`shared_token` is that of processes that use the server's embedder."""
        self._engine = engine
        self._shared = f"Bearer {shared_token}".encode() if shared_token else b""
        self.verifier = open_verifier(config, engine.clock, engine.redactor.is_name)
        self._may_be_open = loopback and not (config.token_required or config.trusted_proxies or self.verifier)
        self._missing = f"{_MISSING}, or {self.verifier.issuer} does" if self.verifier is not None else _MISSING
        self._rate_limit = config.rate_limit
        self._budget = TokenBucket(self._rate_limit, 2 * self._rate_limit) if self._rate_limit else None
        self._known: Mapping[str, Token] = {}
        self._loaded_at = float("-inf")
        self._loading = asyncio.Lock()

    async def admit(self, authorization: str | None, anonymous: Principal | None = None) -> tuple[Principal, bool]:
        """Who it is, and whether they were let in without being asked; who sends no token at all is `anonymous`."""
        if self._shared and hmac.compare_digest((authorization or "").encode(), self._shared):
            return EMBEDDER_CLIENT, False
        asked = time.monotonic()
        known = await self._tokens(asked - REFRESH_SECONDS)
        if self._may_be_open and not known:
            return Principal(), True
        if authorization is None:
            if anonymous is not None:
                return anonymous, False
            raise Unauthenticated(self._missing)
        scheme, _, presented = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(self._missing)
        if self.verifier is not None and self.verifier.may_verify(presented):
            return await self.verifier.principal(presented.strip()), False
        now = self._engine.clock()
        try:
            return authenticate(known, presented.strip(), now), False
        except Unauthenticated:
            again = await self._tokens_now(asked)  # it may have been made a moment ago
            return authenticate(again, presented.strip(), now), False

    def spend(self, who: Principal) -> None:
        if self._budget is not None and (wait := self._budget.spend((who.tenant, who.name))):
            raise rate_limited(wait, f"{who.name} has made its {self._rate_limit} requests a second")

    async def usable(self) -> bool:
        """Whether anyone could get in with a token."""
        if self.verifier is not None:
            return True
        now = self._engine.clock()
        return any(token.usable(now) for token in (await self._tokens(time.monotonic())).values())

    @property
    def is_open(self) -> bool:
        """As of when the tokens were last looked at."""
        return self._may_be_open and not self._known

    async def _tokens_now(self, asked: float) -> Mapping[str, Token]:
        """Those there were when it was asked. Whoever comes too soon after the last look waits for the next one, which
        is one for all who wait: what was made a moment ago must not be refused for having been made since that look."""
        if self._loaded_at < asked:
            await asyncio.sleep(self._loaded_at + _AGAIN_SECONDS - asked)
        return await self._tokens(asked)

    async def _tokens(self, since: float) -> Mapping[str, Token]:
        """Those there were at that time, or later."""
        if self._loaded_at < since:
            async with self._loading:
                if self._loaded_at < since:
                    started = time.monotonic()
                    self._known = await self._engine.tokens.all()
                    self._loaded_at = started
                    # A server shared by several people owes each recall an audit entry before its answer.
                    self._engine.log_recalls_at_once(not self.is_open)
        return self._known
