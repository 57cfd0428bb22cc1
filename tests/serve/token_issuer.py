"""An issuer of tokens on this machine: real keys, its discovery documents, its keys and a token endpoint over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ALGORITHMS = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
_CLASSES = {
    "RS256": jwt.algorithms.RSAAlgorithm,
    "PS256": jwt.algorithms.RSAAlgorithm,
    "ES256": jwt.algorithms.ECAlgorithm,
    "EdDSA": jwt.algorithms.OKPAlgorithm,
}
Document = dict[str, Any]


def encoded(part: Document | bytes) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SigningKey:
    def __init__(self, id: str, algorithm: str = "RS256") -> None:
        self.id, self.algorithm = id, algorithm
        self.private: Any
        match ALGORITHMS[algorithm]:
            case "RSA":
                self.private = rsa.generate_private_key(65537, 2048)
            case "EC":
                self.private = ec.generate_private_key(ec.SECP256R1())
            case _:
                self.private = ed25519.Ed25519PrivateKey.generate()

    def public(self, *, bound: bool = True) -> Document:
        """As it is published; `bound` says what it is for."""
        own = json.loads(_CLASSES[self.algorithm].to_jwk(self.private.public_key()))
        return {**own, "kid": self.id, "use": "sig", **({"alg": self.algorithm} if bound else {})}

    def sign(self, claims: Document, **header: Any) -> str:
        return jwt.encode(claims, self.private, self.algorithm, headers={"kid": self.id, **header})

    def sign_with_public_key(self, claims: Document) -> str:
        """HS256, with what everyone can read of this key as the secret."""
        secret = self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        body = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': self.id})}.{encoded(claims)}"
        return f"{body}.{encoded(hmac.new(secret, body.encode(), hashlib.sha256).digest())}"


def unsigned(claims: Document, id: str) -> str:
    return f"{encoded({'alg': 'none', 'typ': 'JWT', 'kid': id})}.{encoded(claims)}."


class TokenIssuer:
    """`asked` counts how often each path was."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = SigningKey("first")
        self.keys = [self.key.public()]
        self.clients = {"agent": "secret"}
        self.asked: dict[str, int] = {}
        self.down = False
        self.granted: list[Document] = []  # what the token endpoint was asked for

    def claims(self, audience: str, **more: Any) -> Document:
        now = int(time.time())
        own = {"iss": self.url, "aud": audience, "sub": "alice", "iat": now, "exp": now + 600, "scope": "memory:admin"}
        return {name: value for name, value in {**own, **more}.items() if value is not None}

    def token(self, audience: str, **more: Any) -> str:
        return self.key.sign(self.claims(audience, **more))

    def answer(self, path: str) -> tuple[int, Document]:
        self.asked[path] = self.asked.get(path, 0) + 1
        if self.down:
            return 503, {}
        if path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
            return 200, {
                "issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize", "grant_types_supported": ["client_credentials"],
            }  # fmt: skip
        return (200, {"keys": self.keys}) if path == "/keys" else (404, {})

    def grant(self, form: dict[str, list[str]], authorization: str) -> tuple[int, Document]:
        """Client credentials (RFC 6749 section 4.4), for the resource that is asked for (RFC 8707)."""
        asked = {name: values[0] for name, values in form.items()}
        self.granted.append(asked)
        client, _, secret = base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")
        if self.clients.get(client) != secret or asked.get("grant_type") != "client_credentials":
            return 401, {"error": "invalid_client"}
        token = self.token(asked["resource"], sub=client, scope=asked.get("scope", ""))
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 600}


@contextmanager
def run_issuer() -> Iterator[TokenIssuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(*issuer.answer(self.path))

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.reply(*issuer.grant(form, self.headers.get("Authorization", "")))

        def reply(self, status: int, document: Document) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = TokenIssuer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
