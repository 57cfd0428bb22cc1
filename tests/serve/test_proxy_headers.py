"""Whose word on how a request came is believed, and what is made of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from starlette.datastructures import Headers

from commonplace.serve.proxy_headers import ForwardedAddress, TrustedProxies, without_prefix
from commonplace.wire.errors import Forbidden, ValidationError

TRUSTED = ("127.0.0.1", "10.0.0.0/8", "2001:db8::/32")
NAMES = (
    "Forwarded",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Prefix",
    "X-Forwarded-For",
    "X-Forwarded-Port",
)


def read(peer: str, *headers: tuple[str, str]) -> ForwardedAddress | None:
    proxies = TrustedProxies(TRUSTED)
    proxies.reserved = frozenset({"ui", "v0"})
    return proxies.read(peer, Headers(raw=[(name.lower().encode(), value.encode()) for name, value in headers]))


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.200.3.4", "2001:db8::9", "::ffff:127.0.0.1"])
def test_a_trusted_peer_is_believed(peer: str) -> None:
    assert read(peer, ("X-Forwarded-Proto", "https")) == ForwardedAddress("https")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("peer", ["127.0.0.2", "192.0.2.7", "::1", "", "not-an-address", "2001:db9::1"])
def test_of_everyone_else_every_claim_is_refused_with_a_sentence(peer: str, name: str) -> None:
    with pytest.raises(Forbidden, match="is no proxy that this server trusts; name it with --trusted-proxy") as refused:
        read(peer, (name, "x"))
    assert name in refused.value.message
    assert (peer or "who sends it") in refused.value.message


def test_without_a_claim_nobody_is_asked_who_they_are() -> None:
    assert read("192.0.2.7", ("Host", "x"), ("X-Real-Ip", "1.2.3.4")) is None


@pytest.mark.parametrize(("headers", "expected"), [
    ([("X-Forwarded-Proto", "HTTPS"), ("X-Forwarded-Host", "Memory.example.org:8443"), ("X-Forwarded-Prefix", "/a/b/")],
     ForwardedAddress("https", "Memory.example.org:8443", "/a/b")),
    ([("X-Forwarded-For", "1.2.3.4, 10.0.0.1")], ForwardedAddress()),
    ([("X-Forwarded-Host", "[2001:db8::1]:443"), ("X-Forwarded-Prefix", "/")],
     ForwardedAddress("", "[2001:db8::1]:443")),
    ([("Forwarded", "for=192.0.2.1;proto=https;host=memory.example.org")],
     ForwardedAddress("https", "memory.example.org")),
    ([("Forwarded", 'For="[2001:db8::1]:4711"; Proto=https; Host="memory.example.org:8443"')],
     ForwardedAddress("https", "memory.example.org:8443")),
    # What the caller made up comes first, and is not looked at: the proxy's own word is the last.
    ([("Forwarded", "host=evil.example;proto=http, for=203.0.113.5;host=memory.example.org;proto=https")],
     ForwardedAddress("https", "memory.example.org")),
    # The last one came from a proxy that is trusted, too, so what that one said counts.
    ([("Forwarded", "for=203.0.113.5;host=memory.example.org;proto=https, for=10.0.0.3;host=inner;proto=http")],
     ForwardedAddress("https", "memory.example.org")),
    ([("Forwarded", "host=evil.example, for=203.0.113.5;host=memory.example.org;proto=https"),
      ("Forwarded", "for=10.0.0.3:5000;host=inner;proto=http")], ForwardedAddress("https", "memory.example.org")),
])  # fmt: skip
def test_what_is_made_of_it(headers: list[tuple[str, str]], expected: ForwardedAddress) -> None:
    assert read("10.0.0.1", *headers) == expected


@pytest.mark.parametrize(("headers", "says"), [
    ([("X-Forwarded-Proto", "https, http")], "X-Forwarded-Proto has 2 values"),
    ([("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Host", "memory.example.org")],
     "X-Forwarded-Host has 2 values"),
    ([("X-Forwarded-Proto", "gopher")], "http or https"),
    ([("X-Forwarded-Host", "a b")], "is none"),
    ([("X-Forwarded-Host", "evil.example/x?")], "is none"),
    ([("X-Forwarded-Host", "a@evil.example")], "is none"),
    ([("X-Forwarded-Prefix", "memory")], "must be a path such as /memory"),
    ([("X-Forwarded-Prefix", "//evil.example")], "must be a path such as /memory"),
    ([("X-Forwarded-Prefix", "/a/../b")], "must be a path such as /memory"),
    ([("X-Forwarded-Prefix", "/a\\b")], "must be a path such as /memory"),
    ([("X-Forwarded-Prefix", '/a"><script>')], "must be a path such as /memory"),
    ([("X-Forwarded-Prefix", "/v0/x")], "may not begin with /v0"),
    ([("Forwarded", "proto")], "RFC 7239"),
    ([("Forwarded", 'host="a')], "RFC 7239"),
    ([("Forwarded", "proto=https"), ("X-Forwarded-Host", "a")], "both Forwarded and X-Forwarded-Host"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_a_sentence(headers: list[tuple[str, str]], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        read("127.0.0.1", *headers)


@pytest.mark.parametrize(
    "odd", ["", " ", ",", ";", "=", '"', "for=", "for=;", "a=b,", "for=10.0.0.1," * 50, "\x7f", "é"]
)
def test_whatever_is_sent_is_read_or_refused(odd: str) -> None:
    for name in NAMES:
        with suppress(ValidationError):
            read("127.0.0.1", (name, odd))


@pytest.mark.parametrize(("path", "prefix", "own"), [
    ("/v0/recall", "", "/v0/recall"), ("/v0/recall", "/memory", "/v0/recall"),
    ("/memory/v0/recall", "/memory", "/v0/recall"),
    ("/memory", "/memory", "/"), ("/memory/", "/memory", "/"), ("/memoryx/v0", "/memory", "/memoryx/v0"),
    ("/memory/memory/v0", "/memory", "/memory/v0"),
])  # fmt: skip
def test_a_path_is_ours_whether_or_not_the_prefix_was_taken_away(path: str, prefix: str, own: str) -> None:
    assert without_prefix(path, prefix) == own


@pytest.mark.parametrize("given", [(), ("0.0.0.0/0", "::/0")])
def test_networks_may_be_none_or_everything(given: tuple[str, ...]) -> None:
    headers: Any = Headers({"x-forwarded-proto": "https"})
    proxies = TrustedProxies(given)
    if given:
        assert proxies.read("203.0.113.5", headers) == ForwardedAddress("https")
    else:
        with pytest.raises(Forbidden):
            proxies.read("127.0.0.1", headers)
