"""The four workflows that OpenWOP's public memory scenarios start: each does the real thing and tells what came of it.

Nothing here is made up: every value went through the same `MemoryAdapter` that agents use. What the workflows write
expires within the hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from secrets import token_hex
from typing import Any

from commonplace.dialects.openwop.adapter import MemoryAdapter
from commonplace.dialects.openwop.entries import Entry
from commonplace.dialects.openwop.faults import envelope
from commonplace.engine import Engine, Forget, Run
from commonplace.wire.errors import Fault, NotFound, Unavailable
from commonplace.wire.record import Principal
from commonplace.wire.times import iso

AGENT = "openwop-conformance"
ELSEWHERE = "openwop-conformance-elsewhere"  # the tenant whose memory the run must not reach
SECRET = "conformance-secret"
_HOUR_MS = 3_600_000
_SHORT_MS = 1_500
_PATIENCE = 20  # times the short life, in steps, before a clock counts as standing still

Variables = dict[str, Any]
#: Waits until the engine's clock has passed an instant.
Wait = Callable[[Engine, int], Awaitable[None]]


async def by_the_clock(engine: Engine, until: int) -> None:
    for _ in range(_PATIENCE * 10):
        left = until - engine.clock()
        if left <= 0:
            return
        await asyncio.sleep(min(left, _SHORT_MS / 10) / 1000)
    raise Unavailable("the clock does not move, so nothing expires")


class Stage:
    """What a workflow works with: its run, the memory it writes to, and a secret the run must not keep."""

    def __init__(self, engine: Engine, who: Principal, run: Run, ref: str, secret: str, wait: Wait) -> None:
        self.engine, self.who, self.run, self.ref, self.secret, self.wait = engine, who, run, ref, secret, wait

    @property
    def adapter(self) -> MemoryAdapter:
        """As the workflow's own run sees memory: nothing of what it writes itself."""
        return MemoryAdapter(self.engine, self.who, self.run)

    async def later(self) -> tuple[MemoryAdapter, Run]:
        """As a run that starts now sees it."""
        run = await self.engine.runs.start(self.who)
        return MemoryAdapter(self.engine, self.who, run), run

    def entry(self, content: str, *tags: str, life: int = _HOUR_MS) -> Entry:
        expires = iso(self.engine.clock() + life)
        return {"content": content, "tags": ["source:conformance", *tags], "expiresAt": expires}


async def roundtrip(stage: Stage) -> Variables:
    written = await stage.adapter.put(stage.ref, stage.entry("Alice prefers to be written to by email.", "roundtrip"))
    later, run = await stage.later()
    found: Variables = {
        "memoryWritten": written,
        "memoryReadback": await later.get(stage.ref, written["id"]),
        "memoryList": await later.list(stage.ref),
        "sameRunReadback": await stage.adapter.get(stage.ref, written["id"]),
        "sameRunList": await stage.adapter.list(stage.ref),
    }
    await stage.engine.runs.end(stage.who, run.id)
    return found


async def redaction(stage: Stage) -> Variables:
    secret = stage.secret
    written = await stage.adapter.put(stage.ref, stage.entry(f"The key is {secret}, and Bob has it, too.", secret))
    later, run = await stage.later()
    readback = await later.get(stage.ref, written["id"])
    await stage.engine.runs.end(stage.who, run.id)
    return {"memoryReadback": readback, "plaintextFound": secret in str([written, readback])}


async def ttl(stage: Stage) -> Variables:
    fresh = await stage.adapter.put(stage.ref, stage.entry("Fresh for an hour.", "ttl"))
    fleeting = await stage.adapter.put(stage.ref, stage.entry("Gone in a moment.", "ttl", life=_SHORT_MS))
    early, first = await stage.later()
    before = await early.list(stage.ref)
    past: Variables | None = None
    try:
        await stage.adapter.put(stage.ref, stage.entry("Never there.", "ttl", life=-1))
    except Fault as fault:
        past = envelope(fault)
    await stage.wait(stage.engine, stage.engine.clock() + _SHORT_MS)
    later, second = await stage.later()
    found: Variables = {
        "freshId": fresh["id"], "expiredId": fleeting["id"], "memoryListBefore": before, "pastExpiryRefused": past,
        "memoryList": await later.list(stage.ref), "expiredReadback": await later.get(stage.ref, fleeting["id"]),
        "memoryListOfEarlierRun": await early.list(stage.ref),
    }  # fmt: skip
    for run in (first, second):
        await stage.engine.runs.end(stage.who, run.id)
    return found


async def cross_tenant(stage: Stage) -> Variables:
    own = await stage.adapter.put(stage.ref, stage.entry("Of the run's own tenant.", "cross-tenant"))
    tenant = ELSEWHERE if stage.who.tenant != ELSEWHERE else AGENT
    stranger = replace(stage.who, name=AGENT, tenant=tenant, role="writer", agents=(AGENT,))
    theirs = MemoryAdapter(stage.engine, stranger)
    foreign = await stage.engine.refs.issue(stranger, AGENT, stage.run.id)
    secret = await theirs.put(foreign, stage.entry("Of another tenant."))
    later, run = await stage.later()
    refused: Variables | None = None
    try:
        await later.put(foreign, stage.entry("Planted."))
    except Fault as fault:
        refused = envelope(fault)
    found: Variables = {
        "ownerEntryId": own["id"], "ownerProbe": await later.list(stage.ref),
        "crossTenantProbe": await later.list(foreign), "crossTenantGet": await later.get(foreign, secret["id"]),
        "crossTenantGetById": await later.get(stage.ref, secret["id"]), "crossTenantPut": refused,
        "crossTenantDelete": await later.delete(foreign, secret["id"]),
        "otherTenantEntries": len(await theirs.list(foreign)),
    }  # fmt: skip
    await stage.engine.runs.end(stage.who, run.id)
    await stage.engine.forget(stranger, Forget(AGENT, [secret["id"]], hard_delete=True))
    return found


WORKFLOWS: dict[str, Callable[[Stage], Awaitable[Variables]]] = {
    "conformance-agent-memory-roundtrip": roundtrip,
    "conformance-agent-memory-redaction": redaction,
    "conformance-agent-memory-ttl": ttl,
    "conformance-agent-memory-cross-tenant": cross_tenant,
}


async def perform(engine: Engine, who: Principal, workflow: str, wait: Wait = by_the_clock) -> Variables:
    """Run it to its end. Its run stays, with what came of it, until it is ended or has idled for seven days."""
    if workflow not in WORKFLOWS:
        raise NotFound(f"no workflow {workflow:.80}; there are {', '.join(WORKFLOWS)}")
    secret = token_hex(16)
    ref = await engine.refs.issue(who, AGENT, token_hex(8))
    run = await engine.runs.start(who, ref=ref, scope=await engine.refs.resolve(who, ref), secrets={SECRET: secret})
    status, variables = "completed", {}
    try:
        variables = await WORKFLOWS[workflow](Stage(engine, who, run, ref, secret, wait))
    except Fault as fault:
        status, variables = "failed", envelope(fault)
    state = {"runId": run.id, "workflowId": workflow, "status": status, "variables": variables}
    await engine.runs.keep_outcome(who, run, state, sorted(_ids(variables)))
    return state


async def state_of(engine: Engine, who: Principal, run_id: str) -> Variables:
    run = await engine.runs.use(who, run_id)
    state = await engine.runs.outcome(who, run)
    if state is None:
        raise NotFound(f"run {run_id:.80} was not started with a workflow, or what came of it was erased")
    return state


def _ids(value: Any) -> set[str]:
    """The memories that a result quotes, so that erasing one takes the result with it."""
    if isinstance(value, dict):
        own = {value["id"]} if isinstance(value.get("id"), str) else set()
        return own.union(*(_ids(inner) for inner in value.values()))
    return set().union(*(_ids(inner) for inner in value)) if isinstance(value, list) else set()
