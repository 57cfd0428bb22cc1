"""A store's URL that cannot be read is refused without a part of its password: what is printed ends in logs."""

from __future__ import annotations

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
