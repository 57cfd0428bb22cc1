"""Whether there is a file where the URL of an embedded store says, and whether one could be made there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from commonplace.stores.urls import FILE_SCHEMES, database_file
from commonplace.wire.errors import OperatorActionRequired, ValidationError
from commonplace.wire.shown_urls import shown_url

_TRIAL_PREFIX = ".commonplace-"
_ELSEWHERE = "name a place where a file can be written"


def names_missing_file(url: str) -> bool:
    if url.partition("://")[0] not in FILE_SCHEMES:
        return False
    database = database_file(url)
    return database is None or not database.exists()


def names_empty_file(url: str) -> bool:
    """Whether a store may begin in this file, and none has."""
    database = database_file(url) if url.partition("://")[0] in FILE_SCHEMES else None
    return database is not None and database.is_file() and database.stat().st_size == 0


def require_creatable_file(url: str) -> None:
    """Refuse a file in which no store could be begun; nothing that is made for this stays."""
    database = database_file(url)
    if database is None:
        scheme = url.partition("://")[0]
        raise ValidationError(f"{shown_url(url)} names no file; write {scheme}://./memories.db", field="store")
    place = real = Path(os.path.realpath(database))  # a store begins where a link leads
    while not os.path.lexists(place):
        place = place.parent
    if place != real and not place.is_dir():
        raise OperatorActionRequired(f"no store can be begun at {database}: {place} is not a folder", hint=_ELSEWHERE)
    if place == real and not os.access(place, os.W_OK):
        raise _unwritable(database, place, "Permission denied")
    folder = real.parent if place == real else place
    try:
        _make_and_remove(folder, within=folder != real.parent)
    except OSError as error:
        raise _unwritable(database, folder, error.strerror or "unknown reason") from error


def _make_and_remove(folder: Path, *, within: bool) -> None:
    """A file in it, or in a folder in it: rights alone do not tell, as root has them in file systems that take none."""
    if within:
        with tempfile.TemporaryDirectory(prefix=_TRIAL_PREFIX, dir=folder) as made:
            _make_and_remove(Path(made), within=False)
    else:
        handle, path = tempfile.mkstemp(prefix=_TRIAL_PREFIX, dir=folder)
        os.close(handle)
        os.unlink(path)


def _unwritable(database: Path, place: Path, why: str) -> OperatorActionRequired:
    said = f"no store can be begun at {database}: {place} cannot be written ({why})"
    return OperatorActionRequired(said, hint=_ELSEWHERE)
