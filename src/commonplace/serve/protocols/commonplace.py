"""The small set of tools that conversations begin with: what `full` has, at a quarter of its cost.

Every conversation pays for what is written here, so each word has to help a model choose or fill in a call.
"""

from __future__ import annotations

from commonplace.serve.mcp.compact import compact_tool
from commonplace.serve.mcp.tools import Tool
from commonplace.serve.protocols import full

POSITION = 0


def _tool(name: str, description: str, /, *, reviews: bool = False, **fields: str) -> Tool:
    whole = full.TOOLS.tool(name)
    assert whole is not None
    return compact_tool(whole, description, {**fields, "agent_id": ""}, reviews=reviews)


_TOOLS = (
    _tool(
        "remember",
        "Keep one thought for later conversations, complete in itself: names, not 'he'; dates, not 'yesterday'. Comes "
        "back: id; pending_approval if a person must agree first.",
        content="",
        type="semantic: facts, preferences (default). episodic: events. procedural: how-tos. emotional: feelings.",
        user_id="Whom it is about.",
        metadata="tags, title, project, anything.",
    ),
    _tool(
        "recall",
        "Find memories by meaning. Ask in plain words, before answering and before remembering. Comes back: results "
        "with relevance 0 to 1, best first; an empty list means nothing is known.",
        query="",
        k="At most so many; 5.",
        user_id="",
        filter='On metadata, e.g. {"project": "atlas"}.',
    ),
    _tool(
        "forget",
        "Hide wrong or unwanted memories. Comes back: forgotten_ids.",
        ids="",
        filter="Instead of ids.",
        hard_delete="Erase for good; only if the user asks.",
    ),
    _tool(
        "merge",
        "Make one memory of several that say the same. Comes back: canonical.",
        canonical="Id to keep.",
        duplicates="Other ids.",
        strategy="",
    ),
    _tool(
        "expire",
        "Tidy up by policy, if the user asks. Comes back: matched_count.",
        policy="All of older_than_days, no_recall_in_days, confidence_below, type that you give must hold.",
        action="",
    ),
    _tool("get", "Read one memory in full. Comes back: the memory.", id=""),
    _tool(
        "list",
        "Page through memories, newest first; to find something use recall. Comes back: memories, next_cursor.",
        type="",
        tag="",
        limit="",
        cursor="",
    ),
    _tool(
        "update",
        "Change a memory that is no longer right; old versions are kept. Comes back: the memory.",
        id="",
        content="",
        tags="Replace all.",
        metadata="Replaces all.",
        expires_at="ISO time.",
    ),
    _tool("history", "Every version of a memory, oldest first. Comes back: versions.", id=""),
    _tool(
        "graph_assert",
        "State a fact with one current value, e.g. auth-service runs_version 2.4.1; it ends the one before. Comes "
        "back: the fact.",
        subject="",
        predicate="",
        object="",
    ),
    _tool("graph_query", "Facts about a subject that hold now. Comes back: triples.", subject="", as_of="ISO time."),
    _tool("review_pending", "Writes that wait for a person; none is approved here. Comes back: reviews.", reviews=True),
)

TOOLS = full.TOOLS._replace(name="commonplace", tools=_TOOLS)
