"""A small reverse proxy, run as a process of its own: takes HTTPS, passes plain HTTP on, says how it was asked.

`proxy_program.py UPSTREAM_PORT '{"cert", "key", "style", "prefix", "strip"}'` prints the port that it listens on. It
sets what it knows and drops what its caller sent under the same names, as `style` says: "x-forwarded" or "forwarded".
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_CLAIMS = {"forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix"}
_OWN = {"connection", "keep-alive", "transfer-encoding", "content-length"}


def main() -> None:
    upstream, options = int(sys.argv[1]), json.loads(sys.argv[2])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _CLAIMS}
            # Of the name it was asked under the server hears by the forwarded header alone.
            headers |= {"Host": f"127.0.0.1:{upstream}", **forwarded(self, options)}
            prefix, path = options.get("prefix", ""), self.path
            if prefix and not path.startswith(prefix):
                self.answer(404, [], b"not here")
                return
            connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
            connection.request(self.command, path[len(prefix) :] if options.get("strip") else path, body, headers)
            got = connection.getresponse()
            self.answer(got.status, got.getheaders(), got.read())
            connection.close()

        def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["cert"], options["key"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def forwarded(asked: BaseHTTPRequestHandler, options: dict[str, Any]) -> dict[str, str]:
    host, client = asked.headers.get("Host", ""), asked.client_address[0]
    match options["style"]:
        case "x-forwarded":
            said = {"X-Forwarded-For": client, "X-Forwarded-Proto": "https", "X-Forwarded-Host": host}
            return said | ({"X-Forwarded-Prefix": options["prefix"]} if options.get("prefix") else {})
        case "forwarded":
            return {"Forwarded": f'for={client};proto=https;host="{host}"'}
    return {}


if __name__ == "__main__":
    main()
