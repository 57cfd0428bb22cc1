"""The one place that reads configuration: flags, then COMMONPLACE_* variables, then commonplace.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.wire.errors import ValidationError

DATABASE = "commonplace.db"
DEFAULT_AGENT = "default"
MIB = 1024 * 1024
_WHOLE = {"index_mb": "of megabytes", "port": "", "max_body": "of bytes", "request_timeout": "of seconds",
          "rate_limit": "of requests a second", "recall_budget": "of recalls a minute"}  # fmt: skip
_MAY_BE_ZERO = {"port", "rate_limit", "recall_budget"}
_KNOWN = {"agent", "embedder", "judge", "store", "host", "token_required", "allowed_hosts", "traces", *_WHOLE}
_TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(slots=True, frozen=True)
class Config:
    data: Path
    agent: str = DEFAULT_AGENT
    embedder: str = "minilm"
    judge: str = "auto"  # says whether a memory answers a question; "none" turns it off
    store: str | None = None  # a URL; None is the embedded store in `data`
    index_mb: int = 512
    host: str = "127.0.0.1"
    port: int = 8420
    token_required: bool = False  # even on loopback, even while there are no tokens
    max_body: int = 4 * MIB
    request_timeout: int = 60  # seconds
    rate_limit: int = 0  # requests a second for each token; 0 is without limit
    recall_budget: int = 0  # recalls a minute for each agent; 0 is without limit
    allowed_hosts: tuple[str, ...] = ()  # names the server answers to besides its own
    traces: str = ""  # "otlp" sends OpenTelemetry traces

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite://{(self.data / DATABASE).absolute()}"


def load(*, data: str | Path | None = None, **flags: Any) -> Config:
    """Settings as a caller with these flags gets them; a flag that is None was not given."""
    folder = Path(data or os.environ.get("COMMONPLACE_DATA") or _platform_folder()).expanduser()
    settings: dict[str, Any] = _file(folder / "commonplace.toml")
    settings |= {k: v for k in _KNOWN if (v := os.environ.get(f"COMMONPLACE_{k.upper()}"))}
    settings |= {k: v for k, v in flags.items() if v is not None}
    for name in _WHOLE.keys() & settings.keys():
        settings[name] = _whole(name, settings[name])
    if "token_required" in settings:
        settings["token_required"] = _truth("token_required", settings["token_required"])
    if "allowed_hosts" in settings:
        names = settings["allowed_hosts"]
        settings["allowed_hosts"] = tuple(
            str(n).strip() for n in (names.split(",") if isinstance(names, str) else names)
        )
    if settings.get("traces", "") not in ("", "otlp"):
        raise ValidationError(f"traces must be otlp or nothing, not {settings['traces']!r}", field="traces")
    return Config(folder, **settings)


def _platform_folder() -> str:
    from platformdirs import user_data_dir

    return user_data_dir("commonplace", appauthor=False)


def _file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ValidationError(f"cannot read {path}: {error}") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValidationError(f"{path} is not valid TOML: {error}") from error
    unknown = sorted(set(document) - _KNOWN)
    if unknown:
        raise ValidationError(f"{path}: unknown setting {unknown[0]!r}; there are {', '.join(sorted(_KNOWN))}")
    return document


def _whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        wanted = f"a whole number {_WHOLE[name]}".rstrip()
        raise ValidationError(f"{name} must be {wanted}, not {value!r}", field=name) from None
    least = 0 if name in _MAY_BE_ZERO else 1
    if number < least:
        raise ValidationError(f"{name} must be at least {least}, not {number}", field=name)
    return number


def _truth(name: str, value: Any) -> bool:
    found = value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
    if found is None:
        raise ValidationError(f"{name} must be true or false, not {value!r}", field=name)
    return found
