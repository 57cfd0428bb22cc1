"""From one store URL to another: opens both, says what will be kept, and has the engine copy and compare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace import plugins
from commonplace.config import DATABASE
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_recorded
from commonplace.engine import Migration, check_target, is_copy, plan_tenants, require_whole
from commonplace.stores.base import Primary, StoreSettings
from commonplace.stores.file_checks import names_empty_file
from commonplace.stores.optional import Progress, SecondVectors
from commonplace.stores.same_store import is_database, is_same
from commonplace.stores.urls import file_url, is_ephemeral
from commonplace.transfer.fidelity import Row, fidelity
from commonplace.transfer.import_file import is_export
from commonplace.wire.errors import NotFound, ValidationError
from commonplace.wire.record import Clock, Principal, system_clock
from commonplace.wire.shown_urls import shown_url

_COPIES_INSTEAD = {
    "from": "--from names the primary whose copies it has",
    "to": "name it as a further --store and run `commonplace stores resync NAME`",
}

#: What libpq also takes for a database, and we do not: its password would be in the name of a folder.
_LIBPQ = re.compile(r"(?i)(^|\s)password\s*=")


def store_url(given: str, option: str = "to") -> str:
    """A store's URL; a folder stands for the embedded store in it, and a file that is there for the one it is."""
    if not given.strip():  # of an unset variable in a script: it must not mean where the shell happens to be
        raise ValidationError(f"--{option} names no store; give a URL or a folder", field=option)
    scheme, _, rest = given.partition("/")[0].partition(":")
    # One that lacks its slashes is refused as a URL: as a folder it would be made, with a password in its name.
    broken = scheme in plugins.BUILT_IN or "@" in rest
    if "://" in given or broken or _LIBPQ.search(given):
        return given
    try:
        path = Path(given).expanduser().absolute()
        is_file = path.is_file()
        if is_file and _is_export(path):
            raise _no_store(option, f"{path} is an export; `commonplace import` takes it in")
        database = path if is_file else path / DATABASE
    except RuntimeError:
        raise _no_store(option, "there is no home folder of that user") from None
    except OSError as error:
        raise _no_store(option, error.strerror or "it cannot be read") from None
    return file_url("sqlite", database)


def _is_export(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_export(file.read(400))
    except OSError:  # which whoever opens it as a store says better
        return False


def _no_store(option: str, why: str) -> ValidationError:
    return ValidationError(f"--{option} names no store: {why}", field=option)


def _scheme(url: str) -> str:
    return url.partition("://")[0]


def _name_same_store(one: str, other: str) -> bool:
    """However it is spelled: another path to the same file, or another address or user of the same database."""
    if is_same(one, other, Path()):
        return True
    if not (is_database(one) and is_database(other)):
        return False
    identity = plugins.database_identity(one)
    return identity is not None and identity == plugins.database_identity(other)


def open_primary(url: str, clock: Clock, field: str) -> Primary:
    store = plugins.open_any(url, clock, StoreSettings())
    if not isinstance(store, Primary):
        raise _keeps_copies(url, field)
    return store


def require_primary(url: str, field: str) -> None:
    """Before anything is opened: a store for copies asks for an embedder or its server, and neither would help."""
    if _scheme(url) in plugins.COPY_SCHEMES:
        raise _keeps_copies(url, field)


def _keeps_copies(url: str, field: str) -> ValidationError:
    return ValidationError(
        "a migration goes from one primary to another (sqlite://, sqlite-vec://, postgresql:// or what a package "
        f"offers), and {_scheme(url)}:// keeps copies",
        hint=_COPIES_INSTEAD[field],
        field=field,
    )


@dataclass(slots=True, frozen=True)
class MigrationReport:
    """What a migration would carry, or has carried."""

    fidelity: list[Row]
    counts: dict[str, int]
    done: dict[str, Any] | None = None
    already_there: bool = False  # by a migration that had come to its end before it could say so

    def document(self) -> dict[str, Any]:
        return {
            "fidelity": self.fidelity,
            "counts": self.counts,
            "dry_run": self.done is None,
            "already_there": self.already_there,
        } | (self.done or {})


class StoreMove:
    """Both ends of a migration, open."""

    def __init__(self, source_url: str, target_url: str, *, clock: Clock = system_clock) -> None:
        self.source_url, self.target_url = store_url(source_url, "from"), store_url(target_url)
        require_primary(self.source_url, "from")
        require_primary(self.target_url, "to")
        if _name_same_store(self.source_url, self.target_url):
            raise ValidationError("--from and --to name the same store", field="to")
        if not plugins.store_exists(self.source_url) or names_empty_file(self.source_url):
            raise NotFound(f"there is no store at {shown_url(self.source_url)}; --from names one, or its folder")
        if is_ephemeral(self.target_url):
            raise ValidationError(
                f"what is copied to {shown_url(self.target_url)} is gone when the command ends",
                hint="--to names a store that stays",
                field="to",
            )
        self._clock = clock
        self._source: Primary = open_primary(self.source_url, clock, "from")
        self._target: Primary | None = None

    async def report(self) -> MigrationReport:
        """What would be kept; makes nothing where the target is not there yet. Refuses one that holds anything or could
        not be made, and a source that is half of a store."""
        await require_whole(self._source)
        there = False
        if self._target is None:
            if plugins.store_exists(self.target_url) and not names_empty_file(self.target_url):
                target = self._open_target()
                there = await is_copy(target, self._source)
                if not there:
                    await check_target(target, self._source)
            else:
                plugins.require_creatable(self.target_url)
        embedder = await self._embedder()
        second = await self._source.second_embedder() if isinstance(self._source, SecondVectors) else None
        info = await self._source.embedder()
        rows = fidelity(self._source, self._target, info, embedder is not None, second)
        counts: dict[str, int] = {}
        async for plan in plan_tenants(self._source):
            for kind, count in plan.counts.items():
                counts[kind] = counts.get(kind, 0) + count
        return MigrationReport(rows, counts, already_there=there)

    async def run(self, who: Principal, report: MigrationReport, progress: Progress | None = None) -> MigrationReport:
        target = self._target or self._open_target()
        done = await Migration(who, self._source, target, await self._embedder()).run(progress)
        return MigrationReport(report.fidelity, done.pop("counts"), done)

    async def close(self) -> None:
        await self._source.close()
        if self._target is not None:
            await self._target.close()

    def _open_target(self) -> Primary:
        self._target = open_primary(self.target_url, self._clock, "to")
        return self._target

    async def _embedder(self) -> Embedder | None:
        info = await self._source.embedder()
        found = open_recorded(info.name) if info is not None else None
        return found if found is not None and info is not None and found.dimension == info.dimension else None
