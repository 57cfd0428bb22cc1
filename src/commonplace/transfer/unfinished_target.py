"""A store that a migration has filled in part and cannot go on with: set aside whole, as it may be all there is.

It is not opened as it is: what was forgotten after the part that has arrived would be there again, and no rule is.
"""

from __future__ import annotations

from collections import Counter

from commonplace import plugins
from commonplace.engine import plan_tenants, require_unfinished
from commonplace.stores.file_checks import names_empty_file
from commonplace.transfer.migrate import open_primary, require_primary, store_url
from commonplace.wire.errors import NotFound
from commonplace.wire.record import system_clock
from commonplace.wire.shown_urls import shown_url


class UnfinishedTarget:
    """The place that a migration went to."""

    def __init__(self, given: str) -> None:
        self.url = store_url(given)
        require_primary(self.url, "to")
        if names_empty_file(self.url) or not plugins.store_exists(self.url):
            raise NotFound(f"there is no store at {shown_url(self.url)}; --to names the one that is half filled")

    async def counts(self) -> dict[str, int]:
        """What has arrived; raises Conflict where no migration is unfinished."""
        store = open_primary(self.url, system_clock, "to")
        try:
            await require_unfinished(store)
            counted: Counter[str] = sum([plan.counts async for plan in plan_tenants(store)], Counter())
        finally:
            await store.close()
        return dict(counted)

    def set_aside(self) -> str:
        """Where it is now, as it may be shown."""
        return plugins.set_aside(self.url)
