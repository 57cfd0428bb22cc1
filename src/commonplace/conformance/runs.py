"""The scenarios on the store that a URL names: as a primary where it can be one, else as the replica of one.

They run in a tenant of their own and with agents of their own, on a clock that is set back, so that nothing of the
store's is touched; what they write is deleted again, and it is looked whether it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from uuid import uuid4

from commonplace import plugins
from commonplace.conformance.scenarios import Scenario
from commonplace.conformance.subject import CopySubject, FakeClock, ScenarioFailure, Subject, expect
from commonplace.embedders.base import Embedder
from commonplace.embedders.registry import open_recorded
from commonplace.engine import Attachment, Engine, Forget
from commonplace.stores.base import Primary, Reach, Store, StoreSettings
from commonplace.stores.memory import InMemory
from commonplace.stores.mixins import scan_all
from commonplace.stores.optional import PerAgentStore
from commonplace.stores.urls import parse_store_url
from commonplace.wire.errors import Fault, Unavailable, kind_and_place
from commonplace.wire.record import EVERY_STATUS, Principal, system_clock
from commonplace.wire.shown_urls import shown_url
from commonplace.wire.times import DAY_MS

#: For one operation of a product that has just been started.
_TIMEOUT_SECONDS = 60.0
_BACKDATED_MS = 120 * DAY_MS  # more than all scenarios let pass, so that nothing is ever written in the future


@dataclass(slots=True, frozen=True)
class Outcome:
    scenario: str
    result: Literal["pass", "fail", "skip"]
    why: str = ""

    def document(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}


class ConformanceRun:
    """One store under an engine; each scenario with an agent that nobody else has."""

    def __init__(self, engine: Engine, store: Store, clock: FakeClock, name: str) -> None:
        self.engine, self.store, self.clock, self.name = engine, store, clock, name
        self.role = "primary" if isinstance(store, Primary) else "replica"
        self.left = ""  # why not all is deleted of a scenario that was stopped
        self._who = Principal(tenant=f"conformance-{uuid4().hex[:12]}")

    async def run(self, scenario: Scenario) -> Outcome:
        missing = [need for need in scenario.needs if need not in self.store.capabilities]
        if missing and self.role == "primary":
            return Outcome(scenario.name, "skip", f"it does not declare {', '.join(missing)}")
        subject = self._subject()
        try:
            why = await _failure(scenario.run(subject))
        except BaseException:  # whoever stops it does not want its memories kept, either
            self.left = "that was stopped, too"
            await _failure(self._clear(subject.agent))
            self.left = await _failure(self._clear(subject.agent))  # what was being written has arrived by now
            raise
        left = await _failure(self._clear(subject.agent))
        reasons = "; ".join(filter(None, (why, left)))
        return Outcome(scenario.name, "fail" if reasons else "pass", reasons)

    def _subject(self) -> Subject:
        agent = f"conformance-{uuid4().hex[:12]}"
        if isinstance(self.store, Primary):
            return Subject(self.engine, self.store, self.clock, self._who, agent)
        return CopySubject(self.engine, self.store, self.clock, self._who, agent, self.name)

    async def _clear(self, agent: str) -> None:
        """Delete what a scenario left, whatever has become of it."""
        everything = Reach(self._who.tenant, (agent,), statuses=EVERY_STATUS)
        ids = [memory.id for memory in await scan_all(self.store, everything)]
        if ids:  # by the engine first: a ledger has to know of every erasure, and nothing may be delivered again
            await self.engine.forget(self._who, Forget(agent, ids, hard_delete=True))
        if isinstance(self.store, PerAgentStore):
            await self.store.delete_of(self._who.tenant, agent, ids)
        elif not isinstance(self.store, Primary):
            await self.store.delete(self._who.tenant, ids)
        expect("what is left in it", [memory.id for memory in await scan_all(self.store, everything)], [])

    async def close(self) -> None:
        await self.engine.close()


async def _failure(work: Any) -> str:
    """Why it did not go well; empty where it did."""
    try:
        await work
    except ScenarioFailure as failure:
        return str(failure)
    except Fault as fault:
        return fault.message
    except Exception as error:  # a product's own: it is that store's failure, and the next scenario's turn
        return kind_and_place(error)
    return ""


async def _require_health(store: Store) -> None:
    if (await store.health()).get("status") == "down":
        raise Unavailable("it says that it is down")


async def open_run(url: str, settings: StoreSettings, embedder: Embedder | None) -> ConformanceRun:
    """The store of this URL, ready for scenarios; faults as everywhere where it cannot be opened."""
    given = parse_store_url(url)
    clock = FakeClock(system_clock() - _BACKDATED_MS)
    store = plugins.open_any(given.url, clock, replace(settings, timeout=given.timeout or _TIMEOUT_SECONDS))
    name = given.name or given.url.partition("://")[0].partition("+")[0]
    if isinstance(store, Primary):
        recorded = await store.embedder()
        # Its vectors are of one embedder, and a store of somebody's has one already.
        chosen = embedder if recorded is None else open_recorded(recorded.name) or embedder
        try:
            return ConformanceRun(await Engine.open(store, chosen, clock=clock), store, clock, name)
        except BaseException:
            await store.close()
            raise
    if why := await _failure(_require_health(store)):  # once, and not by every scenario
        await store.close()
        raise Unavailable(f"no scenario was run on {shown_url(url)}: {why}")
    attached: Sequence[Attachment] = [Attachment(name, lambda: store, _TIMEOUT_SECONDS)]
    engine = await Engine.open(InMemory(clock), embedder, clock=clock, replicas=attached)
    await engine.stores.wait_until_open(_TIMEOUT_SECONDS)
    return ConformanceRun(engine, store, clock, name)
