"""What a store's URL says: where it is, the settings of its own, and how it is used beside others (its name, timeout,
weight and types). No file is looked at."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from commonplace.wire.canonical import sha256_hex
from commonplace.wire.errors import OperatorActionRequired, ValidationError
from commonplace.wire.record import MEMORY_TYPES
from commonplace.wire.shown_urls import shown_url, shown_variable

MAX_TIMEOUT = 600  # seconds that one operation of a store beside the first may be given
_OPTIONS = ("name", "timeout", "weight", "types")
#: Of the embedded stores, each of which is a file.
FILE_SCHEMES = ("sqlite", "sqlite-vec")
#: Of the stores in a database of PostgreSQL.
DATABASE_SCHEMES = ("postgresql", "postgres", "pgvector")
#: Of copies in one.
MEM0_IN_DATABASE = "mem0+postgresql"
_PATHS = (*FILE_SCHEMES, "mem0", "cognee")
_ENCODED_QUESTION_MARK = re.compile("%(?:25)*3[Ff]")  # a question mark in a path, and what would be read as one there
#: What the URLs of our own stores may say of themselves; PostgreSQL's are libpq's, which checks them.
_SETTINGS: dict[str, tuple[str, ...]] = {
    "sqlite": (),
    "sqlite-vec": (),
    "memory": (),
    "memorywire+http": ("token_env",),
    "memorywire+https": ("token_env",),
    "mem0": (),
    "letta": ("embeddings", "model", "token_env"),
    "letta+https": ("embeddings", "model", "token_env"),
    "cognee": ("embeddings", "model"),
}
#: What may follow the scheme of each that is no database.
_EXAMPLES = {
    **dict.fromkeys(FILE_SCHEMES, "./memories.db"),
    "mem0": "default",
    "cognee": "default",
    "letta": "127.0.0.1:8283",
    "letta+https": "letta.example",
    "memorywire+http": "127.0.0.1:8420",
    "memorywire+https": "memory.example",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
STORE_NAME_RULE = "letters, digits, dots, dashes and underscores, at most 64, the first a letter or a digit"
#: Those that name a server, with who logs in and their password before its name.
_SERVERS = (*DATABASE_SCHEMES, MEM0_IN_DATABASE, "memorywire+http", "memorywire+https", "letta", "letta+https")
ENCODED = "/ ? # % @ and spaces in a user name or password must be percent-encoded, such as %2F for /"
_LAST_PORT = 65535
NO_PORT = f"its port is no number from 1 to {_LAST_PORT}"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_LOGIN = r"(?:[^\s/?#%@]|%(?!00)[0-9A-Fa-f]{2})*@"
_HOST = r"(?:\[[^\]\s@/]*\]|[^\s@/:,\[\]]*)(?::\d*)?"
_PLACE = re.compile(rf"(?:{_LOGIN})?{_HOST}(?:,{_HOST})*(?:/[^@]*)?\Z")
# libpq's sslkey is the path of a file.
_SECRET_GIVEN = re.compile(r"(?i)(?:(?<!ssl)key|token|password|secret)=[^&]|://[^&/]*:[^&/]*@|\bcp_[a-z0-9]+_")


@dataclass(slots=True, frozen=True)
class StoreUrl:
    url: str  # without the options that are not the store's own
    name: str | None = None
    timeout: float | None = None  # seconds
    weight: float = 1.0
    types: frozenset[str] | None = None

    @property
    def shown(self) -> str:
        return shown_url(self.url)


def holds_secret(url: str) -> bool:
    """Whether a password or a token is in it, not only the name of a variable that holds one."""
    place = url.partition("://")[2]
    authority = re.split("[/?#]", place, maxsplit=1)[0]
    # A password that is not percent-encoded may go on behind the authority, and behind a space in what seems to be
    # another URL: rather too much is refused than too little.
    login = authority.rpartition("@")[0] if "@" in authority else authority
    has_password = "@" in place and ":" in login if has_scheme(url) else "@" in url
    return has_password or _SECRET_GIVEN.search(unquote(url)) is not None


def is_store_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.match(name) is not None


def has_scheme(url: str) -> bool:
    scheme, slashes, _ = url.partition("://")
    return bool(slashes and _SCHEME.match(scheme))


def check_login(url: str) -> None:
    """Refuse one whose user name or password would be taken for another part of it, and then be shown as that."""
    scheme, _, place = url.partition("://")
    if scheme not in _SERVERS or "@" not in place:
        return
    address, _, query = place.partition("?")
    settings = all("=" in each.partition("@")[0] for each in query.split("&") if "@" in each)
    if not _PLACE.match(address) or not settings:
        raise ValidationError(f"the URL of the {scheme}:// store cannot be read", hint=ENCODED, field="stores")


def _check_ports(url: str) -> None:
    """Refuse one whose port is none: opening it would fail as if its server were away, and be tried again for ever.
    It is not quoted, as it may be what a password begins with."""
    scheme, _, place = url.partition("://")
    if scheme not in _SERVERS:
        return
    hosts = re.split("[/?#]", place, maxsplit=1)[0].rpartition("@")[2]
    for host in hosts.split(","):
        if "[" in host and "]" not in host:
            continue  # no address either, which opening it says
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not is_port(port):
            raise ValidationError(
                f"the URL of the {scheme}:// store cannot be read: {NO_PORT}", hint=ENCODED, field="stores"
            )


def is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(_LAST_PORT)) and 0 < int(text) <= _LAST_PORT


def parse_store_url(url: str) -> StoreUrl:
    check_login(url)
    address, query = _split_query(url)
    given: dict[str, str] = {}
    rest: list[str] = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _OPTIONS:
            given[name] = value
        else:
            rest.append(f"{quote(name, safe='')}={quote(value, safe=':/@,')}")
    plain = f"{address}?{'&'.join(rest)}" if rest else address
    if "name" in given and not is_store_name(given["name"]):
        raise _wrong("name", given["name"], STORE_NAME_RULE)
    types = None
    if "types" in given:
        types = frozenset(filter(None, given["types"].split(",")))
        if not types or not types <= set(MEMORY_TYPES):
            raise _wrong("types", given["types"], f"some of {','.join(MEMORY_TYPES)}")
    timeout = _number(given, "timeout", float(MAX_TIMEOUT))
    weight = _number(given, "weight", 1000.0)
    return StoreUrl(plain, given.get("name"), timeout, 1.0 if weight is None else weight, types)


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """A store's URL without its options, and these; one that the store does not know is the user's mistake."""
    check_login(url)
    _check_ports(url)
    scheme = url.partition("://")[0]
    address, query = _split_query(url)
    given = dict(parse_qsl(query, keep_blank_values=True))
    known = _SETTINGS.get(scheme, tuple(given))
    for name in given:
        if name not in known:
            own = f"there are {', '.join(known)}" if known else "it has none of its own"
            beside = f"; {', '.join(_OPTIONS)} are for stores after the first"
            given_name = "something" if "@" in query else repr(name)  # which may be a part of a password
            raise ValidationError(f"{given_name} is no setting of {scheme}://: {own}{beside}", field="stores")
    return address, given


def _split_query(url: str) -> tuple[str, str]:
    """A URL up to its settings, and these. A path may have question marks in it: its settings begin at the first behind
    which there is nothing but known ones, or else, to be refused, at the last behind which there could be some."""
    scheme = url.partition("://")[0]
    if scheme not in _PATHS:
        address, _, query = url.partition("?")
        return address, query
    known = (*_OPTIONS, *_SETTINGS[scheme])
    marks = [at for at, each in enumerate(url) if each == "?"]
    for at in marks:
        if all(each.partition("=")[0] in known and "=" in each for each in url[at + 1 :].split("&")):
            return url[:at], url[at + 1 :]
    last = url[marks[-1] + 1 :] if marks else ""
    return (url[: marks[-1]], last) if "=" in last and "/" not in last else (url, "")


def quote_path(path: str) -> str:
    """A path as the URL of a store has it. Nothing else is encoded, so that whatever was written before is right."""
    return _ENCODED_QUESTION_MARK.sub(lambda found: f"%25{found[0][1:]}", path).replace("?", "%3F")


def _unquote_path(place: str) -> str:
    return _ENCODED_QUESTION_MARK.sub(lambda found: f"%{found[0][3:]}" if found[0].startswith("%25") else "?", place)


def file_url(scheme: str, file: Path) -> str:
    """The URL of an embedded store in this file."""
    return f"{scheme}://{quote_path(str(file.absolute()))}"


def absolute_url(url: str, folder: Path) -> str:
    """A URL as it is right wherever a command is run: the path of an embedded store begins at this folder."""
    scheme, _, place = url.partition("://")
    if scheme not in FILE_SCHEMES or not place or place[0] in "/~" or is_ephemeral(parse_store_url(url).url):
        return url
    return f"{scheme}://{os.path.normpath(Path(quote_path(str(folder.absolute())), place))}"


def token_of(options: dict[str, str]) -> str | None:
    """What the variable that `token_env` names holds: a token in the URL itself would be shown wherever that is."""
    variable = options.get("token_env")
    token = os.environ.get(variable) if variable else None
    if variable and not token:
        raise OperatorActionRequired(
            f"the environment variable {shown_variable(variable)}, which token_env names and which should hold the "
            "token, is not set"
        )
    return token


def token_advice(options: dict[str, str], wanted: str) -> str:
    """What to do where a server does not take the token that `token_env` names, or wants one where it names none;
    `wanted` is the token that it takes."""
    if variable := options.get("token_env"):
        return f"set {shown_variable(variable)}, which token_env names, to {wanted}"
    return f"put token_env=NAME into its URL, the variable NAME holding {wanted}"


def folder_of(place: str, parent: Path | None) -> Path | None:
    """The folder that a URL names after its scheme: an absolute one, or one within `parent`; None where it is neither,
    for a name must not lead out of that."""
    place = _unquote_path(place)
    if place.startswith("/"):
        return Path("/" + place.lstrip("/"))
    is_name = place and "/" not in place and place not in (".", "..")
    return parent / place if parent is not None and is_name else None


def database_file(url: str) -> Path | None:
    """The file that an embedded store keeps everything in; None of any other store."""
    scheme, _, place = split_options(url)[0].partition("://")
    if scheme not in FILE_SCHEMES or place in ("", ":memory:"):
        return None
    path = _unquote_path(place)
    return _expanded(Path("/" + path.lstrip("/")) if path.startswith("/") else Path(path), url)


def _expanded(path: Path, url: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValidationError(
            f"cannot use {shown_url(url)}: there is no home folder of that user", field="store"
        ) from None


def require_place(url: str) -> None:
    """Refuse a URL of ours that names no file, folder or server; of a database libpq knows whether it does."""
    scheme, _, place = split_options(url)[0].partition("://")
    if scheme in FILE_SCHEMES:
        kind, is_named = "file", place != ""
    elif scheme in ("mem0", "cognee"):
        kind, is_named = "folder", folder_of(place, Path()) is not None
    else:
        from commonplace.wire.http_client import is_server_url

        kind, is_named = "server", scheme not in _EXAMPLES or is_server_url(f"http://{place}")
    if not is_named:
        said = f"{shown_url(url)} names no {kind}; write for example {scheme}://{_EXAMPLES[scheme]}"
        raise ValidationError(said, field="stores")


def is_ephemeral(url: str) -> bool:
    """Whether what is written to it is gone with the process."""
    scheme, _, place = url.partition("://")
    return scheme == "memory" or (scheme in FILE_SCHEMES and place == ":memory:")


def store_key(url: str) -> str:
    """What tells it from other stores and gives none of its secrets away; "" where it is gone with the process."""
    if is_ephemeral(url):
        return ""
    scheme, _, place = url.partition("://")
    if scheme in FILE_SCHEMES:  # the same name is another file in another folder
        place = str(_expanded(Path(place), url).absolute())
    return sha256_hex(f"{scheme}://{place}".encode("utf-8", "surrogateescape"))


def _number(given: dict[str, str], name: str, most: float) -> float | None:
    if name not in given:
        return None
    try:
        number = float(given[name])
    except ValueError:
        number = 0.0
    if not 0 < number <= most:
        raise _wrong(name, given[name], f"a number above 0, up to {most:g}")
    return number


def _wrong(name: str, value: str, wanted: str) -> ValidationError:
    shown = name if "@" in value else f"{name}={value!r}"  # what comes before an @ may be a part of a password
    return ValidationError(f"{shown} in a store's URL must be {wanted}", field="stores")
