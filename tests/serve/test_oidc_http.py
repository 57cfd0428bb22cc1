"""A real server that takes tokens of a real issuer, over every protocol; and the official MCP client, which finds the
issuer by itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_port
from page_browser import Visitor
from server_process import PROTOCOLS, SECONDS, Answer, ServerProcess, command, environment, run_server, token
from token_issuer import SigningKey, TokenIssuer, run_issuer, unsigned

SCOPES = ["memory:read", "memory:write", "memory:review", "memory:admin"]
METADATA = "/.well-known/oauth-protected-resource"
MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@dataclass
class Trusting:
    server: ServerProcess
    issuer: TokenIssuer
    audience: str

    def token(self, **more: Any) -> str:
        return self.issuer.token(self.audience, **more)


def settings_of(issuer: TokenIssuer, audience: str) -> dict[str, str]:
    return {
        "COMMONPLACE_OIDC_ISSUER": issuer.url, "COMMONPLACE_OIDC_AUDIENCE": audience,
        "COMMONPLACE_OIDC_TENANT_CLAIM": "org", "COMMONPLACE_OIDC_AGENTS_CLAIM": "agents",
        "COMMONPLACE_OIDC_LOCAL_BY_CLAIM": "true",
    }  # fmt: skip


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    data, port = tmp_path_factory.mktemp("oidc"), free_port()
    audience = f"http://127.0.0.1:{port}"
    own = {"org": "local", "agents": "*"}
    with run_issuer() as issuer, run_server(data, "--port", str(port), **settings_of(issuer, audience)) as server:
        found = Trusting(server, issuer, audience)
        issuer.claims = _with(issuer.claims, own)  # type: ignore[method-assign]
        yield found


def _with(claims: Any, own: dict[str, Any]) -> Any:
    return lambda audience, **more: claims(audience, **{**own, **more})


def every_way(server: ServerProcess, secret: str) -> Iterator[tuple[str, Answer]]:
    """One request to every route that asks who is calling, and to each of the others of its kind."""
    for protocol in PROTOCOLS:
        for route in protocol.routes:
            if route.role is not None:
                path = route.path.replace("{id:path}", "x").replace("{", "").replace("}", "").replace(":path", "")
                body = {} if route.has_body else None
                yield f"{route.method} {route.path}", server.call(route.method, path, body, token=secret)
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for path in ("/mcp", "/mcp/amp", "/mcp/trusty", "/mcp/all", "/mcp/full"):
        yield path, server.post(path, initialize, token=secret, headers=MCP)
    yield "stream", server.get("/v0/reviews/stream?after=x", token=secret)
    yield "metrics", server.get("/metrics", token=secret)


def test_what_is_not_good_is_refused_everywhere(trusting: Trusting) -> None:
    issuer = trusting.issuer
    claims = issuer.claims(trusting.audience)
    bad = {
        "expired": (trusting.token(exp=1_600_000_000), "this token expired at 2020-09-13T12:26:40.000Z"),
        "foreign audience": (issuer.token("https://other.example"), "this token is for 'https://other.example'"),
        "wrong issuer": (trusting.token(iss="https://evil.example"), "this token is by 'https://evil.example'"),
        "unknown key": (SigningKey("unknown").sign(claims), "is signed with the key 'unknown'"),
        "another's key": (SigningKey("first").sign(claims), "the signature of this token is not that of its key"),
        "none": (unsigned(claims, "first"), "this token is signed by 'none'"),
        "a public key as a secret": (issuer.key.sign_with_public_key(claims), "this token is signed by 'HS256'"),
        "one of ours that is none": ("cp_ffffffffffff_x", "this token is not known, has expired or was revoked"),
    }
    for case, (secret, says) in bad.items():
        for way, answer in every_way(trusting.server, secret):
            assert answer.status == 401, (case, way, answer.body)
            assert says in answer.body.decode(), (case, way)
            challenge = answer.headers["www-authenticate"]
            assert challenge == (
                f'Bearer realm="commonplace", error="invalid_token", resource_metadata="{trusting.audience}{METADATA}"'
            ), (case, way)


def test_a_good_one_is_taken_everywhere(trusting: Trusting) -> None:
    for way, answer in every_way(trusting.server, trusting.token()):
        assert answer.status != 401, (way, answer.body)


def test_without_a_token_the_server_says_where_they_are_made(trusting: Trusting) -> None:
    """As MCP's authorisation asks, and on every other route alike."""
    for path, body in (("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}), ("/v0/recall", {})):
        answer = trusting.server.post(path, body, headers=MCP)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == (
            'Bearer realm="commonplace", scope="memory:read memory:write", '
            f'resource_metadata="{trusting.audience}{METADATA}"'
        )
        assert trusting.issuer.url in answer.body.decode()
    found = trusting.server.get(METADATA)
    assert found.json == {
        "resource": trusting.audience, "authorization_servers": [trusting.issuer.url], "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"], "resource_name": "Commonplace",
    }  # fmt: skip
    assert trusting.server.get(f"{METADATA}/mcp").status == 404, "which would be about another resource"


def test_a_token_in_the_address_is_no_token(trusting: Trusting) -> None:
    assert trusting.server.get(f"/v0/health?access_token={trusting.token()}").status == 401


def test_a_scope_too_few_is_named(trusting: Trusting) -> None:
    body = {"agent_id": "a", "type": "semantic", "content": "x"}
    reader = trusting.token(scope="memory:read")
    assert trusting.server.post("/v0/recall", {"agent_id": "a", "query": "x"}, token=reader).status == 200
    refused = trusting.server.post("/v0/remember", body, token=reader)
    assert (refused.status, refused.json["error"]["details"]) == (403, {"role": "writer"})
    assert refused.headers["www-authenticate"] == (
        'Bearer realm="commonplace", error="insufficient_scope", scope="memory:write", '
        f'resource_metadata="{trusting.audience}{METADATA}"'
    )
    nothing = trusting.server.get("/v0/health", token=trusting.token(scope="openid"))
    assert (nothing.status, 'scope="memory:read"' in nothing.headers["www-authenticate"]) == (403, True)


def test_claims_are_walls_as_those_of_our_tokens_are(trusting: Trusting) -> None:
    server = trusting.server
    alice = trusting.token(org="acme", agents=["assistant", "team-*"], scope="memory:write")
    bob = trusting.token(org="globex", sub="bob", scope="memory:write")
    body = {"agent_id": "assistant", "type": "semantic", "content": "Alice likes tea"}
    id = server.post("/v0/remember", body, token=alice).json["id"]
    assert server.get(f"/v0/memories/{id}?agent_id=assistant", token=alice).json["content"] == "Alice likes tea"
    assert server.get(f"/v0/memories/{id}?agent_id=assistant", token=bob).status == 404
    assert server.post("/v0/remember", {**body, "agent_id": "other"}, token=alice).status == 403
    assert server.post("/v0/remember", {**body, "agent_id": "team-x"}, token=alice).status == 200
    audit = server.get("/v0/audit", token=trusting.token(org="acme")).json["entries"]
    assert "oidc:alice" in json.dumps(audit)
    for missing in ("org", "agents"):
        answer = server.get("/v0/health", token=trusting.token(**{missing: None}))
        assert (answer.status, missing in answer.body.decode()) == (403, True)


def test_the_page_takes_one_and_lets_go_of_it_when_it_ends(trusting: Trusting) -> None:
    visitor = Visitor(trusting.server)
    assert visitor.log_in(trusting.token()).status == 303
    assert "oidc:alice" in visitor.get("/ui/inbox").body.decode()
    assert Visitor(trusting.server).log_in(trusting.token(exp=1_600_000_000)).status == 401


def test_our_own_tokens_go_on_working(trusting: Trusting) -> None:
    own = token(trusting.server.data, "--role", "reader", "--name", "own")
    assert trusting.server.get("/v0/health", token=own).status == 200


def test_a_rotated_key_is_found(tmp_path: Path) -> None:
    """What was fetched lately enough to be believed knows nothing of it; the server asks again."""
    audience = "https://memory.example.org"
    with run_issuer() as issuer, run_server(tmp_path, **settings_of(issuer, audience)) as server:
        claims = issuer.claims(audience, org="local", agents="*")
        assert server.get("/v0/health", token=issuer.key.sign(claims)).status == 200
        assert issuer.asked["/keys"] == 1
        second = SigningKey("second", "ES256")
        issuer.keys = [second.public()]
        assert server.get("/v0/health", token=second.sign(claims)).status == 200
        assert issuer.asked["/keys"] == 2
        assert server.get("/v0/health", token=issuer.key.sign(claims)).status == 401, "the old one was taken back"


def test_an_issuer_that_cannot_be_reached_is_our_failure_and_no_way_in(tmp_path: Path) -> None:
    audience = "https://memory.example.org"
    with run_issuer() as issuer, run_server(tmp_path, **settings_of(issuer, audience)) as server:
        issuer.down = True
        answer = server.get("/v0/health", token=issuer.token(audience, org="local", agents="*"))
        assert (answer.status, answer.code) == (503, "unavailable")
        assert f"the keys of {issuer.url} could not be fetched: it answered 503" in answer.json["error"]["message"]
        assert server.get("/healthz").status == 200
        assert server.get("/v0/health").status == 401, "the server is not open for it"


def test_other_machines_may_be_served_with_an_issuer_and_no_token_of_ours(tmp_path: Path) -> None:
    with run_issuer() as issuer:
        more = settings_of(issuer, "https://memory.example.org")
        with run_server(tmp_path, "--host", "0.0.0.0", **more) as server:
            assert server.get("/v0/health").status == 401


def test_below_a_path_the_metadata_is_where_clients_look(tmp_path: Path) -> None:
    audience = "https://memory.example.org/memory/mcp"
    with run_issuer() as issuer:
        more = {**settings_of(issuer, audience), "COMMONPLACE_PUBLIC_URL": "https://memory.example.org/memory"}
        with run_server(tmp_path, **more) as server:
            challenge = server.get("/v0/health").headers["www-authenticate"]
            assert f'resource_metadata="https://memory.example.org/memory{METADATA}"' in challenge
            # Below the prefix, and before the whole path as RFC 9728 puts it.
            for path in (METADATA, f"/memory{METADATA}", f"{METADATA}/memory/mcp"):
                assert server.get(path).json["resource"] == audience, path


def test_a_name_in_other_letters_is_challenged_with_in_ascii(tmp_path: Path) -> None:
    """A header holds no other letters."""
    more = {"COMMONPLACE_PUBLIC_URL": "https://пример.рф", "COMMONPLACE_OIDC_ISSUER": "http://127.0.0.1:1"}
    with run_server(tmp_path, **more) as server:
        answer = server.get("/v0/health")
        assert answer.status == 401
        assert f'resource_metadata="https://xn--e1afmkfd.xn--p1ai{METADATA}"' in answer.headers["www-authenticate"]
        named = {"Host": "xn--e1afmkfd.xn--p1ai"}
        assert server.get("/v0/health", headers=named).status == 401, "browsers ask for it so"


@pytest.mark.parametrize(("settings", "says"), [
    ({"ISSUER": "https://login.example.org"}, "[oidc] needs an audience (or public_url)"),
    ({"ISSUER": "http://login.example.org", "AUDIENCE": "x"}, "oidc.issuer must be an address such as https"),
    ({"AUDIENCE": "x"}, "[oidc] needs an issuer"),
    ({"ISSUER": "https://login.example.org", "AUDIENCE": "x", "ALGORITHMS": "HS256"},
     "oidc.algorithms are among RS256"),
])  # fmt: skip
def test_what_cannot_be_meant_is_said_at_the_start(tmp_path: Path, settings: dict[str, str], says: str) -> None:
    more = {f"COMMONPLACE_OIDC_{name}": value for name, value in settings.items()}
    done = subprocess.run(
        command("serve", "--port", "0"), env=environment(tmp_path, **more), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, says in done.stderr) == (1, True), done.stderr


def test_the_official_client_finds_the_issuer_and_gets_a_token_for_us(trusting: Trusting) -> None:
    pytest.importorskip("mcp")
    import httpx2
    from mcp import Client
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.client.streamable_http import streamable_http_client

    class Storage:
        tokens: Any = None

        async def get_tokens(self) -> Any:
            return self.tokens

        async def set_tokens(self, tokens: Any) -> None:
            self.tokens = tokens

        async def get_client_info(self) -> Any:
            return None

        async def set_client_info(self, client_info: Any) -> None: ...

    url = f"{trusting.server.url}/mcp"
    provider = ClientCredentialsOAuthProvider(url, Storage(), "agent", "secret", issuer=trusting.issuer.url)

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(auth=provider) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("remember", {"content": "Alice is allergic to peanuts"})

    kept = asyncio.run(run())
    assert not kept.is_error
    asked = trusting.issuer.granted[-1]
    # The resource that our metadata names, and the scopes that our refusal asked for.
    assert (asked["resource"].rstrip("/"), asked["scope"]) == (trusting.audience, "memory:read memory:write")
