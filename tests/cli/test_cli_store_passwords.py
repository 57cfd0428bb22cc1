"""Passwords in URLs reach neither what is printed, which ends in logs, nor the settings of clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FIRST, SECOND = "s3kr", "gehe1m"
#: What stands between the two halves of the password and must not stand there as it is.
BETWEEN = ("/", "?", "#", "%", "%00", "@", " ", "/?", "?a=", "?name=", "?timeout=", "?schema=", "?pool=", "/x?colour=")
NETWORKED = ("postgresql", "postgres", "pgvector", "mem0+postgresql", "memorywire+http", "letta", "letta+https")
URLS = [f"postgresql://alice:{FIRST}{mark}{SECOND}@db.invalid/memories" for mark in BETWEEN]
URLS += [f"postgresql://alice:12{mark}{SECOND}@db.invalid/memories" for mark in BETWEEN if mark != "%00"]
URLS += [f"{scheme}://alice:{FIRST}/{SECOND}@db.invalid/memories" for scheme in NETWORKED]
URLS += [f"{scheme}://alice:{FIRST}?{SECOND}=1@db.invalid/memories" for scheme in NETWORKED]
URLS += [
    f"postgresql:/alice:{FIRST}@db.invalid/memories",
    f"postgresql:alice:{FIRST}@db.invalid/memories?options=x://",
    f"alice:{FIRST}@db.invalid/memories",
    f"postgresql://alice:{FIRST}@[db.invalid/memories",
    f"postgresql://alice:{FIRST}@db.invalid℀/memories",
    f"postgresql://alice:{FIRST}@db.invalid:none/memories",
    f"memorywire+http://alice:{FIRST}@db.invalid:99999",
]
WAYS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "status": ("STORE", ("status",)),
    "status --json": ("STORE", ("status", "--json")),
    "serve": ("STORE", ("serve", "--port", "0")),
    "serve --store": (None, ("serve", "--port", "0", "--store", "{url}")),
    "stores": ("STORE", ("stores",)),
    "doctor": ("STORE", ("doctor", "--json")),
    "remember": ("STORE", ("remember", "Alice drinks tea")),
    "migrate --from": (None, ("migrate", "--from", "{url}", "--to", "{folder}", "--json")),
    "migrate --to": (None, ("migrate", "--from", "{data}", "--to", "{url}", "--yes")),
    "conformance": (None, ("conformance", "--store", "{url}")),
    "a copy, status": ("STORES", ("status", "--json")),
    "a copy, stores": ("STORES", ("stores", "--json")),
    "a copy, doctor": ("STORES", ("doctor",)),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_part_of_a_password_is_printed(
    way: str, cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch, remember: Callable[..., str]
) -> None:
    remember("Alice drinks tea")
    monkeypatch.chdir(data.parent)
    variable, arguments = WAYS[way]
    for url in URLS:
        if variable is not None:
            first = f"sqlite://{data}/commonplace.db " if variable == "STORES" else ""
            monkeypatch.setenv(f"COMMONPLACE_{variable}", first + url)
        filled = [each.format(url=url, folder=data.parent / "new", data=data) for each in arguments]
        ran = cli(*filled)
        printed = ran.out + ran.err
        assert FIRST not in printed, f"{way}: {url}"
        assert SECOND not in printed, f"{way}: {url}"
        assert ran.code != 0 or variable == "STORES", f"{way}: {url} was taken"  # the first works without its copy
        assert "No such" not in printed, f"{way} is no way any more"
    assert not [path for path in data.parent.rglob("*") if FIRST in path.name or SECOND in path.name]


def test_it_is_said_what_to_write_instead(cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for mark in ("/", "?", "#", "%", "@", " "):
        monkeypatch.setenv("COMMONPLACE_STORE", f"postgresql://alice:{FIRST}{mark}{SECOND}@db.invalid/memories")
        ran = cli("status")
        assert ran.code == 1
        assert "/ ? # % @ and spaces in a user name or password must be percent-encoded" in ran.err, mark


STORES_WITH_SECRETS = [
    f"postgresql://db/mem?password={SECOND}",
    f"postgresql://db/mem?sslmode=require&SSLPassword={SECOND}",
    f"postgresql://db/mem?p%61ssword={SECOND}",
    f"postgresql://alice:{SECOND}@db/mem",
    f"memorywire+https://h/?api_key={SECOND}",
    f"theirs://h?backing=postgresql://alice:{SECOND}@db",
    *URLS,
]
ADDRESSES_WITH_SECRETS = [
    f"http://alice:{SECOND}@h/mcp",
    f"http://alice:{SECOND}@h:99999/mcp",
    f"http://h/mcp?token=cp_{SECOND}",
    f"https://h/mcp?a=b&access_token={SECOND}",
    f"https://h/mcp#token={SECOND}",
    "https://h/cp_" + f"abcdefghijkl_{SECOND}/mcp",
    f"ftp://alice:{SECOND}@h/mcp",
]
CONNECTING = (
    ("mcp", "--json"),
    ("install", "--client", "claude-code", "--scope", "project", "--yes"),
    ("install", "--client", "codex", "--print"),
    ("install", "--client", "claude-code", "--hooks", "--scope", "project", "--yes"),
    ("install", "--client", "claude-code", "--hooks", "--print"),
)


@pytest.mark.parametrize("variable", ["COMMONPLACE_STORE", "COMMONPLACE_STORES"])
@pytest.mark.parametrize("arguments", CONNECTING, ids=" ".join)
def test_no_client_is_told_the_password_of_a_store(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in STORES_WITH_SECRETS:
        monkeypatch.setenv(variable, f"memory:// {url}")
        ran = cli(*arguments)
        assert (ran.code, "commonplace.toml" in ran.out + ran.err) == (1, True), url
        assert not re.search(f"{FIRST}|{SECOND}", ran.out + ran.err), url
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ADDRESSES_WITH_SECRETS)
def test_no_client_is_told_a_secret_in_an_address(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for more in (["--print"], ["--yes"], ["--yes", "--json"]):
        ran = cli("install", "--client", "cursor", "--scope", "project", "--url", url, *more)
        said = ran.out + ran.err
        assert (ran.code, "--token-env" in said, SECOND in said) == (1, True, False), ran
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://alice@db:5432/mem",
        "postgresql://db/mem?sslkey=/keys/mine.pem",
        "memorywire+https://h/?token_env=TOKEN",
        "postgresql://[::1]:5432/mem?password=",
        "theirs://h/a@b",
    ],
)
def test_a_store_without_a_secret_is_told(cli: Any, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("COMMONPLACE_STORE", url)
    assert cli("mcp", "--json").json["mcpServers"]["commonplace"]["env"]["COMMONPLACE_STORE"] == url
