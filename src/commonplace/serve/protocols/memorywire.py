"""memorywire: its HTTP routes. Its MCP tools are in `full.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from commonplace.serve.query import parameters
from commonplace.serve.routes import Call, Handler, NdjsonLines, ProtocolRoutes, Reply, Route, dialect_handler
from commonplace.wire.validate import parse

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.models import RecallResponse
    from commonplace.wire.record import Principal

POSITION = 0
NDJSON = "application/x-ndjson"
OPERATIONS = "memorywire/operations/"


async def perform(engine: Engine, who: Principal, operation: str, request: Any) -> Any:
    from commonplace.dialects.memorywire import dispatch  # which loads the engine: not before the first call

    return await dispatch.perform(engine, who, operation, request)


async def perform_by_id(engine: Engine, who: Principal, operation: str, id: str, request: Any) -> dict[str, Any]:
    from commonplace.dialects.memorywire import Memorywire, dispatch

    return await dispatch.prepare_by_id(operation, id, request)(Memorywire(engine, who))


# routes that are more than one operation


async def _recall(call: Call) -> Reply:
    found = await perform(call.engine, call.who, "recall", call.document)
    return Reply(NdjsonLines(_hits_then_rest(found)) if NDJSON in call.accept else found)


def _hits_then_rest(found: RecallResponse) -> Iterable[Any]:
    yield from found.results
    yield found.model_dump(exclude_none=True, exclude={"results"})


def _by_id(operation: str) -> Handler:
    async def handle(call: Call) -> Reply:
        request = {} if call.document is None else call.document  # a reset needs no more than the id
        return Reply(await perform_by_id(call.engine, call.who, operation, call.path["id"], request))

    return handle


async def _decide(call: Call) -> Reply:
    from commonplace.dialects.memorywire import Memorywire
    from commonplace.wire.models import DecideRequest

    body = parse(DecideRequest, call.document)
    memorywire = Memorywire(call.engine, call.who)
    decided = await memorywire.decide(
        call.path["id"], body.approved, body.reviewer, body.reason, body.request, body.apply, body.revision
    )
    return Reply({**decided["decision"], **decided})


async def _edit_review(call: Call) -> Reply:
    from commonplace.dialects.memorywire import Memorywire
    from commonplace.wire.models import EditReviewRequest

    body = parse(EditReviewRequest, call.document)
    return Reply(await Memorywire(call.engine, call.who).edit_review(call.path["id"], body.request, body.revision))


def _route(
    method: str, path: str, operation: str, summary: str, takes: str = "", response: str = "", **more: Any
) -> Route:
    """`takes` names the schema of the request, which GET carries in the query string."""
    if takes and method == "GET":
        more["query"] = parameters(f"{OPERATIONS}{takes}")
    elif takes:
        more["request"] = f"{OPERATIONS}{takes}"
    more["response"] = f"memorywire/{response or f'operations/{takes}.response'}"
    handler = more.pop("handler", None) or dialect_handler(perform, operation)
    return Route(method, f"/v0/{path}", handler, operation, summary, "memorywire", **more)


def _write(path: str, operation: str, summary: str, takes: str, response: str = "") -> Route:
    return _route("POST", path, operation, summary, takes, response, role="writer")


ROUTES = (
    _write("remember", "remember", "Keep a memory.", "remember"),
    _write("remember/batch", "remember_batch", "Keep many, each with its own outcome.", "remember.batch"),
    _route("POST", "recall", "recall", "Find memories; one a line when Accept says application/x-ndjson.", "recall",
           handler=_recall, embeds=True),
    _write("forget", "forget", "Hide memories, or erase them.", "forget"),
    _write("merge", "merge", "Make one memory of several.", "merge"),
    _write("expire", "expire", "Forget, archive or demote what a policy says.", "expire"),
    _write("undo", "undo", "Take back what was done to memories, or by a run of a job.", "undo"),
    _write("preview/forget", "preview_forget", "What the forget would touch; nothing is changed.", "forget",
           "operations/preview.response"),
    _write("preview/merge", "preview_merge", "What the merge would touch; nothing is changed.", "merge",
           "operations/preview.merge.response"),
    _write("preview/expire", "preview_expire", "What the expire would touch; nothing is changed.", "expire",
           "operations/preview.response"),
    _route("GET", "memories", "list", "A page of an agent's memories, newest first.", "list"),
    _route("GET", "memories/{id:path}", "get", "One memory.", "get", "types/memory"),
    _route("PATCH", "memories/{id:path}", "update", "Change a memory; the version before is kept.", "update",
           role="writer", handler=_by_id("update")),
    _route("GET", "memories/{id:path}/history", "history", "Every version of a memory, oldest first.", "history"),
    _route("GET", "procedures/{id:path}", "procedure_show", "Where a procedure stands and what can be fired.",
           "procedure.show", "operations/procedure.response"),
    _route("GET", "procedures/{id:path}/draw", "procedure_draw", "A procedure as SVG or Mermaid.", "procedure.draw"),
    _route("POST", "procedures/{id:path}/fire", "procedure_fire", "Move a procedure by a trigger.", "procedure.fire",
           "operations/procedure.response", role="writer", handler=_by_id("procedure_fire")),
    _route("POST", "procedures/{id:path}/reset", "procedure_reset", "Put a procedure back to where it starts.",
           "procedure.reset", "operations/procedure.response", role="writer", handler=_by_id("procedure_reset")),
    _route("GET", "reviews", "reviews", "Requests that wait for a person, or waited.", "reviews"),
    _route("GET", "reviews/{id}", "review", "One review.", response="types/review"),
    _route("POST", "reviews/{id}", "decide", "Approve, reject, or approve as edited.", "decide", role="reviewer",
           handler=_decide),
    _route("PATCH", "reviews/{id}", "edit_review", "Ask for something else instead; it goes on waiting.", "review.edit",
           "types/review", role="reviewer", handler=_edit_review),
    _route("POST", "reviews", "decide_many", "The same decision about many, each with its own outcome.", "decide.many",
           role="reviewer"),
    _route("GET", "policies", "policies", "The rules in force.", response="operations/policies.response",
           role="reviewer"),
    _route("PUT", "policies", "set_policies", "Replace the tenant's own rules.", "policies", role="admin"),
    _route("POST", "policies/dry-run", "try_policies", "What rules would have caught.", "policies.dry-run",
           role="reviewer"),
    _route("GET", "policies/learned", "learned_policies", "What reviewers always approve.",
           response="operations/policies.learned.response", role="reviewer"),
    _route("DELETE", "policies/learned/{id}", "revoke_learned", "Take back what was learned.",
           response="operations/policies.revoke.response", role="reviewer"),
    _route("GET", "audit", "audit", "A page of the audit trail, oldest first.", "audit", role="reviewer"),
    _route("GET", "audit/verify", "verify_audit", "Whether the audit chain is whole.",
           response="operations/audit.verify.response", role="reviewer"),
    _route("GET", "audit/head", "audit_head", "How many entries there are and their Merkle root, signed.",
           response="operations/audit.head.response", role="reviewer"),
    _route("GET", "audit/proof", "audit_proof", "The proof that an entry is in the tree.", "audit.proof",
           role="reviewer"),
    _route("GET", "audit/consistency", "audit_consistency", "The proof that a tree is the beginning of a later one.",
           "audit.consistency", role="reviewer"),
    _route("GET", "audit/key", "audit_key", "The public key of what is signed.",
           response="operations/audit.key.response"),
    _route("POST", "recover", "recover", "Take back what came from a bad source, and what was made from it.", "recover",
           role="admin"),
    _route("GET", "health", "health", "Whether the server can work.", response="operations/health.response"),
    _route("GET", "status", "status", "What the caller may see of the store.", response="operations/status.response"),
    _route("GET", "stores", "stores", "The stores, and what waits for each.", response="operations/stores.response",
           role="reviewer"),
    _route("GET", "lifecycle", "lifecycle", "The jobs that look after memories, and what they did last.",
           response="operations/lifecycle.response"),
    _route("GET", "lifecycle/runs", "lifecycle_runs", "What runs of the jobs did to which memories, and why.",
           "lifecycle.runs"),
    _route("GET", "lifecycle/runs/{id}", "lifecycle_show", "One run.", response="operations/lifecycle.show.response"),
    _route("POST", "lifecycle/{id}/run", "lifecycle_run", "Run one of these jobs now, or say what it would do.",
           "lifecycle.run", role="writer", handler=_by_id("lifecycle_run")),
    _write("kg/assert", "kg_assert", "State something; what held until then ends.", "kg.assert"),
    _route("GET", "kg", "kg_query", "What is stated about a subject, now or at an instant.", "graph_query",
           "operations/kg.response"),
    _route("GET", "kg/history", "kg_history", "Everything ever stated about a subject, oldest first.", "kg.history",
           "operations/kg.response"),
    _route("GET", "kg/path", "kg_path", "The fewest statements that lead from one thing to another.", "kg.path"),
    _route("GET", "kg/neighbors", "kg_neighbors", "The memories tied to one, nearest first.", "kg.neighbors"),
    _write("kg/retract", "kg_retract", "End what holds of a subject and predicate now.", "kg.retract", "types/triple"),
    _write("kg/erase", "kg_erase", "Erase everything ever stated about a subject.", "kg.erase"),
    _write("preview/kg/erase", "preview_kg_erase", "What an erasure would remove; nothing is changed.", "kg.erase",
           "operations/kg.response"),
)  # fmt: skip

PROTOCOLS = (ProtocolRoutes("/v0", ROUTES),)
