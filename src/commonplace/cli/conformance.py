"""`commonplace conformance`: the paper's sixteen scenarios on a store of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from commonplace.cli import FAILURE, OK
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.interruption import RUN_AGAIN, report_interrupt
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.cli.support.tables import Table

if TYPE_CHECKING:
    from commonplace.conformance import ConformanceRun

commands = Commands()


@commands.add("conformance", existing=False, unused="each scenario has an agent of its own")
def conformance(
    run: Session, store: Annotated[str, option("--store URL", "The store to try: a primary, or one that has copies.")]
) -> Answer:
    """Run the sixteen scenarios of the memorywire paper on a store of yours.

    What they write is in a tenant of its own and deleted again; a primary keeps that tenant's name, its agents' names,
    the ids of what was erased, a decided review and the ledger's entries, but none of the texts. Another server
    has its own tenants: its ledger keeps the entries among its other ones, under agents `conformance-…`. A file,
    folder or tables that are not there are made, with the folders above them, and stay.

    \b
    Example:
      commonplace conformance --store mem0:///srv/mem0
      commonplace conformance --store postgresql://localhost/memories --json
    """
    import asyncio

    progress = _Progress()
    with report_interrupt(progress.stopped):
        found = asyncio.run(_conformance(run, store, progress))
    rows = [[each["scenario"].replace("_", " "), each["result"], each.get("why", "")] for each in found["scenarios"]]
    counts = f"{found['passed']} of {plural(len(rows), 'scenario')} pass on {found['store']}, as a {found['role']}"
    if found["skipped"]:
        counts += f"; {found['skipped']} cannot be run there"
    table = Table(["scenario", "result", "why"], rows, more=counts)
    return Answer(found, table, exit_code=FAILURE if found["failed"] else OK)


@dataclass(slots=True)
class _Progress:
    """How far a run is that may be stopped."""

    tried: ConformanceRun | None = None
    done: int = 0

    def stopped(self) -> str:
        from commonplace.conformance import SCENARIOS

        after = f" after {self.done} of {plural(len(SCENARIOS), 'scenario')}: "
        if self.tried is not None and self.tried.left:
            return f"{after}what the last one wrote is not all deleted ({self.tried.left}); {RUN_AGAIN} for all of them"
        return f"{after}what they wrote is deleted again; {RUN_AGAIN} for all of them"


async def _conformance(run: Session, url: str, sofar: _Progress) -> dict[str, Any]:
    from commonplace import config as configuration
    from commonplace.conformance import SCENARIOS, open_run
    from commonplace.embedders.registry import open_embedder
    from commonplace.stores.base import StoreSettings
    from commonplace.wire.shown_urls import shown_url

    config = configuration.load(data=run.data, agent=run.agent)
    embedder = open_embedder(config.embedder)
    embed = embedder.embed if embedder is not None else None
    settings = StoreSettings(config.index_mb, config.data, embed, config.routing.timeout)
    outcomes = []
    with ProgressBar(f"trying {shown_url(url)}") as progress:
        tried = sofar.tried = await open_run(url, settings, embedder)
        try:
            for done, scenario in enumerate(SCENARIOS, 1):
                outcomes.append((await tried.run(scenario)).document())
                sofar.done = done
                progress(done, len(SCENARIOS))
        finally:
            await tried.close()
    counted = {result: sum(each["result"] == result for each in outcomes) for result in ("pass", "fail", "skip")}
    found = {"store": shown_url(url), "role": tried.role, "scenarios": outcomes}
    return found | {"passed": counted["pass"], "failed": counted["fail"], "skipped": counted["skip"]}
