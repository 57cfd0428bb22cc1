"""AMP's tools, under the names of its document."""

from __future__ import annotations

from commonplace.__about__ import __version__
from commonplace.serve.mcp.schemas import answer, request
from commonplace.serve.mcp.table import Document, Hints, Session, Tool, ToolSet
from commonplace.wire.errors import Fault
from commonplace.wire.strict_json import dumps

_READS = Hints(read_only=True, destructive=False, idempotent=True)
_REPLACES = Hints(read_only=False, destructive=True, idempotent=False)
_DELETES = Hints(read_only=False, destructive=True, idempotent=True)


def server_info(session: Session) -> Document:
    return {"name": "commonplace-amp", "title": "Commonplace (AMP)", "version": __version__}


def explain(fault: Fault) -> str:
    """AMP's own error, as its other transports send it."""
    error = {"success": False, "error": {"code": fault.code, "message": fault.message}}
    return dumps(error)


def _tool(operation: str, title: str, description: str, hints: Hints) -> Tool:
    name = f"amp_{operation}"
    inputs = request(f"amp/operations/{operation}", hidden=("operation",), agent=False)
    outputs = answer(f"amp/operations/{operation}.response", nulls=False)
    return Tool(name, description, inputs, hints, f"commonplace.serve.mcp.amp:{operation}", outputs, title,
                explain=explain)  # fmt: skip


TOOLS = (
    _tool(
        "store", "Store a memory record",
        "Store a memory record: a lesson (something learned; needs title and content), a checkpoint (where work "
        "stands; needs agent and working_on), a snippet (code with file_path and language), or any other type with "
        "content. A record whose id is known replaces that record as a whole. Comes back: the record's id, and "
        "created, which is false when it was replaced.",
        _REPLACES,
    ),
    _tool(
        "search", "Search memory by meaning",
        "Search memory semantically, before you start work or when something may have been learned earlier. Ask in "
        "plain words; narrow by type, tags (all of them), project or agent. Comes back: results with id, score from 0 "
        "to 1 and record, the best first, and total.",
        _READS,
    ),
    _tool("get", "Read one record", "Get a record by the id that store, search or list gave. Comes back: record.",
          _READS),
    _tool(
        "delete", "Delete a record",
        "Delete a record by id. Use it when the user asks, or when what it says is wrong. Comes back: deleted, which "
        "is false when there was no such record.",
        _DELETES,
    ),
    _tool(
        "list", "List records",
        "List records by time, the newest first, with filters for type, agent, project and tags, and limit, offset "
        "and order for paging. Comes back: records, total and has_more.",
        _READS,
    ),
    _tool("status", "Server status",
          "Get the server's health, how many records of each type there are, and what it can do. Comes back: healthy, "
          "version, stats and capabilities.", _READS),
    _tool(
        "agent_status", "What an agent is doing",
        "Ask what another agent is doing, from its newest checkpoint: idle, in_progress or blocked. Comes back: "
        "status, current_task, checkpoint_count and last_updated.",
        _READS,
    ),
)  # fmt: skip

_INSTRUCTIONS = (
    "Agent memory after the Agent Memory Protocol. Search before you begin a task, store a lesson when you learned "
    "something that will matter again, and store a checkpoint when you stop or hand over work."
)

SET = ToolSet("amp", TOOLS, server_info, instructions=_INSTRUCTIONS)
