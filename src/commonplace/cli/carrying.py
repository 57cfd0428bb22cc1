"""What this shell says about which memory is meant, in a form that a client can be told: it inherits none of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from commonplace import config
from commonplace.wire.errors import ValidationError

_FILES = ("sqlite", "sqlite-vec")


def data_directory(given: str | Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The directory to name; None where everyone on this machine finds the same one unasked."""
    said = given or environment.get("COMMONPLACE_DATA")
    if not said and environment.get("XDG_DATA_HOME"):
        said = config.standard_folder()
    return str(Path(said).expanduser().absolute()) if said else None


def agent(given: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    return given or environment.get("COMMONPLACE_AGENT") or None


def variables(environment: Mapping[str, str] = os.environ) -> tuple[tuple[str, str], ...]:
    """What has no flag: the store, where a variable names it."""
    store = environment.get("COMMONPLACE_STORE")
    if not store:
        return ()
    scheme, _, place = store.partition("://")
    if scheme in _FILES and place and place != ":memory:" and not place.startswith("/"):
        store = f"{scheme}://{Path(place).expanduser().absolute()}"
    elif scheme not in _FILES and _has_password(store):
        raise ValidationError(
            "COMMONPLACE_STORE has a password in it, which does not belong into a client's settings: write it as "
            "`store` into commonplace.toml in the data directory, unset the variable, and run this again",
            field="store",
        )
    return (("COMMONPLACE_STORE", store),)


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return "@" in url
