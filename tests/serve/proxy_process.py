"""A server behind a real proxy: asked over HTTPS by the name that people know, in a process between the two."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from certificates import NAME, Certificate
from server_process import SECONDS, ServerProcess

PROGRAM = Path(__file__).with_name("proxy_program.py")


@dataclass
class ProxiedServer(ServerProcess):
    """`url` is the proxy's own, by name; a call has the prefix before its path, and the token."""

    behind: int = 0  # the port of the proxy
    prefix: str = ""
    token: str = ""

    def _path(self, path: str) -> str:
        return path if path.startswith(f"{self.prefix}/") else f"{self.prefix}{path}"

    def _headers(self, token: str | None) -> dict[str, str]:
        return {"Host": f"{NAME}:{self.behind}", **super()._headers(self.token if token is None else token)}

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.behind, timeout=SECONDS, context=self.tls)


@contextmanager
def run_proxy(
    server: ServerProcess,
    certificate: Certificate,
    style: str,
    prefix: str = "",
    *,
    strip: bool = True,
    token: str = "",
) -> Iterator[ProxiedServer]:
    options = {"cert": str(certificate.cert), "key": str(certificate.key), "style": style, "prefix": prefix}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(server.port), json.dumps({**options, "strip": strip})],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        tls = ssl.create_default_context(cafile=str(certificate.cert))
        url = f"https://{NAME}:{port}{prefix}"
        yield ProxiedServer(server.process, url, server.data, server.out, server.err, tls, port, prefix, token)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
