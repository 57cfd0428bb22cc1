"""Which hosts and origins pass, and which addresses are loopback."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from commonplace.serve.host_check import HostCheck, is_loopback
from commonplace.wire.errors import Forbidden, ValidationError

LOCAL = {"host": "127.0.0.1:8420"}
CASES = [
    (True, "GET", {"host": "localhost:8420"}, True),
    (True, "GET", {"host": "127.9.9.9"}, True),
    (True, "GET", {"host": "[::1]:8420"}, True),
    (True, "GET", {}, True),
    (True, "GET", {"host": "evil.example"}, False),
    (True, "GET", {"host": "localhost.evil.example"}, False),
    (True, "GET", {"host": "friend.example:443"}, True),
    (False, "GET", {"host": "anything.example"}, True),
    (True, "POST", {**LOCAL, "origin": "http://127.0.0.1:8420"}, True),
    (True, "POST", {**LOCAL, "origin": "http://localhost:8420"}, False),
    (True, "POST", {**LOCAL, "origin": "http://127.0.0.1:3000"}, False),
    (True, "POST", {**LOCAL, "origin": "https://evil.example"}, False),
    (True, "GET", {**LOCAL, "origin": "https://evil.example"}, False),
    (True, "POST", {**LOCAL, "origin": "https://friend.example"}, True),
    (True, "POST", {**LOCAL, "origin": "null"}, False),
    (True, "POST", {**LOCAL, "origin": "http://[oops"}, False),
    (True, "POST", {**LOCAL, "origin": "http://127.0.0.1:99999"}, False),
    (False, "POST", {"host": "memory.example", "origin": "https://memory.example"}, True),
    (False, "POST", {"host": "memory.example", "origin": "https://evil.example"}, False),
    (True, "POST", {**LOCAL, "sec-fetch-site": "cross-site"}, False),
    (True, "GET", {**LOCAL, "sec-fetch-site": "cross-site"}, True),
    (True, "POST", {**LOCAL, "sec-fetch-site": "same-origin"}, True),
]


@pytest.mark.parametrize(("loopback", "method", "headers", "passes"), CASES)
def test_who_may_come_in(loopback: bool, method: str, headers: dict[str, str], passes: bool) -> None:
    door = HostCheck(loopback, ["Friend.example"])
    if passes:
        door.check(method, headers)
    else:
        with pytest.raises(Forbidden):
            door.check(method, headers)


@pytest.mark.parametrize("name", [b"host", b"origin"])
def test_of_two_nobody_knows_which_is_meant(name: bytes) -> None:
    values = {b"host": b"127.0.0.1:8420", b"origin": b"http://127.0.0.1:8420"}
    given = [*values.items(), (name, b"evil.example")]
    with pytest.raises(ValidationError, match=f"one {name.decode().title()} header"):
        HostCheck(True).check("POST", Headers(raw=given))
    HostCheck(True).check("POST", Headers(raw=given[:2]))


@pytest.mark.parametrize(("host", "expected"), [
    ("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False),
    ("::", False), ("192.168.1.2", False), ("example.org", False), ("", False),
])  # fmt: skip
def test_what_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
