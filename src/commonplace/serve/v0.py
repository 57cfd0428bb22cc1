"""memorywire over HTTP: its table of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from commonplace.__about__ import __version__
from commonplace.dialects.memorywire import Memorywire
from commonplace.serve import kg
from commonplace.serve.errors import error_reply
from commonplace.serve.routes import Call, NdjsonLines, Protocol, Reply, Route
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.models import (
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    UpdateRequest,
    dump,
)
from commonplace.wire.plain import MAX_INTEGER
from commonplace.wire.record import MEMORY_TYPES
from commonplace.wire.strict_json import InvalidJson, decode
from commonplace.wire.surface import BatchRequest, DecideRequest
from commonplace.wire.validate import parse

TAG = "memorywire"
NDJSON = "application/x-ndjson"


def _wire(call: Call) -> Memorywire:
    return Memorywire(call.engine, call.who)


# the five operations


async def remember(call: Call) -> Reply:
    return Reply(await _wire(call).remember(parse(RememberRequest, call.body)))


async def remember_batch(call: Call) -> Reply:
    """Each item its own outcome: what is wrong with one is said in its place."""
    outcomes: list[dict[str, Any] | None] = []
    requests: list[RememberRequest] = []
    for item in parse(BatchRequest, call.body).items:
        try:
            requests.append(parse(RememberRequest, item))
            outcomes.append(None)
        except ValidationError as fault:
            outcomes.append(fault.to_wire())
    answered = iter(await _wire(call).remember_many(requests) if requests else ())
    return Reply({"results": [_outcome(next(answered)) if known is None else known for known in outcomes]})


def _outcome(answer: Any) -> dict[str, Any]:
    return answer.to_wire() if isinstance(answer, Fault) else dump(answer)


async def recall(call: Call) -> Reply:
    found = await _wire(call).recall(parse(RecallRequest, call.body))
    if NDJSON in call.accept:
        return Reply(NdjsonLines(_hits_then_rest(found)))
    return Reply(found)


def _hits_then_rest(found: RecallResponse) -> Iterable[Any]:
    yield from found.results
    rest = dump(found)
    del rest["results"]
    yield rest


async def forget(call: Call) -> Reply:
    return Reply(await _wire(call).forget(parse(ForgetRequest, call.body)))


async def merge(call: Call) -> Reply:
    return Reply(await _wire(call).merge(parse(MergeRequest, call.body)))


async def expire(call: Call) -> Reply:
    return Reply(await _wire(call).expire(parse(ExpireRequest, call.body)))


# what they would do


async def preview_forget(call: Call) -> Reply:
    return Reply({"memories": await _wire(call).preview_forget(parse(ForgetRequest, call.body))})


async def preview_merge(call: Call) -> Reply:
    return Reply(await _wire(call).preview_merge(parse(MergeRequest, call.body)))


async def preview_expire(call: Call) -> Reply:
    return Reply({"memories": await _wire(call).preview_expire(parse(ExpireRequest, call.body))})


# single memories


async def get(call: Call) -> Reply:
    as_of = _number(call.query.get("as_of"))
    return Reply(await _wire(call).get(call.query["agent_id"], call.path["id"], as_of=as_of))


async def listing(call: Call) -> Reply:
    asked = dict(call.query)
    page = await _wire(call).list(
        asked["agent_id"], type=asked.get("type"), tag=asked.get("tag"),
        user_id=asked.get("user_id"), filter=_filter(asked.get("filter")), limit=int(asked.get("limit", 100)),
        cursor=asked.get("cursor"), as_of=_number(asked.get("as_of")),
    )  # fmt: skip
    return Reply(page)


async def update(call: Call) -> Reply:
    return Reply(await _wire(call).update(call.path["id"], parse(UpdateRequest, call.body)))


async def history(call: Call) -> Reply:
    return Reply({"versions": await _wire(call).history(call.query["agent_id"], call.path["id"])})


# reviews


async def reviews(call: Call) -> Reply:
    status = call.query.get("status", "pending")
    return Reply({"reviews": await call.engine.reviews.list(call.who, None if status == "all" else status)})


async def review(call: Call) -> Reply:
    return Reply(await call.engine.reviews.get(call.who, call.path["id"]))


async def decide(call: Call) -> Reply:
    body = parse(DecideRequest, call.body)
    reviewer = (body.reviewer if call.open else None) or call.who.name
    decided = await _wire(call).decide(
        call.path["id"], body.approved, reviewer, body.reason, body.request, body.apply
    )  # fmt: skip
    return Reply({**decided["decision"], **decided})


# audit, health


async def audit(call: Call) -> Reply:
    asked = dict(call.query)
    page = await _wire(call).audit(
        agent_id=asked.get("agent_id"), operation=asked.get("operation"),
        since=_number(asked.get("since")), until=_number(asked.get("until")), limit=int(asked.get("limit", 100)),
        cursor=asked.get("cursor"),
    )  # fmt: skip
    return Reply(page)


async def verify_audit(call: Call) -> Reply:
    return Reply(await _wire(call).verify_audit())


async def health(call: Call) -> Reply:
    found = await call.engine.health()
    answer = {"status": found["status"], "version": __version__, "store": call.engine.store_name,
              "capabilities": sorted(call.engine.capabilities), "embedder": found["embedder"]}  # fmt: skip
    if found.get("note"):
        answer["note"] = found["note"]
    return Reply(answer)


async def status(call: Call) -> Reply:
    found = await call.engine.upkeep.status(call.who)
    answer = {"version": __version__, **{name: found[name] for name in ("agents", "memories", "pending_reviews")}}
    if found["embedder"]:
        answer["embedder"] = {name: found["embedder"][name] for name in ("name", "dimension")}
    if call.engine.note:
        answer["note"] = call.engine.note
    return Reply(answer)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _filter(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        document = decode(text)
    except InvalidJson:
        document = None
    if not isinstance(document, dict):
        raise ValidationError('filter must be a JSON object such as {"project": "atlas"}', field="filter")
    return document


_AGENT = {"type": "string", "minLength": 1, "maxLength": 256}
_NAMED = {**_AGENT, "required": True}
_TIME = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
_WORD = {"type": "string", "minLength": 1, "maxLength": 256}
_LONG = {"type": "string", "minLength": 1, "maxLength": 16_384}
_TYPE = {"enum": list(MEMORY_TYPES)}
_WHICH = {"enum": ["pending", "approved", "rejected", "all"]}


def _route(
    method: str, path: str, handler: Callable[[Call], Awaitable[Reply]], summary: str, response: str, **more: Any
) -> Route:
    operation = "list" if handler is listing else handler.__name__
    return Route(method, f"/v0/{path}", handler, operation, summary, TAG, response=f"memorywire/{response}", **more)


def _operation(name: str, handler: Callable[[Call], Awaitable[Reply]], summary: str, role: str) -> Route:
    request = f"memorywire/operations/{name}"
    return _route("POST", name, handler, summary, f"operations/{name}.response", request=request, role=role)


def _preview(name: str, handler: Callable[[Call], Awaitable[Reply]], response: str = "preview") -> Route:
    summary, request = f"What the {name} would touch; nothing is changed.", f"memorywire/operations/{name}"
    return _route("POST", f"preview/{name}", handler, summary, f"operations/{response}.response", request=request,
                    role="writer")  # fmt: skip


ROUTES = (
    _operation("remember", remember, "Keep a memory.", "writer"),
    _route("POST", "remember/batch", remember_batch, "Keep many, each with its own outcome.",
             "operations/remember.batch.response", request="memorywire/operations/remember.batch", role="writer"),
    _operation("recall", recall, "Find memories; one a line when Accept says application/x-ndjson.", "reader"),
    _operation("forget", forget, "Hide memories, or erase them.", "writer"),
    _operation("merge", merge, "Make one memory of several.", "writer"),
    _operation("expire", expire, "Forget, archive or demote what a policy says.", "writer"),
    _preview("forget", preview_forget),
    _preview("merge", preview_merge, "preview.merge"),
    _preview("expire", preview_expire),
    _route("GET", "memories", listing, "A page of an agent's memories, newest first.", "operations/list.response",
             query={"agent_id": _NAMED, "type": _TYPE, "tag": _WORD, "user_id": _AGENT, "filter": _LONG,
                    "limit": _LIMIT, "cursor": _WORD, "as_of": _TIME}),
    _route("GET", "memories/{id:path}", get, "One memory.", "types/memory",
             query={"agent_id": _NAMED, "as_of": _TIME}),
    _route("PATCH", "memories/{id:path}", update, "Change a memory; the version before is kept.", "types/memory",
             request="memorywire/operations/update", role="writer"),
    _route("GET", "memories/{id:path}/history", history, "Every version of a memory, oldest first.",
             "operations/history.response", query={"agent_id": _NAMED}),
    _route("GET", "reviews", reviews, "Requests that wait for a person, or waited.", "operations/reviews.response",
             query={"status": _WHICH}),
    _route("GET", "reviews/{id}", review, "One review.", "types/review"),
    _route("POST", "reviews/{id}", decide, "Approve, reject, or approve as edited.", "operations/decide.response",
             request="memorywire/operations/decide", role="reviewer"),
    _route("GET", "audit", audit, "A page of the audit trail, oldest first.", "operations/audit.response",
             role="reviewer", query={"agent_id": _AGENT, "operation": _WORD, "since": _TIME, "until": _TIME,
                                     "limit": _LIMIT, "cursor": _WORD}),
    _route("GET", "audit/verify", verify_audit, "Whether the audit chain is whole.",
             "operations/audit.verify.response", role="reviewer"),
    _route("GET", "health", health, "Whether the server can work.", "operations/health.response"),
    _route("GET", "status", status, "What the caller may see of the store.", "operations/status.response"),
    *kg.ROUTES,
)  # fmt: skip

PROTOCOL = Protocol("/v0", ROUTES, error_reply)
