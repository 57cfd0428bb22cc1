"""The four workflows that OpenWOP's public memory scenarios start: each does the real thing and tells what came of it.

Nothing here is made up: every value went through the same `MemoryAdapter` that agents use. What the workflows write
expires within the hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

from commonplace.dialects.openwop.adapter import MemoryAdapter
from commonplace.dialects.openwop.entries import Entry
from commonplace.dialects.openwop.operations import envelope
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


async def wait_until(engine: Engine, until: int) -> None:
    for _ in range(_PATIENCE * 10):
        left = until - engine.clock()
        if left <= 0:
            return
        await asyncio.sleep(min(left, _SHORT_MS / 10) / 1000)
    raise Unavailable("the clock does not move, so nothing expires")


@dataclass(slots=True, frozen=True)
class WorkflowContext:
    """What a workflow works with: its run, the memory it writes to, and a secret the run must not keep."""

    engine: Engine
    who: Principal
    run: Run
    ref: str
    secret: str
    wait: Wait

    @property
    def adapter(self) -> MemoryAdapter:
        """As the workflow's own run sees memory: nothing of what it writes itself."""
        return MemoryAdapter(self.engine, self.who, self.run)

    async def later(self) -> tuple[MemoryAdapter, Run]:
        """As a run that starts now sees it."""
        run = await self.engine.runs.start(self.who)
        return MemoryAdapter(self.engine, self.who, run), run

    async def put(self, content: str, *tags: str, life: int = _HOUR_MS) -> Entry:
        return await self.adapter.put(self.ref, self.entry(content, *tags, life=life))

    async def end(self, run: Run) -> None:
        await self.engine.runs.end(self.who, run.id)

    def entry(self, content: str, *tags: str, life: int = _HOUR_MS) -> Entry:
        expires = iso(self.engine.clock() + life)
        return {"content": content, "tags": ["source:conformance", *tags], "expiresAt": expires}


async def roundtrip(context: WorkflowContext) -> Variables:
    written = await context.put("Alice prefers to be written to by email.", "roundtrip")
    later, run = await context.later()
    found: Variables = {
        "memoryWritten": written,
        "memoryReadback": await later.get(context.ref, written["id"]),
        "memoryList": await later.list(context.ref),
        "sameRunReadback": await context.adapter.get(context.ref, written["id"]),
        "sameRunList": await context.adapter.list(context.ref),
    }
    await context.end(run)
    return found


async def redaction(context: WorkflowContext) -> Variables:
    secret = context.secret
    written = await context.put(f"The key is {secret}, and Bob has it, too.", secret)
    later, run = await context.later()
    readback = await later.get(context.ref, written["id"])
    await context.end(run)
    return {"memoryReadback": readback, "plaintextFound": secret in str([written, readback])}


async def ttl(context: WorkflowContext) -> Variables:
    fresh = await context.put("Fresh for an hour.", "ttl")
    fleeting = await context.put("Gone in a moment.", "ttl", life=_SHORT_MS)
    early, first = await context.later()
    before = await early.list(context.ref)
    past: Variables | None = None
    try:
        await context.put("Never there.", "ttl", life=-1)
    except Fault as fault:
        past = envelope(fault)
    await context.wait(context.engine, context.engine.clock() + _SHORT_MS)
    later, second = await context.later()
    found: Variables = {
        "freshId": fresh["id"],
        "expiredId": fleeting["id"],
        "memoryListBefore": before,
        "pastExpiryRefused": past,
        "memoryList": await later.list(context.ref),
        "expiredReadback": await later.get(context.ref, fleeting["id"]),
        "memoryListOfEarlierRun": await early.list(context.ref),
    }
    for run in (first, second):
        await context.end(run)
    return found


async def cross_tenant(context: WorkflowContext) -> Variables:
    own = await context.put("Of the run's own tenant.", "cross-tenant")
    tenant = ELSEWHERE if context.who.tenant != ELSEWHERE else AGENT
    stranger = replace(context.who, name=AGENT, tenant=tenant, role="writer", agents=(AGENT,))
    theirs = MemoryAdapter(context.engine, stranger)
    foreign = await context.engine.refs.issue(stranger, AGENT, context.run.id)
    secret = await theirs.put(foreign, context.entry("Of another tenant."))
    later, run = await context.later()
    refused: Variables | None = None
    try:
        await later.put(foreign, context.entry("Planted."))
    except Fault as fault:
        refused = envelope(fault)
    found: Variables = {
        "ownerEntryId": own["id"],
        "ownerProbe": await later.list(context.ref),
        "crossTenantProbe": await later.list(foreign),
        "crossTenantGet": await later.get(foreign, secret["id"]),
        "crossTenantGetById": await later.get(context.ref, secret["id"]),
        "crossTenantPut": refused,
        "crossTenantDelete": await later.delete(foreign, secret["id"]),
        "otherTenantEntries": len(await theirs.list(foreign)),
    }
    await context.end(run)
    await context.engine.forget(stranger, Forget(AGENT, [secret["id"]], hard_delete=True))
    return found


WORKFLOWS: dict[str, Callable[[WorkflowContext], Awaitable[Variables]]] = {
    "conformance-agent-memory-roundtrip": roundtrip,
    "conformance-agent-memory-redaction": redaction,
    "conformance-agent-memory-ttl": ttl,
    "conformance-agent-memory-cross-tenant": cross_tenant,
}


async def perform(engine: Engine, who: Principal, workflow: str, wait: Wait = wait_until) -> Variables:
    """Run it to its end. Its run stays, with what came of it, until it is ended or has idled for seven days."""
    engine.redactor.check_name(workflow, "workflowId")
    if workflow not in WORKFLOWS:
        raise NotFound(f"no workflow {workflow:.80}; there are {', '.join(WORKFLOWS)}")
    secret = token_hex(16)
    ref = await engine.refs.issue(who, AGENT, token_hex(8))
    run = await engine.runs.start(who, ref=ref, scope=await engine.refs.resolve(who, ref), secrets={SECRET: secret})
    status, variables = "completed", {}
    try:
        variables = await WORKFLOWS[workflow](WorkflowContext(engine, who, run, ref, secret, wait))
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
