"""The stores of an installation, for whoever looks after them: how each is, how far behind, and making it equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.engine.checks import require_operator
from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.outbox.answers import read_names, read_tenants
from commonplace.engine.outbox.deliveries import is_ahead, kind_of
from commonplace.engine.outbox.discard import discard
from commonplace.engine.outbox.replicas import Replica
from commonplace.engine.outbox.resync import TIMEOUT_SECONDS, Resync
from commonplace.engine.outbox.resync_notices import begin_resync, clear_resync_notices, resync_advice
from commonplace.engine.outbox.shown_problems import shown_sentences, shown_stores
from commonplace.stores.base import Reach, Store
from commonplace.stores.optional import AgentListing, Finding, Progress, RecordKinds, TenantListing
from commonplace.wire.errors import Conflict, NotFound, Unavailable
from commonplace.wire.filters import Condition
from commonplace.wire.record import ALL_AGENTS, Principal


class Stores:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def list(self, who: Principal) -> list[dict[str, Any]]:
        """The primary, then each replica: its state, what it can do, what waits for it, since when and why. Each is
        asked how it is."""
        primary = self._core.primary
        await self._core.outbox.replicas.probe()
        health = await primary.health()
        first = {
            "name": primary.name,
            "role": "primary",
            "status": health.get("status", "ok"),
            "waiting": 0,
            "failing": 0,
        }
        shown: list[dict[str, Any]] = [{**first, "capabilities": sorted(primary.capabilities)}]
        for replica in self._core.outbox.replicas:
            shown.append(await self._of(who, replica))
        return shown_stores(who, [*shown, *await self._unconfigured(who)])

    def failing(self, who: Principal | None) -> Sequence[str]:
        """A sentence for each that does not work, as far as this principal is told."""
        said = []
        for replica in self._core.outbox.replicas:
            if (state := replica.state())["status"] != "ok":
                how = "takes what is written, but" if replica.fails_searches_alone else "does not answer:"
                said.append(f"the store {replica.name} {how} {state.get('error', 'it is still starting')}")
        return shown_sentences(who, said)

    async def examine(self) -> Sequence[Finding]:
        """For each replica whether it answers, and whether something waits for it that it did not take."""
        findings = []
        await self._core.outbox.replicas.probe()
        for replica in self._core.outbox.replicas:
            state, waiting, failing = replica.state(), 0, 0
            for tenant in await self._core.primary.tenants():
                held = await self._core.outbox.waiting(tenant, replica.name)
                waiting, failing = waiting + len(held), failing + sum(1 for each in held if each.get("attempts"))
            said = state.get("error", "ok" if state["status"] == "ok" else "it is still starting")
            if failing:
                said += f"; {failing} of {waiting} changes that wait for it failed"
            advice = await resync_advice(self._core.primary, replica.name, writes=self._core.outbox.writes)
            said += f"; {advice}" if advice else ""
            ok = state["status"] == "ok" and not failing and advice is None
            findings.append(Finding(f"store {replica.name}", ok, said))
        return findings

    async def wait_until_open(self, seconds: float) -> None:
        """For programs that end soon: a server goes on, and those that are not open yet are asked when they are."""
        await self._core.outbox.replicas.ready(seconds)

    def watch(self) -> None:
        """For processes that live on: ask each, in the background, now and again; `failing` tells."""
        self._core.outbox.watch()

    async def resync(
        self,
        who: Principal,
        name: str,
        progress: Progress | None = None,
        *,
        dry_run: bool = False,
        keep_unknown: bool = False,
    ) -> dict[str, Any]:
        """Make a replica equal to the primary, in every tenant, and prove it by counts and hashes."""
        require_operator(who, "resync stores")
        replica = self._core.outbox.replicas.named(name)
        if replica is None:
            known = ", ".join(each.name for each in self._core.outbox.replicas) or "none beside the primary"
            raise NotFound(f"there is no store {name!r} with copies; there are: {known}")
        try:
            return await self._resync(who, replica, progress, dry_run, keep_unknown)
        except Unavailable as fault:
            if fault.details.get("store") != name:  # the first one failed
                raise
            raise type(fault)(f"the store {name}: {fault.summary}", hint=fault.hint, **fault.details) from fault

    async def _resync(
        self, who: Principal, replica: Replica, progress: Progress | None, dry_run: bool, keep_unknown: bool
    ) -> dict[str, Any]:
        token = "" if dry_run else await begin_resync(self._core.primary, replica.name)
        # A primary that nothing was written to yet has no tenant, and a replica may have copies in the operator's.
        ours = dict.fromkeys([who.tenant, *await self._core.primary.tenants()])
        theirs = await self._tenants_of(replica)
        tenants = dict.fromkeys([*ours, *(theirs or ())])  # ours first: one of the replica's own is refused
        work = [(tenant, agent) for tenant in tenants for agent in await self._agents(replica, tenant)]
        total = 0
        for tenant, agent in work:
            total += await self._core.primary.count(self._reach(replica, tenant, agent))
        report = progress or (lambda done, of: None)
        sync = Resync(self._core, replica, total, report, dry_run=dry_run, keep_unknown=keep_unknown)
        for tenant, agent in work:
            await sync.run(self._reach(replica, tenant, agent))
        found = sync.result() | {"all_tenants": theirs is not None}
        if not dry_run:
            await clear_resync_notices(self._core.primary, replica.name, token, equal=found["equal"])
        return found

    async def discard(
        self, who: Principal, name: str, *, dry_run: bool = False, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Drop what waits for a store that is configured no more: {store, waiting, deletions}, of which `deletions` are
        of memories that are gone or hidden here. It is never told of them."""
        require_operator(who, "discard what waits for a store")
        if self._core.outbox.replicas.named(name) is not None:
            raise Conflict(f"the store {name} is configured, and what waits for it is delivered: remove it first")
        return await discard(self._core, who, name, dry_run, progress or (lambda done, of: None))

    async def _tenants_of(self, replica: Replica) -> Sequence[str] | None:
        """Those that it has copies of, also where the primary was restored from before their first memory; None where
        it cannot say."""

        async def theirs(store: Store) -> Sequence[str] | None:
            return read_tenants(await store.tenants(), replica.name) if isinstance(store, TenantListing) else None

        return await replica.attempt(theirs, seconds=TIMEOUT_SECONDS)

    async def _agents(self, replica: Replica, tenant: str) -> Sequence[str]:
        """All that either may have memories of: also one whose last memory was erased while the replica was away."""

        async def theirs(store: Store) -> Sequence[str]:
            return read_names(await store.agent_names(tenant), replica.name) if isinstance(store, AgentListing) else []

        found = {*await self._core.primary.agent_names(tenant), *await replica.attempt(theirs, seconds=TIMEOUT_SECONDS)}
        # In the ledger that name is no agent: a product may take it for all of them, so it is not asked by it in vain.
        return sorted(found.union(set(await audit.agents_in(self._core.primary, tenant)) - {ALL_AGENTS}) - {""})

    def _reach(self, replica: Replica, tenant: str, agent: str) -> Reach:
        types = Condition(("type",), "in", sorted(replica.types()))
        return Reach(tenant, (agent,), (types,), now=self._core.clock())

    async def _of(self, who: Principal, replica: Replica) -> dict[str, Any]:
        altered = sum(replica.altered[tenant] for tenant in await self._tenants(who))
        found = {"name": replica.name, "role": "replica", **replica.state(), "altered": altered}
        found |= {"timeout": replica.timeout, "weight": replica.weight, **await self._lag(who, replica.name)}
        if advice := await resync_advice(self._core.primary, replica.name, writes=self._core.outbox.writes):
            why = found.get("last_error") or found.get("error")
            found["last_error"] = f"{why}; {advice}" if why else advice
        if who.is_operator and replica.attachment.shown:
            found["url"] = replica.attachment.shown
        return {**found, "capabilities": sorted(replica.capabilities)}

    async def _unconfigured(self, who: Principal) -> Sequence[dict[str, Any]]:
        """Those that no configuration names any more while something waits for them, such as an erasure."""
        primary, known = self._core.primary, {kind_of(each.name) for each in self._core.outbox.replicas}
        kinds = set[str]()
        if isinstance(primary, RecordKinds):
            for tenant in await self._tenants(who):
                kinds.update(await primary.record_kinds(tenant))
        names = [kind.removeprefix(kind_of("")) for kind in kinds if kind.startswith(kind_of("")) and kind not in known]
        why = (
            "it is not among the configured stores; what waits for it is delivered when it is again, at the same "
            "address or with this name in its URL (name=); `commonplace stores discard NAME` drops it"
        )
        shown = {"role": "replica", "status": "down", "error": why, "capabilities": []}
        return [{"name": name, **await self._lag(who, name), **shown, "last_error": why} for name in sorted(names)]

    async def _lag(self, who: Principal, name: str) -> dict[str, Any]:
        waiting = [
            each for tenant in await self._tenants(who) for each in await self._core.outbox.waiting(tenant, name)
        ]
        failing = [each for each in waiting if each.get("attempts")]
        found: dict[str, Any] = {"waiting": len(waiting), "failing": len(failing)}
        if waiting:
            found["behind_ms"] = max(self._core.clock() - min(int(each["at"]) for each in waiting), 0)
        if failing:
            found["last_error"] = max(failing, key=lambda each: each["due"]).get("error", "")
        elif any(is_ahead(int(each.get("doubt", 0)), self._core.clock()) for each in waiting):
            found["last_error"] = "an earlier write may still arrive; it is delivered once more then"
        return found

    async def _tenants(self, who: Principal) -> Sequence[str]:
        """Those whose deliveries concern the caller: stores are attached for all of them, by an operator."""
        return await self._core.primary.tenants() if who.is_operator else [who.tenant]
