"""OpenWOP's memory layer: its HTTP routes, its discovery document and, where asked for, its host surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.serve.query import parameters
from commonplace.serve.routes import Call, Handler, ProtocolRoutes, Reply, Route, dialect_handler
from commonplace.wire.errors import Fault
from commonplace.wire.validate import check

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.record import Principal

POSITION = 4
_OPERATIONS = "openwop/operations/"


# The engine is loaded by the first call, hence the imports inside functions.


async def perform(engine: Engine, who: Principal, operation: str, request: Any) -> Any:
    from commonplace.dialects.openwop import OpenWop

    return await getattr(OpenWop(engine, who), operation)(request)


async def end_run(call: Call) -> Reply:
    return Reply(await perform(call.engine, call.who, "end_run", call.path["runId"]))


async def start_workflow(call: Call) -> Reply:
    from commonplace.dialects.openwop import workflows

    check(f"{_OPERATIONS}workflow", call.document)
    state = await workflows.perform(call.engine, call.who, call.document["workflowId"])
    return Reply({"runId": state["runId"], "status": state["status"]}, 201)


async def workflow_state(call: Call) -> Reply:
    from commonplace.dialects.openwop import workflows

    return Reply(await workflows.state_of(call.engine, call.who, call.path["runId"]))


def _error(fault: Fault) -> Any:
    from commonplace.dialects.openwop import envelope

    return envelope(fault)


def _route(
    method: str, path: str, name: str, summary: str, handler: Handler | str, body: str = "", **more: Any
) -> Route:
    """`handler` may be the name of an operation; `body` is what a request without one is told to need one for."""
    if body:
        more |= {"request": _OPERATIONS + name, "needs_body": f"{body} needs a JSON object as its body"}
    if isinstance(handler, str):
        handler = dialect_handler(perform, handler, more.get("status", 200))
    response = f"{_OPERATIONS}{name}.response"
    return Route(method, path, handler, f"openwop_{name}", summary, "OpenWOP", response=response, **more)


def _query(name: str) -> Any:
    return parameters(_OPERATIONS + name)


ROUTES = (
    _route("POST", "/openwop/refs", "ref", "Get the memoryRef of an agent.", "issue_ref", "a ref"),
    _route("POST", "/openwop/runs", "run", "Start a run: it sees what is there now.", "start_run", "a run",
           status=201),
    _route("DELETE", "/openwop/runs/{runId}", "end", "End a run and drop what it noted for itself.", end_run),
    _route("GET", "/openwop/memory", "list", "List entries.", "list", query=_query("list"), embeds=True),
    _route("POST", "/openwop/memory", "put", "Write an entry.", "put", "put", role="writer", status=201),
    _route("GET", "/openwop/memory/{id}", "get", "Read one entry.", "get", query=_query("get")),
    _route("DELETE", "/openwop/memory/{id}", "delete", "Delete an entry.", "delete", role="writer",
           query=_query("delete")),
)  # fmt: skip

#: What its public scenarios drive; only there when the operator asks for it.
HOST_ROUTES = (
    _route("POST", "/v1/runs", "workflow", "Run one of the memory workflows.", start_workflow, "a run", role="writer",
           status=201),
    _route("GET", "/v1/runs/{runId}", "workflow_state", "What came of a workflow.", workflow_state),
)  # fmt: skip


def _well_known(*, host: bool) -> ProtocolRoutes:
    """The discovery document, which names the workflows where they are served."""

    async def discover(call: Call) -> Reply:
        from commonplace.dialects.openwop import discovery_document, workflows

        fixtures = tuple(workflows.WORKFLOWS) if host else ()
        return Reply(discovery_document(call.engine.settings.redaction, fixtures))

    path = "/.well-known/openwop"
    route = _route("GET", path, "discovery", "What this host offers.", discover, role=None)
    return ProtocolRoutes(path, (route,), _error, lambda config: config.openwop_host is host)


PROTOCOLS = (
    ProtocolRoutes("/openwop", ROUTES, _error),
    _well_known(host=False),
    _well_known(host=True),
    ProtocolRoutes("/v1/runs", HOST_ROUTES, _error, lambda config: config.openwop_host),
)
