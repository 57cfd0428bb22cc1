"""A URL or the name of a variable from the settings as it may be printed: what is shown ends in logs.

Secrets stand there rightly (a database's password) or by mistake (a key where the name of its variable belongs), so
rather too much is hidden than too little.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_PARAMETER = re.compile(r"[A-Za-z_]{1,32}\Z")
_SECRET = re.compile(
    r"(?i)((?:key|token|pass|passwd|password|passphrase|pwd|secret|auth|credentials?|sig)(_env)?)=([^&]*)"
)
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]*\](?::\d*)?\Z")
#: What follows a colon and is no port may be a password whose host was forgotten.
_PASSWORD = re.compile(r":(?!\d*\Z).*", re.DOTALL)


def shown_url(url: str, known: Collection[str] | None = None) -> str:
    """Without who logs in with what, and without what is secret among its parameters: those that are called so, or,
    where `known` says which there are, all others. `key` of these and what ends in `_env` name a variable."""
    scheme, slashes, place = url.partition("://")
    if place == ":memory:":  # SQLite's name of a place that holds no file
        return url
    if not slashes or not _SCHEME.match(scheme):
        scheme, slashes, place = "", "", url
    address, _, query = place.partition("?")
    # What follows a colon may be a password that holds the question mark.
    if "@" in query and ":" in address.partition("/")[0]:
        address = place
    login, at, _ = address.rpartition("@")
    address, mark, query = place[len(login + at) :].partition("?")
    host, slash, path = address.partition("/")
    if slashes:
        host = _shown_hosts(host)
    elif known is not None:  # `llm:user:password`, where the first colon ends the scheme
        first, colon, rest = host.partition(":")
        host = first + colon + _shown_hosts(rest)
    # A password with a question mark in it leaves parameters here, too.
    address = _SECRET.sub(_shown_secret, f"{host}{slash}{path}")
    if known is not None:
        address = re.sub(r"[#&;=].*", "…", address, flags=re.DOTALL)
        query = "&".join(_shown_parameter(each, known) for each in query.split("&"))
    else:
        query = re.sub(r"://[^&]*@", "://…@", _SECRET.sub(_shown_secret, query))
    return f"{scheme}{slashes}{'…@' if at else ''}{address}{mark}{query}"


def _shown_hosts(hosts: str) -> str:
    """Of one or of several, as PostgreSQL has them."""
    return ",".join(each if _IPV6.match(each) else _PASSWORD.sub(":…", each) for each in hosts.split(","))


def _shown_secret(found: re.Match[str]) -> str:
    return f"{found[1]}={shown_variable(found[3]) if found[2] else '…'}"


def _shown_parameter(given: str, known: Collection[str]) -> str:
    name, equals, value = given.partition("=")
    if not equals or not _PARAMETER.match(name):
        return "…" if given else ""
    if name == "key" and name in known:
        return f"{name}={shown_variable(value)}"
    is_shown = name in known and not _SECRET.match(f"{name}=") and not re.search("[@#;=]", value)
    return f"{name}={value if is_shown else '…'}"


def shown_parameter_name(name: str, url: str) -> str:
    """Quoted where it is one: in a URL whose password was not encoded it may be a part of that."""
    plain = _PARAMETER.match(name) and f"{name}=" in url and "@" not in url.partition("?")[2]
    return repr(name) if plain else "something"


def shown_variable(name: str) -> str:
    """As variables are called; anything else may be the secret that such a variable should hold."""
    return name if _VARIABLE.match(name) else "…"
