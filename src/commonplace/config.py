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
_KNOWN = {"agent", "embedder", "store", "index_mb"}


@dataclass(slots=True, frozen=True)
class Config:
    data: Path
    agent: str = DEFAULT_AGENT
    embedder: str = "minilm"
    store: str | None = None  # a URL; None is the embedded store in `data`
    index_mb: int = 512

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite://{(self.data / DATABASE).absolute()}"


def load(*, data: str | Path | None = None, **flags: Any) -> Config:
    """Settings as a caller with these flags gets them; a flag that is None was not given."""
    folder = Path(data or os.environ.get("COMMONPLACE_DATA") or _platform_folder()).expanduser()
    settings: dict[str, Any] = _file(folder / "commonplace.toml")
    settings |= {k: v for k in _KNOWN if (v := os.environ.get(f"COMMONPLACE_{k.upper()}"))}
    settings |= {k: v for k, v in flags.items() if v is not None}
    if "index_mb" in settings:
        settings["index_mb"] = _whole("index_mb", settings["index_mb"])
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
        raise ValidationError(f"{name} must be a whole number of megabytes, not {value!r}") from None
    if number < 1:
        raise ValidationError(f"{name} must be at least 1, not {number}")
    return number
