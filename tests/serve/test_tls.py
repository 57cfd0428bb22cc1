"""HTTPS by the server itself."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from certificates import make_certificate
from server_process import SECONDS, cli, command, environment, run_server

from commonplace.config import load
from commonplace.embedders.hashing import open_embedder
from commonplace.serve.running_server import RunningServer, running_server
from commonplace.serve.shared_embedder import SharedEmbedder
from commonplace.wire.errors import Unavailable

HASHING = open_embedder("hashing")


def test_the_server_speaks_https(tmp_path: Path) -> None:
    own = make_certificate(tmp_path)
    data = tmp_path / "data"
    with run_server(data, "--tls-cert", str(own.cert), "--tls-key", str(own.key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert server.out[0] == f"Open {server.url}/ui/ in a browser.\n"
        request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
        answer = server.post("/v0/remember", request).json
        assert answer["approval_url"].startswith(f"{server.url}/ui/inbox/")
        assert server.get("/ui/login").headers["set-cookie"].endswith("; Secure")
        assert server.get("/ui/login").headers["set-cookie"].startswith("__Host-commonplace=")
        # Whoever speaks plain HTTP learns nothing, and is answered by nobody.
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionError):
                assert b"200" not in line.recv(4096)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            old = ssl.create_default_context(cafile=str(own.cert))
            old.set_ciphers("ALL:@SECLEVEL=0")
            with pytest.warns(DeprecationWarning, match="TLSv1"):
                old.minimum_version = old.maximum_version = version
            with (
                socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as line,
                pytest.raises(ssl.SSLError),
            ):
                old.wrap_socket(line, server_hostname="127.0.0.1")


def test_its_embedder_is_shared_with_whoever_knows_its_certificate(tmp_path: Path) -> None:
    own = make_certificate(tmp_path)
    data = tmp_path / "data"
    with run_server(data, "--tls-cert", str(own.cert), "--tls-key", str(own.key)) as server:
        found = running_server(data)
        assert found is not None
        assert (found.url, len(found.certificate)) == (server.url, 64)
        shared = SharedEmbedder(_NoModel(), data)
        assert shared.embed(["tea"]).shape == (1, _NoModel.dimension)
        with pytest.raises(ValueError, match="not the server that was announced"):
            shared._request(RunningServer(found.url, found.token, "0" * 64), ["tea"], {})
        # A command on the same data names the page as the server does.
        assert cli(data, "remember", "x", "--approval")["approval_url"].startswith(f"{server.url}/ui/inbox/")


class _NoModel:
    """Stands for the server's embedder and cannot embed anything itself."""

    name = HASHING.name
    dimension = HASHING.dimension

    def embed(self, texts: object) -> object:
        raise Unavailable("no model here")


def test_a_certificate_that_cannot_be_used_is_said_at_the_start(tmp_path: Path) -> None:
    own, other = make_certificate(tmp_path), make_certificate(tmp_path, "other")
    locked = make_certificate(tmp_path, "locked", b"secret")
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    cases = {
        ("--tls-key", str(own.key)): "a key without its certificate: give --tls-cert too",
        (
            "--tls-cert",
            str(tmp_path / "none.pem"),
        ): f"--tls-cert: cannot read {tmp_path}/none.pem: No such file or directory",
        ("--tls-cert", str(own.cert), "--tls-key", str(tmp_path)): f"--tls-key: cannot read {tmp_path}: Is a directory",
        ("--tls-cert", str(own.cert), "--tls-key", str(other.key)): "is not that of the certificate in",
        ("--tls-cert", str(own.cert)): "must hold a certificate and its key in PEM",
        ("--tls-cert", str(empty), "--tls-key", str(own.key)): "must hold a certificate and its key in PEM",
        ("--tls-cert", str(locked.cert), "--tls-key", str(locked.key)): "is locked by a password",
    }
    for flags, says in cases.items():
        done = subprocess.run(
            command("serve", "--port", "0", *flags), env=environment(tmp_path / "data"), capture_output=True, text=True,
            timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode, says in done.stderr) == (1, True), (flags, done.stderr)


def test_a_key_may_be_in_the_file_of_its_certificate(tmp_path: Path) -> None:
    own = make_certificate(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(own.cert.read_bytes() + own.key.read_bytes())
    os.chmod(both, 0o600)
    with run_server(tmp_path / "data", "--tls-cert", str(both)) as server:
        assert server.get("/healthz").status == 200


def test_the_settings_are_read_from_the_file_too(tmp_path: Path) -> None:
    (tmp_path / "commonplace.toml").write_text(
        'tls_cert = "a.pem"\ntls_key = "a.key"\nroot_path = "/memory"\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n'
    )
    found = load(data=tmp_path)
    assert (found.tls_cert, found.tls_key, found.root_path) == ("a.pem", "a.key", "/memory")
    assert found.trusted_proxies == ("10.0.0.0/8", "::1")
