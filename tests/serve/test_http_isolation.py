"""Two tenants × three agents × every route: a token never sees, changes or learns of anything that is not its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from conftest import AGENTS, TENANTS, TokenServer
from server_process import PROTOCOLS, Answer

from commonplace.serve.routes import Route
from commonplace.transfer import records
from commonplace.transfer.export_file import encode

ROUTES = {route.operation: route for protocol in PROTOCOLS for route in protocol.routes}
MISSING = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
NO_REF, NO_RUN = "mem_" + "0" * 32, "run_" + "0" * 32
NOBODY = "zoe"  # an agent that exists nowhere


@dataclass
class AgentData:
    """What one agent of one tenant has."""

    tenant: str
    agent: str
    word: str
    memory: str = ""
    other: str = ""
    review: str = ""
    record: str = ""
    ref: str = ""
    run: str = ""
    triple: str = ""


@dataclass
class Attempt:
    """One call, not yet sent."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None


#: Given the caller's own agent, and the agent, memory, review and record to go for.
Make = Callable[[str, str, AgentData], Attempt]


def by_id(**more: Any) -> Make:
    return lambda own, agent, at: Attempt({"id": at.memory}, {"agent_id": agent, **more})


def posted(**body: Any) -> Make:
    def make(own: str, agent: str, at: AgentData) -> Attempt:
        filled = {k: v(at) if callable(v) else v for k, v in body.items()}
        return Attempt(body={"agent_id": agent, **filled})

    return make


def word(at: AgentData) -> str:
    return at.word


def memory(at: AgentData) -> str:
    return at.memory


def memories(at: AgentData) -> list[str]:
    return [at.memory]


#: How each operation would be used to reach what is not one's own.
def mrp(type: str, **fields: Any) -> dict[str, Any]:
    names = [name for name in fields if name.endswith("_id")]
    header = {"timestamp": datetime.now(UTC).isoformat(), **{name: str(uuid4()) for name in names}}
    rest = {name: value for name, value in fields.items() if name not in names}
    return {"type": type, "version": "0.1", "header": header, **rest}


def exported(agent: str, at: AgentData) -> bytes:
    """A file that says something of a memory."""
    memory = {"agent_id": agent, "id": at.memory, "record": "memory", "versions": [{
        "content": "planted", "created_at": 1, "type": "semantic", "updated_at": 1}]}  # fmt: skip
    lines = [encode(records.header(None, None)), encode(memory)]
    amounts = Counter(memory=1, version=1, statement=0, palace=0)
    manifest = records.manifest(amounts, len(lines), sha256(b"".join(lines)).hexdigest())
    return b"".join([*lines, encode(manifest)])


ATTEMPTS: dict[str, Make] = {
    "remember": posted(type="semantic", content="planted"),
    "remember_batch": lambda own, agent, at: Attempt(
        body={"items": [{"agent_id": agent, "type": "semantic", "content": "planted"}]}
    ),
    "recall": posted(query=word, k=100, min_score=0),
    "forget": posted(ids=memories, hard_delete=True, cascade=True),
    "merge": posted(canonical=memory, duplicates=lambda at: [at.other]),
    "expire": posted(policy={"type": "semantic"}),
    "preview_forget": posted(ids=memories),
    "preview_merge": posted(canonical=memory, duplicates=lambda at: [at.other]),
    "preview_expire": posted(policy={"type": "semantic"}),
    "list": lambda own, agent, at: Attempt(query={"agent_id": agent}),
    "get": by_id(),
    "history": by_id(),
    "update": lambda own, agent, at: Attempt({"id": at.memory}, body={"agent_id": agent, "content": "changed"}),
    "procedure_show": by_id(),
    "procedure_draw": by_id(),
    "procedure_fire": lambda own, agent, at: Attempt({"id": at.memory}, body={"agent_id": agent, "trigger": "push"}),
    "procedure_reset": lambda own, agent, at: Attempt({"id": at.memory}, body={"agent_id": agent}),
    "reviews": lambda own, agent, at: Attempt(query={"status": "all"}),
    "review": lambda own, agent, at: Attempt({"id": at.review}),
    "decide": lambda own, agent, at: Attempt({"id": at.review}, body={"approved": True}),
    "decide_many": lambda own, agent, at: Attempt(body={"ids": [at.review], "approved": True}),
    "edit_review": lambda own, agent, at: Attempt(
        {"id": at.review}, body={"request": {"agent_id": agent, "type": "semantic", "content": "planted"}}
    ),
    "policies": lambda own, agent, at: Attempt(),
    "set_policies": lambda own, agent, at: Attempt(body={"rules": []}),
    "try_policies": lambda own, agent, at: Attempt(
        body={"rules": [{"name": "theirs", "when": {"agent": [agent]}, "action": "review"}]}
    ),
    "learned_policies": lambda own, agent, at: Attempt(),
    "revoke_learned": lambda own, agent, at: Attempt({"id": at.review}),
    "audit": lambda own, agent, at: Attempt(query={"agent_id": agent}),
    "verify_audit": lambda own, agent, at: Attempt(),
    "audit_head": lambda own, agent, at: Attempt(),
    "audit_proof": lambda own, agent, at: Attempt(query={"entry": 1}),
    "audit_consistency": lambda own, agent, at: Attempt(query={"from": 1}),
    "audit_key": lambda own, agent, at: Attempt(),
    "recover": lambda own, agent, at: Attempt(body={"source": at.word, "agent_id": agent, "dry_run": True}),
    "health": lambda own, agent, at: Attempt(),
    "status": lambda own, agent, at: Attempt(),
    "lifecycle": lambda own, agent, at: Attempt(),
    "lifecycle_run": lambda own, agent, at: Attempt({"id": "expire"}, body={"dry_run": True}),
    "lifecycle_runs": lambda own, agent, at: Attempt(),
    "stores": lambda own, agent, at: Attempt(),
    "lifecycle_show": lambda own, agent, at: Attempt({"id": at.memory}),
    "undo": lambda own, agent, at: Attempt(body={"ids": [at.memory, at.other], "agent_id": agent}),
    "export": lambda own, agent, at: Attempt(query={"agent_id": agent, "user_id": at.word}),
    "import": lambda own, agent, at: Attempt(body=exported(agent, at)),
    "kg_assert": posted(subject=word, predicate="is_under", object="the planted"),
    "kg_query": lambda own, agent, at: Attempt(query={"agent_id": agent, "subject": at.word}),
    "kg_history": lambda own, agent, at: Attempt(query={"agent_id": agent, "subject": at.word}),
    "kg_path": lambda own, agent, at: Attempt(query={"agent_id": agent, "start": at.word, "end": "the mat"}),
    "kg_neighbors": lambda own, agent, at: Attempt(query={"agent_id": agent, "memory_id": at.memory, "hops": 3}),
    "kg_retract": posted(subject=word, predicate="is_under"),
    "kg_erase": posted(subject=word, mentions=True),
    "preview_kg_erase": posted(subject=word, mentions=True),
    "embeddings": lambda own, agent, at: Attempt(body={"input": at.word}),
    "amp_store": lambda own, agent, at: Attempt(
        body={"record": {"id": at.record, "type": "note", "agent": agent, "content": "planted"}}
    ),
    "amp_search": lambda own, agent, at: Attempt(body={"query": at.word, "limit": 50, "agent": agent}),
    "amp_list": lambda own, agent, at: Attempt(query={"agent": agent}),
    "amp_get": lambda own, agent, at: Attempt({"id": at.record}),
    "amp_delete": lambda own, agent, at: Attempt({"id": at.record}),
    "amp_status": lambda own, agent, at: Attempt(),
    "amp_agent_status": lambda own, agent, at: Attempt({"agent": agent}),
    "mrp_request": lambda own, agent, at: Attempt(
        query={"agent": agent},
        body=mrp("memory_request", request_id=True, query={"natural": at.word}, requester={"agent_id": own}),
    ),
    "mrp_verify": lambda own, agent, at: Attempt(
        query={"agent": agent},
        body=mrp("memory_verify", verify_id=True, target={"memory_id": at.memory, "attestation_hash": "0" * 64}),
    ),
    "mrp_vouch": lambda own, agent, at: Attempt(
        body={
            "vouch": {
                "id": f"by-{own}-for-{at.word}",
                "created_at": "2026-01-01",
                "voucher": {"agent_id": agent},
                "subject": {"agent_id": at.word},
                "claim": {"domain": "x", "statement": "y", "level": "expert"},
            }
        }
    ),
    "mrp_vouches": lambda own, agent, at: Attempt(query={"subject": at.memory}),
    "openwop_discovery": lambda own, agent, at: Attempt(),
    "openwop_ref": lambda own, agent, at: Attempt(body={"agent": agent}),
    "openwop_run": lambda own, agent, at: Attempt(body={"memoryRef": at.ref}),
    "openwop_end": lambda own, agent, at: Attempt({"runId": at.run}),
    "openwop_list": lambda own, agent, at: Attempt(query={"memoryRef": at.ref if agent == own else agent}),
    "openwop_get": lambda own, agent, at: Attempt({"id": at.memory}, {"memoryRef": agent}),
    "openwop_put": lambda own, agent, at: Attempt(
        body={"memoryRef": agent, "runId": at.run, "backend": "scratchpad", "entry": {"content": "planted"}}
    ),
    "openwop_delete": lambda own, agent, at: Attempt({"id": at.memory}, {"memoryRef": agent}),
}
#: Named with the caller's own agent these do something that is the caller's right.
OWN_AGENT_IS_FINE = {"remember", "remember_batch", "expire", "preview_expire", "list", "audit", "recall", "amp_store",
                     "amp_search", "amp_list", "amp_agent_status", "openwop_ref", "kg_assert",
                     "try_policies"}  # fmt: skip


def send(guarded: TokenServer, token: str, route: Route, attempt: Attempt) -> Answer:
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda m: quote(attempt.path[m[1]], safe=""), route.path)
    query = f"?{urlencode(attempt.query)}" if attempt.query else ""
    return guarded.server.call(route.method, path + query, attempt.body, token=token)


def send_rpc(guarded: TokenServer, token: str, route: Route, attempt: Attempt) -> Answer:
    params = {**attempt.path, **attempt.query, **(attempt.body or {})}
    call = {"jsonrpc": "2.0", "id": 1, "method": f"memory.{route.operation}", "params": params}
    return guarded.server.post("/v0/rpc", call, token=token)


@pytest.fixture(scope="module")
def holdings(guarded: TokenServer) -> list[AgentData]:
    """Each agent has two memories, an AMP record and something that waits for approval, all with a word of its own."""
    made = []
    for tenant in TENANTS:
        for agent in AGENTS:
            it = AgentData(tenant, agent, f"quartz{tenant}{agent}")
            token = guarded.tokens[f"{tenant}/{agent}"]
            body = {"agent_id": agent, "type": "semantic", "content": f"the {it.word} is under the mat"}
            it.memory = guarded.server.post("/v0/remember", body, token=token).json["id"]
            it.other = guarded.server.post("/v0/remember", {**body, "content": f"{it.word} two"}, token=token).json[
                "id"
            ]
            guarded.server.post("/v0/remember", {**body, "approval_required": True}, token=token)
            waiting = guarded.server.get("/v0/reviews", token=token).json["reviews"]
            it.review = next(r["id"] for r in waiting if it.word in r["request"]["content"])
            record = {"type": "lesson", "title": it.word, "content": f"about {it.word}", "agent": agent}
            stored = guarded.server.post("/amp/store", {"record": record}, token=token)
            it.record = stored.json["id"]
            fact = {"agent_id": agent, "subject": it.word, "predicate": "is_under", "object": "the mat"}
            it.triple = guarded.server.post("/v0/kg/assert", fact, token=token).json["id"]
            it.ref = guarded.server.post("/openwop/refs", {"agent": agent}, token=token).json["memoryRef"]
            it.run = guarded.server.post("/openwop/runs", {"memoryRef": it.ref}, token=token).json["runId"]
            made.append(it)
    return made


def snapshot(guarded: TokenServer) -> Any:
    """Everything both tenants hold, but for how often it was recalled."""
    seen = []
    for tenant in TENANTS:
        token = guarded.tokens[tenant]
        for agent in (*AGENTS, NOBODY, "shared"):
            page = guarded.server.get(f"/v0/memories?agent_id={agent}&limit=1000", token=token).json["memories"]
            seen.append([{k: v for k, v in m.items() if "recall" not in k} for m in page])
            asked = urlencode({"agent_id": agent, "subject": f"quartz{tenant}{agent}"})
            seen.append(guarded.server.get(f"/v0/kg/history?{asked}", token=token).json["triples"])
        seen.append(guarded.server.get("/v0/reviews?status=all", token=token).json)
    return seen


def marks(holding: AgentData) -> list[str]:
    kept = [holding.memory, holding.other, holding.review, holding.record, holding.ref, holding.run]
    return [holding.word, holding.triple, *kept]


def normal(answer: Answer, *private: str) -> tuple[int, str]:
    """An answer without what the caller put into it, without times and durations, and without what the server does on
    its own meanwhile."""
    text = answer.body.decode()
    for mark in private:
        text = text.replace(mark, "…")
    text = re.sub(r'"(latency_ms|stored_at|search_time_ms|processing_time_ms|duration_ms|at)":[\d.]+', "", text)
    text = re.sub(r'"running":(true|false)|"last_run":(null|\{[^{}]*\})', "", text)
    return answer.status, re.sub(r'"(request_id|response_id|verify_id|timestamp|signature)":"[^"]*"', "", text)


def test_every_operation_has_its_attempt() -> None:
    assert set(ATTEMPTS) == set(ROUTES) - {"rpc"}


@pytest.mark.parametrize("operation", ATTEMPTS)
def test_nothing_outside_is_seen_changed_or_learnt(
    guarded: TokenServer, holdings: list[AgentData], operation: str
) -> None:  # fmt: skip
    route, make = ROUTES[operation], ATTEMPTS[operation]
    before = snapshot(guarded)
    ways = [send, send_rpc] if route.tag == "memorywire" else [send]
    for own in holdings:
        token = guarded.tokens[f"{own.tenant}/{own.agent}"]
        for target in holdings:
            if target is own:
                continue
            absent = AgentData(
                target.tenant, target.agent, target.word, MISSING, MISSING, MISSING, MISSING, NO_REF, NO_RUN
            )
            # The same agent name in another tenant names the caller's own agent.
            agents = [target.agent] if target.agent != own.agent else []
            agents += [] if operation in OWN_AGENT_IS_FINE else [own.agent]
            for agent in agents:
                for way in ways:
                    there = way(guarded, token, route, make(own.agent, agent, target))
                    missing = way(guarded, token, route, make(own.agent, agent, absent))
                    assert there.status < 500
                    private = (*marks(target), MISSING, NO_REF, NO_RUN, target.agent)
                    assert normal(there, *private) == normal(missing, *private), (own, target)
                    said = there.body.decode()
                    asked = str(make(own.agent, agent, target))
                    for mark in marks(target):
                        assert mark in asked or mark not in said, (own, target, said)
    assert snapshot(guarded) == before


@pytest.mark.parametrize("operation", ["recall", "amp_search"])
def test_searching_ones_own_for_anothers_words_finds_nothing_of_theirs(
    guarded: TokenServer, holdings: list[AgentData], operation: str
) -> None:  # fmt: skip
    for own in holdings:
        token = guarded.tokens[f"{own.tenant}/{own.agent}"]
        for target in holdings:
            if target is not own:
                for agent in (own.agent, None) if operation == "amp_search" else (own.agent,):
                    attempt = ATTEMPTS[operation](own.agent, own.agent, target)
                    if agent is None:
                        del attempt.body["agent"]
                    said = send(guarded, token, ROUTES[operation], attempt).body.decode()
                    assert not [mark for mark in marks(target) if mark in said]


@pytest.mark.parametrize("operation", ["list", "reviews", "audit", "status", "amp_list", "amp_status"])
def test_what_is_listed_is_ones_own(guarded: TokenServer, holdings: list[AgentData], operation: str) -> None:
    for own in holdings:
        token = guarded.tokens[f"{own.tenant}/{own.agent}"]
        query = {"agent_id": own.agent} if operation == "list" else {}
        answer = send(guarded, token, ROUTES[operation], Attempt(query=query))
        assert answer.status == 200
        said = answer.body.decode()
        for other in holdings:
            if other is not own:
                assert not [mark for mark in marks(other) if mark in said]
                assert other.agent == own.agent or f'"{other.agent}"' not in said


def test_agents_that_exist_and_agents_that_do_not_are_refused_alike(
    guarded: TokenServer, holdings: list[AgentData]
) -> None:
    token = guarded.tokens["acme/ada"]
    for operation in ("recall", "list", "audit", "remember", "amp_agent_status", "amp_list"):
        there = send(guarded, token, ROUTES[operation], ATTEMPTS[operation]("ada", "bea", holdings[1]))
        never = send(guarded, token, ROUTES[operation], ATTEMPTS[operation]("ada", NOBODY, holdings[1]))
        assert normal(there, "bea") == normal(never, NOBODY), operation
