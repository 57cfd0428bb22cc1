"""When an issuer's keys are fetched, and how long they are believed."""

from __future__ import annotations

import asyncio
from email.message import Message
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from other_protocol import GREETINGS, run_other_protocol
from token_issuer import run_issuer

from commonplace.serve.jwks import LIFE_SECONDS, MAX_TRIES, STALE_SECONDS, TRIES_SECONDS, KeySet, fetch_json
from commonplace.wire.errors import Unavailable, ValidationError

ISSUER = "https://login.example.org/realms/team"


class Remote:
    """An issuer, and a clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.keys: Any = [{"kid": "a", "kty": "RSA"}]
        self.asked: list[str] = []
        self.failing: Exception | None = None
        self.set = KeySet(ISSUER, f"{ISSUER}/keys", fetch=self.fetch, now=lambda: self.now)

    def fetch(self, url: str) -> dict[str, Any]:
        self.asked.append(url)
        if self.failing is not None:
            raise self.failing
        return {"keys": self.keys}

    def find(self, id: str | None) -> Any:
        return asyncio.run(self.set.find(id))


def test_keys_are_fetched_once_and_kept() -> None:
    remote = Remote()
    for _ in range(5):
        assert remote.find("a")["kid"] == "a"
    remote.now += LIFE_SECONDS
    assert remote.find("a")
    assert len(remote.asked) == 1
    remote.now += 1
    remote.keys = [{"kid": "b"}]
    assert remote.find("a") is None, "a key that was taken back is not believed for ever"
    assert remote.find("b")
    assert len(remote.asked) == 2


def test_a_new_key_is_found_and_made_up_ones_cost_nothing() -> None:
    remote = Remote()
    assert remote.find("a")
    remote.keys = [{"kid": "a"}, {"kid": "new"}]
    assert remote.find("new")
    assert len(remote.asked) == 2
    for n in range(1000):
        assert remote.find(f"made up {n}") is None
    assert len(remote.asked) == MAX_TRIES
    remote.keys = [{"kid": "newer"}]
    remote.now += TRIES_SECONDS
    assert remote.find("newer") is None
    remote.now += 0.001
    assert remote.find("newer")
    assert len(remote.asked) == MAX_TRIES + 1


def test_many_at_once_ask_once() -> None:
    remote = Remote()

    async def together() -> list[Any]:
        return await asyncio.gather(*(remote.set.find("a") for _ in range(20)))

    assert len(asyncio.run(together())) == 20
    assert len(remote.asked) == 1


def test_an_issuer_that_is_down_is_believed_for_an_hour() -> None:
    remote = Remote()
    assert remote.find("a")
    remote.failing = URLError("connection refused")
    remote.now += STALE_SECONDS
    assert remote.find("a")
    remote.now += 1
    with pytest.raises(Unavailable, match=f"the keys of {ISSUER} could not be fetched: connection refused"):
        remote.find("a")
    remote.failing = None
    assert remote.find("a")


@pytest.mark.parametrize(("failing", "says"), [
    (HTTPError(ISSUER, 404, "", Message(), None), "it answered 404"), (ValueError("no JSON object"), "no JSON object"),
    (TimeoutError("timed out"), "timed out"), (RecursionError(), "RecursionError"),
])  # fmt: skip
def test_what_went_wrong_is_said(failing: Exception, says: str) -> None:
    remote = Remote()
    remote.failing = failing
    with pytest.raises(Unavailable, match=says):
        remote.find("a")


@pytest.mark.parametrize("keys", [None, {}, "x", 1])
def test_what_is_no_list_of_keys_is_refused(keys: Any) -> None:
    remote = Remote()
    remote.keys = keys
    with pytest.raises(Unavailable, match="there is no list of keys"):
        remote.find("a")


def test_keys_for_something_else_are_not_taken() -> None:
    remote = Remote()
    remote.keys = [{"kid": "a", "use": "enc"}, {"kid": "b", "use": "sig"}, "x", None]
    assert remote.find("a") is None
    assert remote.find("b")


def test_a_token_that_names_no_key_means_the_only_one() -> None:
    remote = Remote()
    assert remote.find(None)["kid"] == "a"
    remote = Remote()
    remote.keys = [{"kid": "a"}, {"kid": "b"}]
    assert remote.find(None) is None


@pytest.mark.parametrize("url", [
    "http://login.example.org", "file:///etc/passwd", "login.example.org", "", "https://", "ftp://x", "http://[oops",
])  # fmt: skip
def test_keys_come_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(ValidationError, match="must be an address such as https"):
        KeySet(url)
    with pytest.raises(ValidationError, match="must be an address such as https"):
        KeySet(ISSUER, url or "x")
    KeySet("http://127.0.0.1:9000")


def test_where_the_keys_are_is_asked_of_the_issuer() -> None:
    with run_issuer() as issuer:
        assert asyncio.run(KeySet(issuer.url).find("first"))
        assert list(issuer.asked) == ["/.well-known/openid-configuration", "/keys"]


def test_an_issuer_of_oauth_says_it_elsewhere() -> None:
    asked = []

    def fetch(url: str) -> dict[str, Any]:
        asked.append(url)
        if "openid" in url:
            raise HTTPError(url, 404, "", Message(), None)
        return {"keys": [{"kid": "a"}]} if url.endswith("/keys") else {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}

    assert asyncio.run(KeySet(ISSUER, fetch=fetch).find("a"))
    assert asked == [
        f"{ISSUER}/.well-known/openid-configuration",
        "https://login.example.org/.well-known/oauth-authorization-server/realms/team", f"{ISSUER}/keys",
    ]  # fmt: skip


@pytest.mark.parametrize(("said", "says"), [
    ({"issuer": "https://evil.example", "jwks_uri": f"{ISSUER}/keys"}, "it calls itself 'https://evil.example'"),
    ({"issuer": ISSUER, "jwks_uri": "http://evil.example/keys"}, "jwks_uri must be an address such as https"),
    ({"issuer": ISSUER}, "jwks_uri must be an address"),
])  # fmt: skip
def test_an_issuer_that_says_something_else_is_not_believed(said: dict[str, Any], says: str) -> None:
    with pytest.raises(Unavailable, match=says):
        asyncio.run(KeySet(ISSUER, fetch=lambda url: said).find("a"))


@pytest.mark.parametrize("said", GREETINGS)
def test_an_issuer_that_speaks_something_else_or_stops_halfway_is_unavailable(said: bytes) -> None:
    with run_other_protocol(said) as port:
        keys = KeySet(f"http://127.0.0.1:{port}")
        with pytest.raises(Unavailable, match=f"the keys of http://127.0.0.1:{port} could not be fetched: .*"):
            asyncio.run(keys.find("a"))


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_an_issuer_on_this_machine_is_asked_by_no_way_around(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain HTTP is for this machine because nobody is on the way: a proxy would be."""
    with run_issuer() as issuer, run_issuer() as proxy:
        monkeypatch.setenv(name, proxy.url)
        assert asyncio.run(KeySet(issuer.url).find("first"))
        assert proxy.asked == {}


def test_an_answer_is_read_up_to_a_limit_and_no_redirect_is_followed() -> None:
    with run_issuer() as issuer:
        issuer.keys = [{"kid": "a", "x": "y" * 300_000}]
        with pytest.raises(ValueError, match="more than 262,144 bytes"):
            fetch_json(f"{issuer.url}/keys")
        with pytest.raises(HTTPError) as refused:
            fetch_json(f"{issuer.url}/nothing")
        refused.value.close()
