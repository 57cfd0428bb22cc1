"""Where a server is, as a browser says it: scheme, host and port, one spelling for each."""

from __future__ import annotations

from urllib.parse import urlsplit

from commonplace.wire.errors import ValidationError
from commonplace.wire.shown_urls import shown_url

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str, field: str = "url") -> str:
    """`HTTPS://Example.org:443/mrp` is https://example.org; the port is left out where it is the scheme's own."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port or an address that cannot be one
        host, port = None, None
    if not host or parts.scheme not in _PORTS or not url.isprintable() or " " in url:
        raise ValidationError(
            f"{shown_url(url, ())!r:.200} is not a server's address, such as https://example.org", field=field
        )
    return make_origin(parts.scheme, host, port)


def make_origin(scheme: str, host: str, port: int | None) -> str:
    name = f"[{host}]" if ":" in host else host.rstrip(".").lower()
    return f"{scheme}://{name}" + ("" if port in (None, _PORTS[scheme]) else f":{port}")
