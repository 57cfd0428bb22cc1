"""OpenWOP's memory layer over HTTP: its tables of routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.dialects import openwop
from commonplace.dialects.openwop import workflows
from commonplace.serve.errors import STATUS
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.validate import check, schema

TAG = "OpenWOP"
_WHOLE = ("limit", "tokenBudget")


async def issue_ref(call: Call) -> Reply:
    return Reply(await _openwop(call).issue_ref(_body(call, "a ref")))


async def start_run(call: Call) -> Reply:
    return Reply(await _openwop(call).start_run(_body(call, "a run")), 201)


async def end_run(call: Call) -> Reply:
    return Reply(await _openwop(call).end_run(call.path["runId"]))


async def listing(call: Call) -> Reply:
    return Reply(await _openwop(call).list(_asked(call.query)))


async def get(call: Call) -> Reply:
    return Reply(await _openwop(call).get({**_asked(call.query), "id": call.path["id"]}))


async def put(call: Call) -> Reply:
    return Reply(await _openwop(call).put(_body(call, "put")), 201)


async def delete(call: Call) -> Reply:
    return Reply(await _openwop(call).delete({**_asked(call.query), "id": call.path["id"]}))


async def start_workflow(call: Call) -> Reply:
    body = _body(call, "a run")
    check("openwop/operations/workflow", body)
    state = await workflows.perform(call.engine, call.who, body["workflowId"])
    return Reply({"runId": state["runId"], "status": state["status"]}, 201)


async def workflow_state(call: Call) -> Reply:
    return Reply(await workflows.state_of(call.engine, call.who, call.path["runId"]))


def error_reply(fault: Fault) -> Reply:
    return Reply(openwop.envelope(fault), STATUS[fault.code])


def _openwop(call: Call) -> openwop.OpenWop:
    return openwop.OpenWop(call.engine, call.who)


def _body(call: Call, what: str) -> Any:
    if call.body is None:
        raise ValidationError(f"{what} needs a JSON object as its body")
    return call.body


def _asked(query: Mapping[str, str]) -> dict[str, Any]:
    """A query string as the request it stands for; `check_query` has seen to it that numbers are numbers."""
    return {name: int(text) if name in _WHOLE else text for name, text in query.items()}


def _parameters(operation: str) -> dict[str, dict[str, Any]]:
    properties = schema(f"openwop/operations/{operation}")["properties"]
    return {name: dict(rules) for name, rules in properties.items() if name != "id"}


def _route(method: str, path: str, handler: Any, named: str, summary: str, **more: Any) -> Route:
    response = f"openwop/operations/{named}.response"
    return Route(method, path, handler, f"openwop_{named}", summary, TAG, response=response, **more)


PROTOCOL = Protocol(
    "/openwop",
    (
        _route(
            "POST", "/openwop/refs", issue_ref, "ref", "Get the memoryRef of an agent.",
            request="openwop/operations/ref",
        ),
        _route(
            "POST", "/openwop/runs", start_run, "run", "Start a run: it sees what is there now.", status=201,
            request="openwop/operations/run",
        ),
        _route("DELETE", "/openwop/runs/{runId}", end_run, "end", "End a run and drop what it noted for itself."),
        _route("GET", "/openwop/memory", listing, "list", "List entries.", query=_parameters("list")),
        _route(
            "POST", "/openwop/memory", put, "put", "Write an entry.", role="writer", status=201,
            request="openwop/operations/put",
        ),
        _route("GET", "/openwop/memory/{id}", get, "get", "Read one entry.", query=_parameters("get")),
        _route(
            "DELETE", "/openwop/memory/{id}", delete, "delete", "Delete an entry.", role="writer",
            query=_parameters("delete"),
        ),
    ),
    error_reply,
)  # fmt: skip


def well_known(fixtures: Sequence[str] = ()) -> Protocol:
    async def discover(call: Call) -> Reply:
        return Reply(openwop.document(call.engine.settings.redaction, fixtures))

    discovery = _route("GET", "/.well-known/openwop", discover, "discovery", "What this host offers.", role=None)
    return Protocol("/.well-known/openwop", (discovery,), error_reply)


WELL_KNOWN = well_known()

#: What its public scenarios drive; only there when the operator asks for it.
HOST = Protocol(
    "/v1/runs",
    (
        _route(
            "POST", "/v1/runs", start_workflow, "workflow", "Run one of the memory workflows.", role="writer",
            status=201, request="openwop/operations/workflow",
        ),
        _route("GET", "/v1/runs/{runId}", workflow_state, "workflow_state", "What came of a workflow."),
    ),
    error_reply,
)  # fmt: skip


def hosted(protocols: Sequence[Protocol]) -> tuple[Protocol, ...]:
    """These, with the workflows served and named in the discovery document."""
    others = (protocol for protocol in protocols if protocol is not WELL_KNOWN)
    return (*others, well_known(tuple(workflows.WORKFLOWS)), HOST)
