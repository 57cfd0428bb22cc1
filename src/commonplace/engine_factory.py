"""An engine as a configuration describes it: its store, embedder and judge, and the stores that have copies.

Apart from the SDK, whose models a process that only speaks a protocol need not load.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from commonplace import plugins
from commonplace.config import Config, with_origin
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_embedder, open_recorded
from commonplace.engine import Attachment, Engine, Settings
from commonplace.judges.base import open_judge
from commonplace.stores.base import Primary, StoreSettings
from commonplace.stores.urls import StoreUrl, parse_store_url, store_key
from commonplace.wire.errors import ValidationError
from commonplace.wire.record import Clock, system_clock

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
    settings = settings or Settings()
    settings.folder, settings.redaction, settings.mrp = config.data, config.redaction, config.mrp
    settings.lifecycle, settings.audit = config.lifecycle, config.audit
    settings.governance, settings.policy = config.governance, config.policy
    settings.host_names, settings.recalls_per_minute = config.allowed_hosts, config.recall_budget
    settings.routing = config.routing
    settings.store = store_key(config.store_url) if store is None else ""
    # First: a URL that is wrong opens nothing.
    copies = [*map(parse_store_url, config.replica_urls)]
    for copy in copies:
        plugins.opener(copy.url)
    primary = store or plugins.open_store(config.store_url, clock, StoreSettings(config.index_mb, config.data))
    try:
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
        replicas = attachments(primary.name, copies, others, clock, own)
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


def attachments(
    taken: str, urls: Sequence[StoreUrl], objects: Sequence[MemoryStore], clock: Clock, settings: StoreSettings
) -> list[Attachment]:
    """The stores beside the primary, each under a name of its own."""
    names = {taken}
    made = []
    for url in urls:
        given = replace(settings, timeout=url.timeout or settings.timeout)
        name = _unused(url.name or url.url.partition("://")[0].partition("+")[0], names)
        opened = functools.partial(plugins.open_replica, url.url, clock, given)
        made.append(Attachment(name, opened, given.timeout, url.weight, url.types, url.shown))
    if objects:
        from commonplace.stores.foreign import ForeignStore, listing_of
    for store in objects:
        name = _unused(str(getattr(store, "name", None) or type(store).__name__.lower()), names)
        made.append(Attachment(name, functools.partial(ForeignStore, store, name, listing_of(store)), settings.timeout))
    return made


def _unused(name: str, names: set[str]) -> str:
    number, free = 2, name
    while free in names:
        free, number = f"{name}-{number}", number + 1
    names.add(free)
    return free
