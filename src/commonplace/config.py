"""The one place that reads configuration: flags, then COMMONPLACE_* variables, then commonplace.toml."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from commonplace.stores.urls import MAX_TIMEOUT
from commonplace.wire.errors import ValidationError
from commonplace.wire.shown_urls import shown_url

DATABASE = "commonplace.db"
DEFAULT_AGENT = "default"
MIB = 1024 * 1024
_MOST = {"port": 65_535, "routing.timeout": MAX_TIMEOUT}
_LARGEST = 2**31 - 1  # of any other number: bytes of a body, megabytes of memory, requests
_MAY_BE_ZERO = {"port", "rate_limit", "recall_budget", "lifecycle.interval", "lifecycle.capacity"}
_MAY_BE_ZERO |= {"governance.review_days", "governance.auto_allow_after", "oidc.leeway"}
_UNITS = {
    "index_mb": "of megabytes",
    "max_body": "of bytes",
    "request_timeout": "of seconds",
    "routing.timeout": "of seconds",
    "rate_limit": "of requests a second",
    "recall_budget": "of recalls a minute",
}
_PATH_PREFIX = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)+\Z")
_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(slots=True, frozen=True)
class RedactionConfig:
    """The table [redaction]: what happens to secrets in what is written."""

    mode: str = "redact"  # or "reject", or "off"
    marker: str = "angle"  # <REDACTED:label>, or "square" for [REDACTED:label]
    secrets_env: tuple[str, ...] = ()  # names of environment variables whose values are secrets
    secrets_file: str = ""  # one secret to a line, readable by its owner only


@dataclass(slots=True, frozen=True)
class MrpConfig:
    """The table [mrp]: how this server answers the agents of others."""

    name: str = "commonplace"  # the responder's agent_id when no agent is asked
    agent: str = ""  # who answers when a request names nobody; "" is the whole server
    public: bool = False  # where tokens are required: whether peers without one are let in, at level 0
    tenant: str = "local"  # whose memories peers without a token may ask for
    require_identity: bool = False  # whether a requester who proves nothing is refused
    requests_per_minute: int = 120  # of each requester
    decline: str = "none"  # whose requests get no answer: "strangers" are those not known by key or token; or "all"
    origins: tuple[str, ...] = ()  # the addresses peers ask at; none is where it listens, and `allowed_hosts`


@dataclass(slots=True, frozen=True)
class GovernanceConfig:
    """The table [governance]: how reviews are decided, and what becomes of those that are not approved."""

    four_eyes: bool = False  # whether nobody may approve what they asked for or edited
    rejected: str = "keep"  # what a rejected review quotes: kept for the audit, or "erase"
    review_days: int = 0  # after which a review that nobody decided expires; 0 is never
    webhook: str = ""  # an address that is told of new and decided reviews, each message signed
    webhook_secret_env: str = "COMMONPLACE_WEBHOOK_SECRET"  # names the variable with the key of the signatures
    auto_allow_after: int = 0  # approvals in a row, after which a rule's review is no longer asked for; 0 is never


@dataclass(slots=True, frozen=True)
class LimitsConfig:
    """The table [limits]: what a connection may cost the server before anyone knows whose it is."""

    header_bytes: int = 64 * 1024  # of a request's first line and headers, and of what follows a chunked body
    headers: int = 100
    first_byte_seconds: int = 10  # from connecting
    header_seconds: int = 10  # from a request's first byte to the end of its headers
    request_seconds: int = 60  # from its first byte to its last; and for a client to take an answer
    idle_seconds: int = 30  # of a kept connection without a request
    connections: int = 1000
    connections_per_address: int = 500


@dataclass(slots=True, frozen=True)
class LifecycleConfig:
    """The table [lifecycle]: what happens to memories without anyone's asking, in servers."""

    interval: int = 60  # seconds from one look at what is due to the next; 0 never looks
    paused: tuple[str, ...] = ()  # jobs that only run when someone says so
    capacity: int = 200  # memories that consolidation keeps in long-term memory for each agent and person; 0 is all
    expire: tuple[str, ...] = ()  # standing policies, such as "agent=* type=episodic older_than_days=90 action=archive"


@dataclass(slots=True, frozen=True)
class RoutingConfig:
    """The table [routing]: what goes to the stores beside the first."""

    write: str = "fan_out"  # to all of them; or "primary_only"
    recall: str = "fan_out"  # asks all of them; or "primary_only", or "rerank": the first orders what they name
    timeout: int = 2  # seconds that one of them may take for one operation


@dataclass(slots=True, frozen=True)
class AuditConfig:
    """The table [audit]: where the ledger is written down a second time."""

    export: str = ""  # a folder, best one that can only be added to; "" is nowhere
    export_minutes: int = 60  # from one export to the next, in servers


@dataclass(slots=True, frozen=True)
class OidcConfig:
    """The table [oidc]: whose tokens are taken besides our own, and what is read in them."""

    issuer: str = ""  # such as https://login.example.org/realms/team; "" takes no tokens of others
    audience: str = ""  # whom they must be for: this server's address as its clients ask for it; "" is `public_url`
    jwks_url: str = ""  # where the issuer's keys are; "" is where the issuer says they are
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    leeway: int = 30  # seconds that clocks may differ by
    tenant: str = "local"  # of everyone, where no claim says it
    tenant_claim: str = ""
    local_by_claim: bool = False  # whether that claim may say `local`, whose admins run the server
    agents_claim: str = ""  # names or patterns; without such a claim's name everyone may use every agent
    role_claim: str = ""  # reader, writer, reviewer or admin; otherwise the scopes say it
    name_claim: str = "sub"  # by which the ledger knows them


_TABLES: dict[str, type[Any]] = {
    "routing": RoutingConfig,
    "redaction": RedactionConfig,
    "mrp": MrpConfig,
    "governance": GovernanceConfig,
    "limits": LimitsConfig,
    "lifecycle": LifecycleConfig,
    "audit": AuditConfig,
    "oidc": OidcConfig,
}
_CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "redaction": {"mode": ("redact", "reject", "off"), "marker": ("angle", "square")},
    "mrp": {"decline": ("none", "strangers", "all")},
    "governance": {"rejected": ("keep", "erase")},
    "routing": {"write": ("fan_out", "primary_only"), "recall": ("fan_out", "rerank", "primary_only")},
}


REVIEW_PAGE = "/ui/inbox"
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


@dataclass(slots=True, frozen=True)
class Config:
    data: Path
    agent: str = DEFAULT_AGENT
    embedder: str = "encoder"
    judge: str = "auto"  # says whether a memory answers a question; "none" turns it off
    extractor: str = "rules"  # finds what `capture` proposes; "llm://…" has a language model choose, too
    store: str | None = None  # a URL; None is the embedded store in `data`
    stores: tuple[str, ...] = ()  # URLs, the first of which is that store and the others have copies
    index_mb: int = 512  # of memory for what each process keeps of its indexes
    host: str = "127.0.0.1"
    port: int = 8420
    token_required: bool = False  # even on loopback, even while there are no tokens
    max_body: int = 4 * MIB
    request_timeout: int = 60  # seconds
    rate_limit: int = 0  # requests a second for each token; 0 is without limit
    recall_budget: int = 0  # recalls a minute for each agent; 0 is without limit
    public_url: str = ""  # where people reach the page, such as https://memory.example.org; "" is where it listens
    allowed_hosts: tuple[str, ...] = ()  # names the server answers to besides its own
    root_path: str = ""  # what a proxy puts before our paths, such as /memory
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose word on how they were asked is believed
    tls_cert: str = ""  # a file with the server's certificate, in PEM; "" is plain HTTP
    tls_key: str = ""  # the file with its key, unless the certificate's file has it
    traces: str = ""  # "otlp" sends OpenTelemetry traces
    openwop_host: bool = False  # whether the workflows that prove the OpenWOP memory layer can be run
    redaction: RedactionConfig = field(default_factory=RedactionConfig)
    mrp: MrpConfig = field(default_factory=MrpConfig)
    governance: GovernanceConfig = field(default_factory=GovernanceConfig)
    policy: tuple[dict[str, Any], ...] = ()  # the rules of [[policy]]; the engine reads them
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    routing: RoutingConfig = field(default_factory=RoutingConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    oidc: OidcConfig = field(default_factory=OidcConfig)
    notes: tuple[str, ...] = ()  # what was given and is not used, a sentence each
    uses_store_variables: bool = True  # False where one names stores, and the data folder's own is meant

    @property
    def path_prefix(self) -> str:
        """What comes before our paths where people reach them."""
        from urllib.parse import urlsplit  # which most commands do not need

        return (self.root_path or urlsplit(self.public_url).path).rstrip("/")

    def public_address(self, server: str = "") -> str:
        """Where people reach what is served: at `public_url`, else at this address of a server; "" where there is
        neither."""
        return self.public_url.rstrip("/") or (f"{server}{self.path_prefix}" if server else "")

    def review_url(self, server: str = "") -> str:
        """What the id of a review is put behind to lead to its page."""
        base = self.public_address(server)
        return f"{base}{REVIEW_PAGE}" if base else ""

    @property
    def store_url(self) -> str:
        return self.store or _embedded(self.data)

    @property
    def database(self) -> Path:
        """Of the embedded store, where no other is named."""
        return self.data / DATABASE

    @property
    def replica_urls(self) -> tuple[str, ...]:
        return self.stores[1:]


_NOT_SETTINGS = ("data", "policy", "notes", "uses_store_variables")
_DEFAULTS = {each.name: each.default for each in fields(Config) if each.name not in (*_NOT_SETTINGS, *_TABLES)}


def load(*, data: str | Path | None = None, **flags: Any) -> Config:
    """Settings as a caller with these flags gets them; a flag that is None was not given."""
    folder = Path(data or os.environ.get("COMMONPLACE_DATA") or standard_folder()).expanduser()
    if folder.is_file():
        raise ValidationError(f"{folder} is a file; the data directory is a folder", field="data")
    file = _file(folder / "commonplace.toml")
    variables = {k: v for k in _DEFAULTS if (v := os.environ.get(f"COMMONPLACE_{k.upper()}"))}
    given = {k: v for k, v in flags.items() if v is not None}
    settings: dict[str, Any] = file | variables | given
    settings["stores"], is_used = _selected_stores(folder, bool(data), given, variables, file)
    settings["uses_store_variables"] = is_used
    settings["notes"] = () if is_used else (_unused_variable_note(folder, variables),)
    settings.pop("store", None)
    for name in _DEFAULTS.keys() & settings.keys():
        try:
            settings[name] = _typed(name, _DEFAULTS[name], settings[name])
        except ValidationError as fault:
            raise fault if name in given else with_origin(fault, folder) from None
    for name in _TABLES:
        try:
            settings[name] = _table(name, settings.get(name, {}))
        except ValidationError as fault:
            raise with_origin(fault, folder) from None
    settings["policy"] = _rules(settings.get("policy", ()))
    if settings["stores"]:
        settings["store"] = settings["stores"][0]
    if settings.get("traces", "") not in ("", "otlp"):
        raise ValidationError(f"traces must be otlp or nothing, not {_shown(settings['traces'])}", field="traces")
    _check_proxy(settings)
    return Config(folder, **settings)


def _selected_stores(
    folder: Path, is_named: bool, flags: dict[str, Any], variables: dict[str, Any], file: dict[str, Any]
) -> tuple[tuple[str, ...], bool]:
    """The URLs of the stores, and whether those that variables name are used."""
    named = {"flags": _named_stores(flags), "variables": _named_stores(variables), "file": _named_stores(file)}
    if not any(named.values()):
        return (), True
    from commonplace.store_selection import select_stores  # where nothing is named, as mostly, nothing is loaded

    return select_stores(folder, _embedded(folder), is_named=is_named, **named)


def _unused_variable_note(folder: Path, variables: dict[str, Any]) -> str:
    variable = "COMMONPLACE_STORES" if variables.get("stores") else "COMMONPLACE_STORE"
    return (
        f"{variable} is not used: {folder} was named as the data folder, and so its own store is meant; "
        "name the folder by COMMONPLACE_DATA to have both"
    )


def _named_stores(settings: dict[str, Any]) -> tuple[str, ...]:
    stores: tuple[str, ...] = _typed("stores", (), settings.get("stores") or ())
    store: str = _typed("store", None, settings.get("store") or "")
    named = stores or ((store,) if store else ())
    for url in named:
        scheme, _, place = url.partition("://")
        if scheme.startswith("sqlite") and "://" in place:  # two of them, which would be one file of an odd name
            raise ValidationError(
                f"{shown_url(url, ())!r} is more than one store: separate them by spaces, in COMMONPLACE_STORES or by "
                "several --store",
                field="stores",
            )
    return named


def _embedded(folder: Path) -> str:
    from commonplace.stores.urls import file_url

    return file_url("sqlite", folder / DATABASE)


def with_origin(fault: ValidationError, folder: Path) -> ValidationError:
    """What is wrong with a key of a table, said with the file or the variable that says it."""
    variable = f"COMMONPLACE_{fault.details.get('field', '')}".replace(".", "_").upper()
    origin = variable if os.environ.get(variable) else folder / "commonplace.toml"
    return ValidationError(f"{origin}: {fault.message}", **fault.details)


def is_path_prefix(text: str) -> bool:
    """Whether our paths can be put behind it as it is: no slash at its end, nothing that would have to be quoted."""
    return _PATH_PREFIX.match(text) is not None


def _check_proxy(settings: dict[str, Any]) -> None:
    prefix = settings.get("root_path", "").rstrip("/")
    if prefix and not is_path_prefix(prefix):
        raise ValidationError(f"root_path must be a path such as /memory, not {_shown(prefix)}", field="root_path")
    if url := settings.get("public_url", ""):
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(url)
            _ = parts.port  # raises where it cannot be one, such as a password whose host was forgotten
        except ValueError:
            parts = urlsplit("")
        path = parts.path.rstrip("/")
        wrong_path = (path and not is_path_prefix(path)) or "?" in url or "#" in url
        # It is printed, and in links for whoever asks: no password may be in it.
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or wrong_path:
            raise ValidationError(
                f"public_url must be an address such as https://memory.example.org, not {_shown(url)}",
                field="public_url",
            )
        if not parts.netloc.isascii():
            settings["public_url"] = url.replace(parts.netloc, _ascii_netloc(parts.hostname, parts.port), 1)
    for each in settings.get("trusted_proxies", ()):
        from ipaddress import ip_network

        try:
            ip_network(each, strict=False)
        except ValueError:
            raise ValidationError(
                f"trusted_proxies are addresses or networks such as 127.0.0.1 or 10.0.0.0/8, not {_shown(each)}",
                field="trusted_proxies",
            ) from None


def _ascii_netloc(host: str, port: int | None) -> str:
    """As browsers ask for it (IDNA), and as a header can hold it."""
    from unicodedata import normalize

    try:
        found = host.encode("idna").decode("ascii")
        # This codec has the rules of 2003: by those of today the host of `straße` is another one than `strasse`.
        same = found.encode("ascii").decode("idna") == normalize("NFKC", host.lower())
    except UnicodeError:
        same = False
    if not same:
        raise ValidationError(
            "write the host of public_url as browsers ask for it, in ASCII: xn--e1afmkfd.xn--p1ai for пример.рф",
            field="public_url",
        )
    return found if port is None else f"{found}:{port}"


def _rules(given: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(rule, dict) for rule in given):
        raise ValidationError("policy is a list of tables, each begun by a line [[policy]]", field="policy")
    return tuple(given)


def _table(name: str, given: Any) -> Any:
    """A table of the file, each key also settable as COMMONPLACE_TABLE_KEY."""
    kind = _TABLES[name]
    if isinstance(given, kind):
        return given
    if not isinstance(given, dict):
        raise ValidationError(f"[{name}] must be a table", field=name)
    defaults = {each.name: each.default for each in fields(kind)}
    if unknown := sorted(set(given) - set(defaults)):
        raise ValidationError(f"[{name}]: unknown setting {unknown[0]!r}; there are {', '.join(sorted(defaults))}")
    values = dict(given)
    values |= {k: v for k in defaults if (v := os.environ.get(f"COMMONPLACE_{name}_{k}".upper()))}
    for key, value in values.items():
        label = f"{name}.{key}"
        values[key] = _typed(label, defaults[key], value)
        if (allowed := _CHOICES.get(name, {}).get(key)) and values[key] not in allowed:
            raise ValidationError(f"{label} must be {' or '.join(allowed)}, not {_shown(value)}", field=label)
    if values.get("origins"):
        from commonplace.wire.origins import origin_of  # which loads more than most commands need

        for origin in values["origins"]:
            origin_of(origin, f"{name}.origins")
    for algorithm in values.get("algorithms", ()):
        # Whatever a secret signs, whoever can check it can sign, too: a public key would do for one.
        if algorithm not in _ALGORITHMS:
            raise ValidationError(
                f"{name}.algorithms are among {', '.join(_ALGORITHMS)}, not {algorithm[:20]!r}",
                field=f"{name}.algorithms",
            )
    return kind(**values)


def _typed(name: str, default: Any, value: Any) -> Any:
    """A value as its setting's default is: a file and an environment spell them in their own ways."""
    match default:
        case bool():
            return _boolean(name, value)
        case int():
            return _whole_number(name, value)
        case tuple():
            return _names(name, value)
    if not isinstance(value, str) or "\0" in value:
        raise ValidationError(f"{name} must be text, not {_shown(value)}", field=name)
    if name == "agent" and not value:  # nobody can write as that one
        raise ValidationError("agent names no agent; give one, or leave it out", field=name)
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    # URLs may hold commas, and no spaces.
    listed = value.split(None if name == "stores" else ",") if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, str) for each in listed):
        raise ValidationError(f"{name} must be a list of names, not {_shown(value)}", field=name)
    if name == "stores" and not all(map(str.strip, listed)):  # as of a shell's variable that is not set
        raise ValidationError(
            "one of the stores is named by an empty text; give its URL, such as sqlite://./memories.db", field=name
        )
    return tuple(stripped for each in listed if (stripped := each.strip()))


def _shown(value: Any) -> str:
    """Lists and tables are only named: an address with a password may be in one."""
    match value:
        case list() | tuple():
            return "a list" if all(isinstance(each, str) for each in value) else "a list with something else in it"
        case dict():
            return "a table"
        case str():
            return f"{shown_url(value, ())!r:.80}"
    return f"{value!r:.80}"


def standard_folder() -> Path:
    """Where the data is when nothing says otherwise."""
    from platformdirs import user_data_dir

    return Path(user_data_dir("commonplace", appauthor=False))


_MAX_CHARS = 1_048_576


def _file(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_CHARS + 1)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ValidationError(f"cannot read {path}: {error}") from error
    if len(text) > _MAX_CHARS:
        raise ValidationError(f"{path} has more than {_MAX_CHARS:,} characters; is it the file of settings?")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValidationError(f"{path} is not valid TOML: {error}") from error
    known = {*_DEFAULTS, *_TABLES, "policy"}
    unknown = sorted(set(document) - known)
    if unknown:
        raise ValidationError(f"{path}: unknown setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
    try:
        _named_stores(document)  # which are read from each place by itself, also where another's are used
    except ValidationError as fault:
        raise ValidationError(f"{path}: {fault.message}", **fault.details) from None
    return document


def _whole_number(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        wanted = f"a whole number {_UNITS.get(name, '')}".rstrip()
        raise ValidationError(f"{name} must be {wanted}, not {_shown(value)}", field=name) from None
    least = 0 if name in _MAY_BE_ZERO else 1
    if number < least:
        raise ValidationError(f"{name} must be at least {least}, not {number}", field=name)
    most = _MOST.get(name, _LARGEST)
    if number > most:
        raise ValidationError(f"{name} must be at most {most}, not {number}", field=name)
    return number


def _boolean(name: str, value: Any) -> bool:
    found = value if isinstance(value, bool) else _BOOLEANS.get(str(value).lower())
    if found is None:
        raise ValidationError(f"{name} must be true or false, not {_shown(value)}", field=name)
    return found
