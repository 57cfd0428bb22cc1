"""Tokens of an issuer: which are taken, whom they stand for, and a sentence for each that is not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jwt
import pytest
from token_issuer import SigningKey, encoded, unsigned

from commonplace.config import Config, OidcConfig, load
from commonplace.serve.jwks import KeySet
from commonplace.serve.oidc import TokenVerifier, open_verifier
from commonplace.wire.errors import Fault, Forbidden, Unauthenticated, ValidationError
from commonplace.wire.record import Principal

ISSUER, AUDIENCE, NOW = "https://login.example.org", "https://memory.example.org", 1_800_000_000
KEY = SigningKey("first")
OTHERS = {name: SigningKey(name, name) for name in ("ES256", "EdDSA", "PS256")}
#: Published, but it belongs to nobody whose tokens these tests sign with it.
STRANGER = SigningKey("first")


def claims(**more: Any) -> dict[str, Any]:
    own = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 600, "scope": "openid memory:write"}
    return {name: value for name, value in {**own, **more}.items() if value is not None}


def verify(token: str, *, bound: bool = True, **settings: Any) -> Principal:
    published = [key.public(bound=bound) for key in (KEY, *OTHERS.values())]
    keys = KeySet(ISSUER, f"{ISSUER}/keys", fetch=lambda url: {"keys": published}, now=lambda: 0.0)
    configured = OidcConfig(issuer=ISSUER, audience=AUDIENCE, **settings)
    verifier = TokenVerifier(configured, keys, lambda: NOW * 1000, lambda name: "hunter2" not in name)
    return asyncio.run(verifier.principal(token))


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("key", [KEY, *OTHERS.values()], ids=lambda key: key.id)
def test_a_good_token_is_taken_whatever_signs_it(key: SigningKey, bound: bool) -> None:
    assert verify(key.sign(claims()), bound=bound) == Principal("oidc:alice", "local", "writer", ("*",))


def _changed(token: str) -> str:
    """Of somebody who would like to be an admin."""
    head, _, signature = token.split(".")
    return f"{head}.{encoded(claims(scope='memory:admin'))}.{signature}"


def signed(payload: Any, key: SigningKey = KEY) -> str:
    """Whatever it says: what makes tokens refuses to sign some of it."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return jwt.api_jws.encode(data, key.private, key.algorithm, headers={"kid": key.id})


REFUSED = {
    "expired": (KEY.sign(claims(exp=NOW - 31)), "this token expired at 2027-01-15T07:59:29.000Z; get a new one from"),
    "not yet": (KEY.sign(claims(nbf=NOW + 31)), "this token is not good before 2027-01-15T08:00:31.000Z"),
    "foreign audience": (KEY.sign(claims(aud="https://other.example")),
                         "this token is for 'https://other.example', and this server is 'https://memory.example.org'"),
    "foreign audiences": (KEY.sign(claims(aud=["a", "b"])), "this token is for ['a', 'b']"),
    "wrong issuer": (KEY.sign(claims(iss="https://evil.example")),
                     "this token is by 'https://evil.example'; this server takes those of 'https://login.example.org'"),
    "unknown key": (SigningKey("other").sign(claims()), "is signed with the key 'other', which https://login"),
    "another's key": (STRANGER.sign(claims()), "the signature of this token is not that of its key"),
    "no key named": (KEY.sign(claims(), kid=""), "is signed with the key '', which https://login"),
    "none": (unsigned(claims(), "first"),
             "this token is signed by 'none'; this server takes RS256, PS256, ES256, EdDSA"),
    "the public key as a secret": (KEY.sign_with_public_key(claims()),
                                   "this token is signed by 'HS256'; this server takes RS256"),
    "a changed one": (_changed(KEY.sign(claims())), "the signature of this token is not that of its key"),
    "a subject that is no text": (signed({**claims(), "sub": 5}), "the claim 'sub' of this token is no text: 5"),
    "an id that is no text": (signed({**claims(), "jti": ["x"]}), "the claim 'jti' of this token is no text: ['x']"),
    "a list of claims": (signed([claims()]), "what is signed in this token is no object with claims; get a new one"),
    "no JSON": (signed(b"alice"), "what is signed in this token is no object with claims"),
    "deep claims": (signed(b'{"a":' * 2_000), "what is signed in this token is no object with claims"),
    "a list by a stranger": (signed([claims()], STRANGER), "the signature of this token is not that of its key"),
    "no expiry": (KEY.sign(claims(exp=None)), "this token has no claim 'exp'"),
    "no audience": (KEY.sign(claims(aud=None)), "this token has no claim 'aud'"),
    "no issuer": (KEY.sign(claims(iss=None)), "this token has no claim 'iss'"),
    "nonsense": ("a.b.c", "this is no token of https://login.example.org, nor one of this server's own"),
    "much nonsense": (f"{'a' * 20_000}.b.c", "this is no token of"),
    "empty parts": ("..", "this is no token of"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_each_that_is_not_good_is_refused_with_its_sentence(case: str) -> None:
    token, says = REFUSED[case]
    with pytest.raises(Unauthenticated) as refused:
        verify(token)
    assert says in refused.value.message


def test_a_key_is_for_one_algorithm() -> None:
    """The one the issuer says: what a token says of itself is not believed."""
    other = SigningKey("first", "PS256")
    other.private = KEY.private
    with pytest.raises(Unauthenticated, match="not that of its key"):
        verify(other.sign(claims()))
    assert verify(other.sign(claims()), bound=False).name == "oidc:alice", "where the issuer says nothing of it"


@pytest.mark.parametrize("more", [{"exp": NOW - 29}, {"nbf": NOW + 30}, {"aud": ["x", AUDIENCE]}, {"nbf": NOW - 5.5}])
def test_clocks_may_differ_a_little(more: dict[str, Any]) -> None:
    assert verify(KEY.sign(claims(**more))).name == "oidc:alice"


@pytest.mark.parametrize("odd", ["soon", True, -1, 1e15, [], {}])
@pytest.mark.parametrize("claim", ["exp", "nbf"])
def test_what_is_no_time_is_refused(claim: str, odd: Any) -> None:
    with pytest.raises(Unauthenticated):
        verify(KEY.sign(claims(**{claim: odd})))


@pytest.mark.parametrize(("more", "role"), [
    ({"scope": "memory:read"}, "reader"), ({"scope": "memory:read memory:review"}, "reviewer"),
    ({"scope": "memory:admin memory:read"}, "admin"), ({"scope": None, "scp": ["memory:write"]}, "writer"),
    ({"scope": None, "scp": "memory:read"}, "reader"),
])  # fmt: skip
def test_scopes_say_the_role(more: dict[str, Any], role: str) -> None:
    assert verify(KEY.sign(claims(**more))).role == role


@pytest.mark.parametrize("scope", [None, "", "openid profile", "memory:writer", "xmemory:write", 7, {"memory:read": 1}])
def test_without_a_scope_of_ours_nothing_is_allowed(scope: Any) -> None:
    with pytest.raises(Forbidden, match="this token has none of the scopes memory:read, memory:write"):
        verify(KEY.sign(claims(scope=scope)))


def test_claims_say_tenant_agents_role_and_name() -> None:
    named = {"tenant_claim": "org", "agents_claim": "agents", "role_claim": "roles", "name_claim": "email"}
    more = {"org": "acme", "agents": ["assistant", "team-*"], "roles": ["x", "reviewer"], "email": "alice@example.org"}
    expected = Principal("oidc:alice@example.org", "acme", "reviewer", ("assistant", "team-*"))
    assert verify(KEY.sign(claims(**more)), **named) == expected
    assert verify(KEY.sign(claims(**{**more, "agents": "assistant, team-*", "roles": "reviewer"})), **named) == expected
    for missing in more:
        with pytest.raises(Forbidden, match=f"{missing}'"):
            verify(KEY.sign(claims(**{**more, missing: None})), **named)
    for name in ("org", "email"):
        for odd in ("", " ", "x" * 257, "a\nb", 7, ["acme"], "hunter2"):
            with pytest.raises(Forbidden):
                verify(KEY.sign(claims(**{**more, name: odd})), **named)
    assert verify(KEY.sign(claims()), tenant="acme").tenant == "acme"


def test_a_claim_that_is_no_text_is_not_said_to_be_missing() -> None:
    with pytest.raises(Forbidden, match="the claim 'email' of this token is no name: printable text"):
        verify(KEY.sign(claims(email=7)), name_claim="email")


@pytest.mark.parametrize("scope", ["memory:read", "memory:admin"])
def test_no_claim_makes_an_operator_unless_the_operator_says_so(scope: str) -> None:
    token = KEY.sign(claims(org="local", scope=scope))
    with pytest.raises(Forbidden, match="'org' of this token says 'local', the tenant of this server's operators"):
        verify(token, tenant_claim="org")
    assert verify(token, tenant_claim="org", local_by_claim=True).is_operator is (scope == "memory:admin")
    assert verify(token).tenant == "local", "as configured, and not as somebody at the issuer says"


def test_the_settings_are_checked_at_the_start(tmp_path: Any) -> None:
    def open_it(**settings: str) -> Any:
        return open_verifier(Config(tmp_path, oidc=OidcConfig(**settings)), lambda: 0, lambda name: True)

    assert open_it() is None
    assert open_it(issuer=ISSUER, audience=AUDIENCE).metadata()["resource"] == AUDIENCE
    public = Config(tmp_path, public_url=f"{AUDIENCE}/", oidc=OidcConfig(issuer=ISSUER))
    verifier = open_verifier(public, lambda: 0, lambda name: True)
    assert verifier is not None
    assert verifier.metadata()["resource"] == AUDIENCE
    for settings, says in [
        ({"issuer": ISSUER}, "needs an audience"), ({"audience": AUDIENCE}, "needs an issuer"),
        ({"issuer": "http://login.example.org", "audience": AUDIENCE}, "oidc.issuer must be an address such as https"),
    ]:  # fmt: skip
        with pytest.raises(ValidationError, match=says):
            open_it(**settings)


@pytest.mark.parametrize("algorithm", ["none", "HS256", "HS512", "rs256", ""])
def test_no_setting_lets_a_secret_sign(tmp_path: Any, algorithm: str) -> None:
    (tmp_path / "commonplace.toml").write_text(f'[oidc]\nalgorithms = ["RS256", "{algorithm or " x"}"]\n')
    with pytest.raises(ValidationError, match="algorithms are among RS256"):
        load(data=tmp_path)


@pytest.mark.parametrize("odd", [
    "", ".", "a.b", "...", "ey.ey.ey", "é.é.é", "\0.\0.\0", f"{encoded({})}.{encoded({})}.x",
    f"{encoded({'alg': 'RS256', 'kid': 7})}.{encoded({})}.x", f"{encoded({'alg': ['RS256']})}.{encoded({})}.x",
    f"{encoded({'alg': 'RS256', 'kid': 'first', 'crit': ['x']})}.{encoded({})}.x",
])  # fmt: skip
def test_whatever_is_sent_is_refused_and_nothing_else_happens(odd: str) -> None:
    with pytest.raises(Fault):
        verify(odd)
