"""Tokens of an issuer that the operator trusts (OAuth 2.0, OpenID Connect): whether one is good, and who it stands for.

Every refusal is a sentence of its own: whoever holds such a token can read it, so there is nothing to hide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from commonplace.__about__ import install_command
from commonplace.config import Config, OidcConfig
from commonplace.wire.errors import Forbidden, Unauthenticated, ValidationError
from commonplace.wire.record import ALL_AGENTS, LOCAL_TENANT, Clock, Principal, Role
from commonplace.wire.times import iso

if TYPE_CHECKING:
    from commonplace.serve.jwks import KeySet

METADATA_PATH = "/.well-known/oauth-protected-resource"
#: What each role is called among scopes, the least first.
SCOPES: dict[Role, str] = {
    "reader": "memory:read",
    "writer": "memory:write",
    "reviewer": "memory:review",
    "admin": "memory:admin",
}
#: Names of the issuer's people are told apart from those of our own tokens: four eyes are two people's.
NAME_PREFIX = "oidc:"
_MAX_CHARS = 256
_MAX_TOKEN_CHARS = 16_384
_REQUIRED = ("exp", "iss", "aud")
Claims = Mapping[str, Any]


class TokenVerifier:
    def __init__(self, settings: OidcConfig, keys: KeySet, clock: Clock, is_name: Callable[[str], bool]) -> None:
        """`is_name` says whether a text may be shown as a name, in logs and in the ledger."""
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._is_name = is_name

    @property
    def issuer(self) -> str:
        return self._settings.issuer

    def metadata(self) -> dict[str, Any]:
        """What clients need to know to get a token for this server (RFC 9728)."""
        return {
            "resource": self._settings.audience,
            "authorization_servers": [self._settings.issuer],
            "scopes_supported": list(SCOPES.values()),
            "bearer_methods_supported": ["header"],
            "resource_name": "Commonplace",
        }

    @staticmethod
    def may_verify(token: str) -> bool:
        """Whether it has the parts of a JWT, which none of our own tokens has."""
        return token.count(".") == 2

    async def principal(self, token: str) -> Principal:
        return principal_of(await self._claims(token), self._settings, self._is_name)

    async def _claims(self, token: str) -> Claims:
        import jwt

        settings = self._settings
        malformed = Unauthenticated(f"this is no token of {settings.issuer}, nor one of this server's own")
        if len(token) > _MAX_TOKEN_CHARS:
            raise malformed
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise malformed from None
        algorithm, id = header.get("alg"), header.get("kid")
        # Before any key is looked at: with a key's kind and the token's word alone "none" and HS256 would do.
        if algorithm not in settings.algorithms:
            taken = ", ".join(settings.algorithms)
            raise Unauthenticated(f"this token is signed by {_shown(algorithm)}; this server takes {taken}")
        key = await self._keys.find(id if isinstance(id, str) else None)
        if key is None:
            raise Unauthenticated(
                f"this token is signed with the key {_shown(id)}, which {settings.issuer} does not have"
            )
        # What the key says it is for comes before what the token says it was signed by.
        bound = key.get("alg") or algorithm
        ours = ("exp", "nbf", "iat", "sub", "jti")  # which `check_times` and `check_texts` see to
        options: Any = {"require": list(_REQUIRED), **{f"verify_{claim}": False for claim in ours}}
        again = f"get a new one from {settings.issuer}"
        forged = Unauthenticated(f"the signature of this token is not that of its key; {again}")
        try:
            claims: Claims = jwt.decode(
                token,
                jwt.PyJWK.from_dict(key, bound),
                algorithms=[algorithm],
                audience=[settings.audience, f"{settings.audience}/"],  # which some clients add to an empty path
                issuer=settings.issuer,
                options=options,
            )
        except jwt.InvalidAudienceError:
            meant = _shown(_unverified(token).get("aud"))
            raise Unauthenticated(f"this token is for {meant}, and this server is {settings.audience!r}") from None
        except jwt.InvalidIssuerError:
            by = _shown(_unverified(token).get("iss"))
            raise Unauthenticated(f"this token is by {by}; this server takes those of {settings.issuer!r}") from None
        except jwt.MissingRequiredClaimError as missing:
            wanted = f"ask {settings.issuer} for one that has it"
            raise Unauthenticated(f"this token has no claim {missing.claim!r}; {wanted}") from None
        except jwt.InvalidSignatureError:
            raise forged from None
        except (jwt.DecodeError, RecursionError):  # of the claims, which are read once the signature is good
            raise Unauthenticated(f"what is signed in this token is no object with claims; {again}") from None
        except (jwt.PyJWTError, ValueError, TypeError):  # its key cannot have made such a signature
            raise forged from None
        check_texts(claims)
        check_times(claims, self._clock(), settings)
        return claims


def open_verifier(config: Config, clock: Clock, is_name: Callable[[str], bool]) -> TokenVerifier | None:
    """As configured; None where no tokens of others are taken."""
    settings = config.oidc
    if not settings.issuer:
        if settings.audience or settings.jwks_url:
            raise ValidationError("[oidc] needs an issuer, whose tokens are taken", field="oidc.issuer")
        return None
    audience = (settings.audience or config.public_url).rstrip("/")
    if not audience:
        raise ValidationError(
            "[oidc] needs an audience (or public_url): a token that is for somebody else must not open this server",
            field="oidc.audience",
        )
    try:
        import jwt  # noqa: F401
    except ImportError:
        raise ValidationError(f"[oidc] needs the oidc extra: {install_command('oidc')}", field="oidc.issuer") from None
    from commonplace.serve.jwks import KeySet  # an HTTP client, which a server without an issuer does not need

    keys = KeySet(settings.issuer, settings.jwks_url)
    return TokenVerifier(replace(settings, audience=audience), keys, clock, is_name)


def check_texts(claims: Claims) -> None:
    """The registered claims that are text (RFC 7519, 4.1), apart from those that are compared with the settings."""
    for claim in ("sub", "jti"):
        if not isinstance(claims.get(claim, ""), str):
            raise Unauthenticated(f"the claim {claim!r} of this token is no text: {_shown(claims[claim])}")


def check_times(claims: Claims, now: int, settings: OidcConfig) -> None:
    """By our own clock, which every other expiry goes by, in milliseconds."""
    seconds = now / 1000
    for claim in ("exp", "nbf"):
        value = claims.get(claim, seconds)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
            raise Unauthenticated(f"the claim {claim!r} of this token is no time: {_shown(value)}")
    if claims["exp"] + settings.leeway <= seconds:
        ended = iso(int(claims["exp"] * 1000))
        raise Unauthenticated(f"this token expired at {ended}; get a new one from {settings.issuer}")
    if claims.get("nbf", seconds) - settings.leeway > seconds:
        raise Unauthenticated(f"this token is not good before {iso(int(claims['nbf'] * 1000))}")


def principal_of(claims: Claims, settings: OidcConfig, is_name: Callable[[str], bool]) -> Principal:
    """Whom the claims of a good token stand for."""
    name = _name(claims.get(settings.name_claim), settings.name_claim, is_name)
    role = _role(claims, settings)
    tenant = settings.tenant
    if settings.tenant_claim:
        tenant = _name(claims.get(settings.tenant_claim), settings.tenant_claim, is_name)
        # Who can have a group named so at the issuer would otherwise run this server.
        if tenant == LOCAL_TENANT and not settings.local_by_claim:
            raise Forbidden(
                f"the claim {settings.tenant_claim!r} of this token says {LOCAL_TENANT!r}, the tenant of this server's "
                "operators, which no claim may say unless local_by_claim under [oidc] is true"
            )
    agents: tuple[str, ...] = (ALL_AGENTS,)
    if settings.agents_claim:
        given = _words(claims.get(settings.agents_claim), ",")
        if not given:
            raise Forbidden(f"this token has no claim {settings.agents_claim!r}, which says the agents it may use")
        agents = tuple(_name(each, settings.agents_claim, is_name) for each in given)
    return Principal(f"{NAME_PREFIX}{name}", tenant, role, agents)


def _role(claims: Claims, settings: OidcConfig) -> Role:
    """The highest that it is given."""
    if settings.role_claim:
        given = set(_words(claims.get(settings.role_claim), ","))
        called: Mapping[Role, str] = {role: role for role in SCOPES}
        where = f"roles {', '.join(called)} in its claim {settings.role_claim!r}"
    else:
        given = {*_words(claims.get("scope")), *_words(claims.get("scp"))}
        called, where = SCOPES, f"scopes {', '.join(SCOPES.values())}"
    held = [role for role, name in called.items() if name in given]
    if not held:
        raise Forbidden(f"this token has none of the {where}", role="reader")
    return held[-1]


def _words(value: Any, separator: str | None = None) -> list[str]:
    """A claim that holds several: as one text, or as a list."""
    parts = value.split(separator) if isinstance(value, str) else value if isinstance(value, list) else []
    return [stripped for part in parts if isinstance(part, str) and (stripped := part.strip())]


def _name(value: Any, claim: str, is_name: Callable[[str], bool]) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise Forbidden(f"this token has no claim {claim!r}, which this server goes by")
    if not isinstance(value, str) or len(value) > _MAX_CHARS or not value.isprintable() or not is_name(value):
        raise Forbidden(
            f"the claim {claim!r} of this token is no name: printable text of up to {_MAX_CHARS} characters"
        )
    return value


def _unverified(token: str) -> Claims:
    """For a refusal to quote."""
    import jwt

    found: Claims = jwt.decode(token, options={"verify_signature": False})
    return found


def _shown(value: Any) -> str:
    return repr(value)[:80]
