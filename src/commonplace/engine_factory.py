"""An engine as a configuration describes it: its store, embedder and judge, and the stores that have copies.

Apart from the SDK, whose models a process that only speaks a protocol need not load.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from commonplace import plugins
from commonplace.config import Config, with_origin
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_embedder, open_recorded
from commonplace.engine import Attachment, Engine, Settings, require_whole
from commonplace.engine.outbox.store_names import (
    WantedName,
    assign_names,
    remember_objects,
    require_unique_name,
    unused_name,
)
from commonplace.judges.base import open_judge
from commonplace.stores.base import Primary, StoreSettings
from commonplace.stores.file_checks import names_empty_file
from commonplace.stores.same_store import is_database, products_folder, require_different
from commonplace.stores.url_checks import require_urls
from commonplace.stores.urls import (
    STORE_NAME_RULE,
    StoreUrl,
    database_file,
    is_ephemeral,
    is_store_name,
    parse_store_url,
    store_key,
)
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Clock, system_clock

log = logging.getLogger("commonplace.config")
_PASSING = re.compile(r"(?i)key|token|password|secret|^embeddings$|^model$")

if TYPE_CHECKING:
    from commonplace.wire.memory_store import MemoryStore


async def open_engine(
    config: Config,
    *,
    store: Primary | None = None,
    embedder: Embedder | None = None,
    clock: Clock = system_clock,
    settings: Settings | None = None,
    others: Sequence[MemoryStore] = (),
) -> Engine:
    """The engine for a configuration; `others` are stores of a program's own to have copies, too. A store that already
    has vectors keeps the embedder that made them."""
    for unused in config.notes:
        log.warning("%s", unused)
    settings = settings or Settings()
    settings.folder, settings.redaction, settings.mrp = config.data, config.redaction, config.mrp
    settings.lifecycle, settings.audit = config.lifecycle, config.audit
    settings.governance, settings.policy = config.governance, config.policy
    settings.host_names, settings.recalls_per_minute = config.allowed_hosts, config.recall_budget
    settings.routing = config.routing
    # First: a URL that is wrong opens nothing.
    require_urls([*(() if store is not None else (config.store_url,)), *config.replica_urls])
    copies = [*map(parse_store_url, config.replica_urls)]
    for copy in copies:
        plugins.opener(copy.url)
    settings.store = store_key(config.store_url) if store is None else ""
    if copies and store is None:
        await _require_different([config.store_url, *config.replica_urls], config.data)
    if len({id(each) for each in others}) < len(others):
        raise ValidationError("one object is among the stores twice; name each store once", field="stores")
    primary = store or plugins.open_store(config.store_url, clock, StoreSettings(config.index_mb, config.data))
    try:
        await require_whole(primary)  # before anything is noted in it
        wanted = embedder or open_embedder(config.embedder)
        recorded = await primary.embedder()
        chosen, note = wanted, None
        if wanted is not None and recorded is not None and wanted.name != recorded.name:
            found = open_recorded(recorded.name)
            if found is not None:  # otherwise recall goes by keywords until a reindex, and says so
                chosen, note = (
                    found,
                    (
                        f"this store's vectors were made by {recorded.name}, which is used; "
                        f"`commonplace reindex` changes to {wanted.name}"
                    ),
                )
        own = StoreSettings(config.index_mb, config.data, chosen.embed if chosen else None, config.routing.timeout)
        names = await assign_names(primary, [wanted_name(copy, config.data) for copy in copies], clock)
        replicas = attachments(primary.name, names, copies, others, clock, own)
        await remember_objects(primary, [each.name for each in replicas[len(names) :]])
        engine = await Engine.open(primary, chosen, clock=clock, settings=settings, replicas=replicas)
        engine.embedder_note = note
        engine.use_judge(lambda: open_judge(config.judge).judge)
        return engine
    except BaseException as error:
        await primary.close()
        # The engine, which reads the standing policies, does not know where they were written.
        if isinstance(error, ValidationError) and str(error.details.get("field", "")).startswith("lifecycle."):
            raise with_origin(error, config.data) from None
        raise


async def _require_different(urls: Sequence[str], folder: Path) -> None:
    """Before anything is written: what is one store by its address, then what a server says to be one database."""
    require_different(urls, folder)
    databases = [url for url in urls if is_database(url)]
    if len(databases) > 1:
        said = await asyncio.gather(*(asyncio.to_thread(plugins.database_identity, url) for url in databases))
        require_different(urls, folder, dict(zip(databases, said, strict=True)))


def attachments(
    primary: str,
    names: Sequence[str],
    urls: Sequence[StoreUrl],
    objects: Sequence[MemoryStore],
    clock: Clock,
    settings: StoreSettings,
) -> list[Attachment]:
    """The stores beside the primary, those with URLs under these names."""
    made = []
    for name, url in zip(names, urls, strict=True):
        given = replace(settings, timeout=url.timeout or settings.timeout)
        opened = functools.partial(plugins.open_replica, url.url, clock, given)
        made.append(Attachment(name, opened, given.timeout, url.weight, url.types, url.shown))
    if objects:
        from commonplace.stores.foreign import ForeignStore, listing_of
    for name, store in zip(_object_names(primary, names, objects), objects, strict=True):
        made.append(Attachment(name, functools.partial(ForeignStore, store, name, listing_of(store)), settings.timeout))
    return made


def _object_names(primary: str, names: Sequence[str], objects: Sequence[MemoryStore]) -> list[str]:
    """What each says itself, or one made from its class."""
    given = [getattr(store, "name", None) or None for store in objects]
    taken = {*names}
    for name, store in zip(given, objects, strict=True):
        if name is not None:
            if not is_store_name(name):  # it is not quoted: what a program puts there may break a terminal or a log
                said = f"the name of an attached {type(store).__name__} must be {STORE_NAME_RULE}"
                raise ValidationError(said, field="stores")
            require_unique_name(name, primary, taken)
            taken.add(name)
    taken.add(primary)
    chosen = []
    for name, store in zip(given, objects, strict=True):
        chosen.append(name or unused_name(type(store).__name__.lower(), taken))
        taken.add(chosen[-1])
    return chosen


def store_address(url: StoreUrl) -> str:
    """A hash of where it is: without passwords, and without settings that make it no other store."""
    if is_ephemeral(url.url):
        return store_key(url.url)
    if (file := database_file(url.url)) is not None:  # one file, by whichever path, link or scheme
        return store_key(f"file://{os.path.realpath(file)}")
    address, _, query = url.url.partition("?")
    login, _, place = address.partition("://")[2].rpartition("@")
    settings = [each for each in parse_qsl(query, keep_blank_values=True) if not _PASSING.search(each[0])]
    return store_key(f"{_kind(url)}://{login.partition(':')[0]}@{place}?{urlencode(sorted(settings))}")


def wanted_name(url: StoreUrl, folder: Path) -> WantedName:
    former = store_key(url.url) if database_file(url.url) is not None else ""
    return WantedName(store_address(url), _kind(url), url.name, former, _is_created_on_open(url.url, folder))


def _is_created_on_open(url: str, folder: Path) -> bool:
    """Whether opening a store makes the file or the folder that it keeps everything in: none is there, and can be."""
    try:
        if (place := database_file(url)) is not None:
            is_there = place.exists() and not names_empty_file(url)
        elif (place := products_folder(url, folder)) is not None:
            is_there = place.exists() and any(place.iterdir())
        else:
            return False
        above = next((each for each in (place, *place.absolute().parents) if each.exists()), place)
        return not is_there and (above == place or above.is_dir()) and os.access(above, os.W_OK)
    except OSError:  # opening it says why
        return False


def _kind(url: StoreUrl) -> str:
    return url.url.partition("://")[0].partition("+")[0]
