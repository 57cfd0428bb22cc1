"""AMP, the Agent Memory Protocol: its HTTP routes, and its tools under the names of its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.__about__ import __version__
from commonplace.serve.mcp import tools as mcp
from commonplace.serve.mcp.tools import CHANGES, READS, REPLACES, Document, without_nulls
from commonplace.serve.query import parameters
from commonplace.serve.routes import ProtocolRoutes, Route, dialect_handler
from commonplace.wire.errors import Fault
from commonplace.wire.strict_json import dumps

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.wire.record import Principal

POSITION = 2
_OPERATIONS = "amp/operations/"


async def perform(engine: Engine, who: Principal, operation: str, request: Any) -> Document:
    from commonplace.dialects.amp import Amp  # which loads the engine: not before the first call

    answer: Document = await getattr(Amp(engine, who), operation)(request)
    return answer


def _error(fault: Fault) -> Document:
    from commonplace.dialects.amp import envelope

    return envelope(fault)


def _explain(fault: Fault) -> str:
    return dumps(_error(fault))


def _route(method: str, path: str, operation: str, summary: str, **more: Any) -> Route:
    if method == "POST":
        more |= {"request": _OPERATIONS + operation, "needs_body": f"{operation} needs a JSON object as its body"}
    handler, response = dialect_handler(perform, operation), f"{_OPERATIONS}{operation}.response"
    return Route(method, f"/amp/{path}", handler, f"amp_{operation}", summary, "AMP", response=response, **more)


_LISTED_BY = ("type", "agent", "project", "tags", "limit", "offset", "order")
_AGENT = parameters(f"{_OPERATIONS}get", "agent")
ROUTES = (
    _route("POST", "store", "store", "Create a record or replace it.", role="writer"),
    _route("POST", "search", "search", "Find records by meaning.", embeds=True),
    _route("GET", "records", "list", "List records by time.", query=parameters(f"{_OPERATIONS}list", *_LISTED_BY)),
    _route("GET", "records/{id:path}", "get", "Read one record.", query=_AGENT),
    _route("DELETE", "records/{id:path}", "delete", "Remove a record.", role="writer", query=_AGENT),
    _route("GET", "status", "status", "Health and statistics."),
    _route("GET", "agents/{agent:path}/status", "agent_status", "What an agent is doing."),
)
PROTOCOLS = (ProtocolRoutes("/amp", ROUTES, _error),)


def _tool(operation: str, title: str, hints: mcp.Hints, description: str) -> mcp.Tool:
    async def call(session: mcp.McpSession, arguments: Document) -> Document:
        answer = await perform(await session.engine(), session.who, operation, without_nulls(arguments))
        if operation == "status":
            answer = {name: without_nulls(part) if isinstance(part, dict) else part for name, part in answer.items()}
        return without_nulls(answer)

    arguments = mcp.arguments_schema(_OPERATIONS + operation, hidden=("operation",), agent=False)
    result = mcp.result_schema(f"{_OPERATIONS}{operation}.response", nulls=False)
    return mcp.Tool(f"amp_{operation}", description, arguments, hints, call, result, title, explain=_explain)


_TOOLS = (
    _tool(
        "store", "Store a memory record", REPLACES,
        "Store a memory record: a lesson (something learned; needs title and content), a checkpoint (where work "
        "stands; needs agent and working_on), a snippet (code with file_path and language), or any other type with "
        "content. A record whose id is known replaces that record as a whole. Comes back: the record's id, and "
        "created, which is false when it was replaced.",
    ),
    _tool(
        "search", "Search memory by meaning", READS,
        "Search memory semantically, before you start work or when something may have been learned earlier. Ask in "
        "plain words; narrow by type, tags (all of them), project or agent. Comes back: results with id, score from 0 "
        "to 1 and record, the best first, and total.",
    ),
    _tool(
        "get", "Read one record", READS,
        "Get a record by the id that store, search or list gave. Comes back: record.",
    ),
    _tool(
        "delete", "Delete a record", CHANGES,
        "Delete a record by id. Use it when the user asks, or when what it says is wrong. Comes back: deleted, which "
        "is false when there was no such record.",
    ),
    _tool(
        "list", "List records", READS,
        "List records by time, the newest first, with filters for type, agent, project and tags, and limit, offset "
        "and order for paging. Comes back: records, total and has_more.",
    ),
    _tool(
        "status", "Server status", READS,
        "Get the server's health, how many records of each type there are, and what it can do. Comes back: healthy, "
        "version, stats and capabilities.",
    ),
    _tool(
        "agent_status", "What an agent is doing", READS,
        "Ask what another agent is doing, from its newest checkpoint: idle, in_progress or blocked. Comes back: "
        "status, current_task, checkpoint_count and last_updated.",
    ),
)  # fmt: skip

TOOLS = mcp.ToolSet(
    "amp",
    _TOOLS,
    lambda session: {"name": "commonplace-amp", "title": "Commonplace (AMP)", "version": __version__},
    instructions="Agent memory after the Agent Memory Protocol. Search before you begin a task, store a lesson when "
    "you learned something that will matter again, and store a checkpoint when you stop or hand over work.",
)
