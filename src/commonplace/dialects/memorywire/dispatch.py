"""memorywire's operations by their names on the wire: what a route, an MCP tool and a JSON-RPC method all call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from commonplace.dialects.memorywire.base import Document
from commonplace.dialects.memorywire.operations import Memorywire
from commonplace.engine import Engine
from commonplace.wire.errors import Fault
from commonplace.wire.models import (
    AssertRequest,
    EraseRequest,
    ExpireRequest,
    FireRequest,
    ForgetRequest,
    LifecycleRunRequest,
    MergeRequest,
    Message,
    RecallRequest,
    RememberRequest,
    ResetRequest,
    RetractRequest,
    UpdateRequest,
    dump,
)
from commonplace.wire.record import Principal
from commonplace.wire.validate import check, parse


class Operation(NamedTuple):
    """`request` is the message that the method takes, or the schema of a document whose fields are its arguments, or
    None where nothing but a path names them. A list is answered in `field`."""

    method: Callable[..., Awaitable[Any]]
    request: type[Message] | str | None = None
    field: str = ""


_WITH_RULES = ("policies", "policies.dry-run")

#: Every operation that needs nothing but its request, by its name on the wire.
OPERATIONS: Mapping[str, Operation] = {
    "remember": Operation(Memorywire.remember, RememberRequest),
    "remember_batch": Operation(Memorywire.remember_batch, "remember.batch", "results"),
    "recall": Operation(Memorywire.recall, RecallRequest),
    "forget": Operation(Memorywire.forget, ForgetRequest),
    "merge": Operation(Memorywire.merge, MergeRequest),
    "expire": Operation(Memorywire.expire, ExpireRequest),
    "preview_forget": Operation(Memorywire.preview_forget, ForgetRequest, "memories"),
    "preview_merge": Operation(Memorywire.preview_merge, MergeRequest),
    "preview_expire": Operation(Memorywire.preview_expire, ExpireRequest, "memories"),
    "list": Operation(Memorywire.list, "list"),
    "get": Operation(Memorywire.get, "get"),
    "history": Operation(Memorywire.history, "history", "versions"),
    "procedure_show": Operation(Memorywire.procedure_show, "procedure.show"),
    "procedure_draw": Operation(Memorywire.procedure_draw, "procedure.draw"),
    "reviews": Operation(Memorywire.reviews, "reviews", "reviews"),
    "review_pending": Operation(Memorywire.reviews, "review_pending", "reviews"),
    "review": Operation(Memorywire.review),
    "decide_many": Operation(Memorywire.decide_many, "decide.many", "results"),
    "policies": Operation(Memorywire.policies),
    "set_policies": Operation(Memorywire.set_policies, "policies"),
    "try_policies": Operation(Memorywire.try_policies, "policies.dry-run"),
    "learned_policies": Operation(Memorywire.learned_policies, None, "learned"),
    "revoke_learned": Operation(Memorywire.revoke_learned),
    "audit": Operation(Memorywire.audit, "audit"),
    "verify_audit": Operation(Memorywire.verify_audit),
    "audit_head": Operation(Memorywire.audit_head),
    "audit_proof": Operation(Memorywire.audit_proof, "audit.proof"),
    "audit_consistency": Operation(Memorywire.audit_consistency, "audit.consistency"),
    "audit_key": Operation(Memorywire.audit_key),
    "recover": Operation(Memorywire.recover, "recover"),
    "health": Operation(Memorywire.health),
    "status": Operation(Memorywire.status),
    "undo": Operation(Memorywire.undo, "undo"),
    "lifecycle": Operation(Memorywire.lifecycle),
    "stores": Operation(Memorywire.stores, None, "stores"),
    "lifecycle_runs": Operation(Memorywire.lifecycle_runs, "lifecycle.runs", "runs"),
    "lifecycle_show": Operation(Memorywire.lifecycle_show),
    "kg_assert": Operation(Memorywire.graph_assert, AssertRequest),
    "kg_query": Operation(Memorywire.graph_query, "graph_query"),
    "kg_history": Operation(Memorywire.graph_history, "kg.history"),
    "kg_path": Operation(Memorywire.graph_path, "kg.path"),
    "kg_neighbors": Operation(Memorywire.neighbors, "kg.neighbors"),
    "kg_retract": Operation(Memorywire.graph_retract, RetractRequest),
    "kg_erase": Operation(Memorywire.graph_erase, EraseRequest),
    "preview_kg_erase": Operation(Memorywire.preview_graph_erase, EraseRequest),
}


#: Those that are about one thing, whose id or name stands beside the request.
BY_ID: Mapping[str, tuple[Callable[..., Awaitable[Document]], type[Message]]] = {
    "update": (Memorywire.update, UpdateRequest),
    "procedure_fire": (Memorywire.procedure_fire, FireRequest),
    "procedure_reset": (Memorywire.procedure_reset, ResetRequest),
    "lifecycle_run": (Memorywire.lifecycle_run, LifecycleRunRequest),
}


def prepare_by_id(operation: str, id: str, request: Any) -> Callable[[Memorywire], Awaitable[Document]]:
    """As `prepare`, for an operation of `BY_ID`."""
    method, takes = BY_ID[operation]
    message = parse(takes, request)
    return lambda memorywire: method(memorywire, id, message)


def prepare(operation: str, request: Any, *, typed: bool = False) -> Callable[[Memorywire], Awaitable[Any]]:
    """The call that a document asks for, without what its answer is wrapped in on the wire; raises ValidationError for
    one that is wrong, so that a mistake opens no store. With `typed` its fields are keywords of the SDK: those that
    become arguments are left to the engine, because loading schemas takes longer than a listing does."""
    method, takes, _ = OPERATIONS[operation]
    if takes is not None and not isinstance(takes, str):
        message = parse(takes, request)
        return lambda memorywire: method(memorywire, message)
    if takes is not None and not typed:
        whole = _without_items(request) if takes == "remember.batch" else request
        check(f"memorywire/operations/{takes}", _without_rules(whole) if takes in _WITH_RULES else whole)
    arguments = {name: _whole(value) for name, value in request.items()}
    return lambda memorywire: method(memorywire, **arguments)


async def perform(engine: Engine, who: Principal, operation: str, request: Any) -> Message | Document:
    """The answer to a request that is still a document; raises ValidationError for one that is wrong."""
    answer = await prepare(operation, request)(Memorywire(engine, who))
    if operation == "remember_batch":
        answer = [outcome.to_wire() if isinstance(outcome, Fault) else dump(outcome) for outcome in answer]
    field = OPERATIONS[operation].field
    return {field: answer} if field else answer


def _without_items(request: Any) -> Any:
    """A batch as a whole. What is wrong with one of its items, even that it is no JSON, is said in that one's place."""
    if not isinstance(request, dict) or not isinstance(request.get("items"), list):
        return request
    return {**request, "items": [{}] * len(request["items"])}


def _without_rules(request: Any) -> Any:
    """A request about rules as a whole: the engine reads them, and says of one that is wrong how a right one looks."""
    rules = request.get("rules") if isinstance(request, dict) else None
    return {**request, "rules": []} if isinstance(rules, list) and rules else request


def _whole(value: Any) -> Any:
    """5.0 is an integer to JSON Schema, so it is one here."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
