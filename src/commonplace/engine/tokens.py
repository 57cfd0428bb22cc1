"""Tokens: who may use which agents of which tenant, until when. The secret is shown once and kept as a hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from commonplace.engine.checks import RANK, check_expiry, require_operator
from commonplace.engine.core import SYSTEM, Core
from commonplace.engine.ledger import audit
from commonplace.stores.base import Record, Transaction
from commonplace.wire.errors import Conflict, NotFound, Unauthenticated, ValidationError
from commonplace.wire.record import ALL_AGENTS, LOCAL_TENANT, Principal, Role

TOKEN = "token"
PREFIX = "cp"
_BYTES = 32
_NAME_CHARS = 256
_DUMMY = hashlib.sha256(b"").hexdigest()
_REFUSED = "this token is not known, has expired or was revoked"


@dataclass(slots=True, frozen=True)
class Token:
    """What is kept of a token. A revoked one stays, so that revoking the last never opens the server."""

    id: str
    name: str
    tenant: str
    role: Role
    agents: tuple[str, ...]
    created_at: int
    expires_at: int | None
    hash: str
    revoked_at: int | None = None

    def usable(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def principal(self) -> Principal:
        return Principal(self.name, self.tenant, self.role, self.agents)

    def to_wire(self, now: int) -> dict[str, Any]:
        """Everything but the hash."""
        status = "live" if self.usable(now) else "expired" if self.revoked_at is None else "revoked"
        return {
            "id": self.id,
            "name": self.name,
            "tenant": self.tenant,
            "role": self.role,
            "agents": list(self.agents),
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "status": status,
        }


def authenticate(known: Mapping[str, Token], presented: str, now: int) -> Principal:
    """The principal a token stands for; every reason to refuse sounds the same."""
    prefix, _, rest = presented.partition("_")
    id, _, secret = rest.partition("_")
    token = known.get(id)
    right = hmac.compare_digest(_hash(secret), token.hash if token else _DUMMY)
    if token is None or prefix != PREFIX or not right or not token.usable(now):
        raise Unauthenticated(_REFUSED)
    return token.principal()


class Tokens:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def all(self) -> dict[str, Token]:
        """Every token by its id, revoked ones too."""
        found = [_token(record.value) for record in await self._core.primary.records(SYSTEM, TOKEN)]
        return {token.id: token for token in found}

    async def list(self, who: Principal) -> Sequence[dict[str, Any]]:
        """What there is to know of each, newest first, for whoever may manage them."""
        require_operator(who, "manage tokens")
        found = sorted((await self.all()).values(), key=lambda token: (-token.created_at, token.id))
        now = self._core.clock()
        return [token.to_wire(now) for token in found]

    async def create(
        self,
        who: Principal,
        *,
        tenant: str = LOCAL_TENANT,
        role: str = "writer",
        agents: Sequence[str] = (ALL_AGENTS,),
        expires_at: int | None = None,
        name: str | None = None,
    ) -> tuple[Token, str]:
        """A new token, and the one time its secret is seen."""
        require_operator(who, "manage tokens")
        if role not in RANK:
            raise ValidationError(f"role must be one of {', '.join(RANK)}, not {role!r}", field="role")
        for field, text in (("tenant", tenant), ("name", name or "-"), *(("agents", a) for a in agents)):
            if not text.strip() or len(text) > _NAME_CHARS or not text.isprintable():
                raise ValidationError(f"{field} must be printable text of 1 to {_NAME_CHARS} characters", field=field)
        self._core.check_names(tenant=tenant, name=name, agents=agents)
        if name == Principal().name:
            raise ValidationError(f"{name!r} is who asks where no token is needed; choose another name", field="name")
        if not agents:
            raise ValidationError("agents must name at least one agent, or * for all", field="agents")
        now = self._core.clock()
        check_expiry(expires_at, now)
        id, secret = secrets.token_hex(6), secrets.token_urlsafe(_BYTES)
        made = Token(id, name or f"token-{id}", tenant, role, tuple(agents), now, expires_at, _hash(secret))
        await self._core.transact(SYSTEM, lambda tx: _keep(tx, who, made, "create_token"))
        return made, _spelled(id, secret)

    async def revoke(self, who: Principal, ref: str) -> Token:
        """From now on it is refused; a running server notices within `serve.auth.REFRESH_SECONDS`."""
        self._check(who, ref)

        def work(tx: Transaction) -> Token:
            gone = replace(_live(tx, ref), revoked_at=tx.now)
            _keep(tx, who, gone, "revoke_token")
            return gone

        return await self._core.transact(SYSTEM, work)

    async def rotate(self, who: Principal, ref: str) -> tuple[Token, str]:
        """The same rights under a new secret; the old one ends as a revoked token does."""
        self._check(who, ref)
        secret = secrets.token_urlsafe(_BYTES)

        def work(tx: Transaction) -> Token:
            renewed = replace(_live(tx, ref), hash=_hash(secret))
            _keep(tx, who, renewed, "rotate_token")
            return renewed

        token = await self._core.transact(SYSTEM, work)
        return token, _spelled(token.id, secret)

    async def remove(self, who: Principal, ref: str) -> Token:
        """Drop what is kept of a revoked or expired token. Without any left a loopback server is open again."""
        self._check(who, ref)

        def work(tx: Transaction) -> Token:
            token = _find(tx, ref)
            if token.usable(tx.now):
                raise Conflict(f"token {ref} still works; revoke it first")
            tx.drop_record(TOKEN, ref)
            audit.append(tx, who, "remove_token", ALL_AGENTS, [audit.part(None, {"token": ref})])
            return token

        return await self._core.transact(SYSTEM, work)

    def _check(self, who: Principal, ref: str) -> None:
        require_operator(who, "manage tokens")
        self._core.check_names(token=ref)  # the token itself is easily given for its id


def _keep(tx: Transaction, who: Principal, token: Token, operation: str) -> None:
    tx.put_record(Record(TOKEN, token.id, asdict(token)))
    rights = {"token": token.id, "tenant": token.tenant, "role": token.role, "agents": list(token.agents)}
    audit.append(tx, who, operation, ALL_AGENTS, [audit.part(None, rights)])


def _find(tx: Transaction, ref: str) -> Token:
    record = tx.record(TOKEN, ref)
    if record is None:
        raise NotFound(f"no token {ref}", hint="`commonplace token list` shows what there is")
    return _token(record.value)


def _live(tx: Transaction, ref: str) -> Token:
    token = _find(tx, ref)
    if token.revoked_at is not None:
        raise Conflict(f"token {ref} was revoked already")
    return token


def _token(value: dict[str, Any]) -> Token:
    return Token(**{**value, "agents": tuple(value["agents"])})


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _spelled(id: str, secret: str) -> str:
    return f"{PREFIX}_{id}_{secret}"
