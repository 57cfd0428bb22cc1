"""Our own set: the five operations, single memories, the graph, and what waits for review."""

from __future__ import annotations

from typing import Any

from commonplace.__about__ import __version__
from commonplace.serve.mcp.schemas import MEMORY_ID, answer, request
from commonplace.serve.mcp.table import Document, Hints, Prompt, Resource, Session, Tool, ToolSet

_HANDLERS = "commonplace.serve.mcp.ours"
_FUNCTIONS = {"list": "listing"}
_READS = Hints(read_only=True, destructive=False, idempotent=True)
_ADDS = Hints(read_only=False, destructive=False, idempotent=False)
_CHANGES = Hints(read_only=False, destructive=True, idempotent=True)

INSTRUCTIONS = (
    "A memory that outlives this conversation. Recall before you answer anything that may depend on earlier work, "
    "on the user's preferences or on decisions made before; an empty result means that nothing is known, and results "
    "with a relevance below about 0.1 are probably no answer either. Remember what will matter later: facts, "
    "preferences, decisions and their reasons, how-tos. Keep one thought per memory, in words that make sense on their "
    "own. When a fact changes, update the old memory instead of adding another."
)


def server_info(session: Session) -> Document:
    return {"name": "commonplace", "title": "Commonplace", "version": __version__}


def _tool(name: str, title: str, description: str, inputs: str, outputs: str, hints: Hints, **more: Any) -> Tool:
    return Tool(
        name,
        description,
        request(inputs, **more),
        hints,
        f"{_HANDLERS}:{_FUNCTIONS.get(name, name)}",
        answer(outputs, nulls=False),
        title,
    )


_OPERATIONS = "memorywire/operations/"

TOOLS = (
    _tool(
        "remember", "Keep a memory",
        "Keep something for later conversations: a fact, a preference, a decision with its reason, an event, a how-to. "
        "Use it when the user says something worth knowing next time, or asks you to remember. Write one thought per "
        "call, complete in itself: names instead of 'he' or 'it', dates instead of 'yesterday'. type: semantic for "
        "facts and preferences, episodic for what happened, procedural for how something is done, emotional for how "
        "someone felt. Put tags, title or project into metadata. Comes back: the new memory's id; pending_approval "
        "is true when a person has to agree first.",
        f"{_OPERATIONS}remember", f"{_OPERATIONS}remember.response", _ADDS,
        hidden=("embedding",), defaults={"type": "semantic"},
    ),
    _tool(
        "recall", "Find memories",
        "Find what is remembered about something, by meaning and by words. Use it before answering whenever earlier "
        "conversations, preferences or decisions could matter, and before remembering something that may be known "
        "already. Ask in plain words, as you would ask a person. Comes back: results, the best first, each with id, "
        "content, created_at and relevance from 0 to 1: below about 0.1 it is probably not about what you asked. An "
        "empty list means that nothing is known, not that something failed.",
        f"{_OPERATIONS}recall", f"{_OPERATIONS}recall.response", _READS,
    ),
    _tool(
        "forget", "Forget memories",
        "Remove memories that are wrong, obsolete or unwanted. Name them by ids (from recall or list) or by a filter; "
        "a call that names nothing is refused. They are hidden at once and can be brought back by the operator, "
        "unless hard_delete erases them for good: only when the user asks for that. Comes back: forgotten_ids.",
        f"{_OPERATIONS}forget", f"{_OPERATIONS}forget.response", _CHANGES,
    ),
    _tool(
        "merge", "Merge duplicates",
        "Make one memory of several that say the same. Give the id to keep as canonical and the others as duplicates; "
        "strategy says whose words stay. Comes back: the id that remains and how many were folded into it.",
        f"{_OPERATIONS}merge", f"{_OPERATIONS}merge.response", _CHANGES,
    ),
    _tool(
        "expire", "Expire old memories",
        "Clean up by a policy: older than so many days, not recalled for so long, below some confidence, of one type; "
        "all conditions given must hold, and at least one must be given. action: forget, archive (out of recall, "
        "still readable) or demote (ranked lower). Use it when the user asks to tidy up. Comes back: how many matched.",
        f"{_OPERATIONS}expire", f"{_OPERATIONS}expire.response", _CHANGES,
    ),
    _tool(
        "get", "Read one memory",
        "Read one memory in full by its id, with its metadata and version; as_of reads it as it stood at an earlier "
        "moment. Use it when a recall result or a reference names an id. Comes back: the memory.",
        "mcp/get", "memorywire/types/memory", _READS,
    ),
    _tool(
        "list", "List memories",
        "Read memories page by page, the newest first, optionally of one type, tag, person or filter. Use it to see "
        "what there is when no question is asked; to find something use recall. Comes back: memories, and next_cursor "
        "when there are more.",
        "mcp/list", f"{_OPERATIONS}list.response", _READS,
    ),
    _tool(
        "update", "Change a memory",
        "Change a memory that is no longer right: its content, tags, metadata, confidence or expiry. What you leave "
        "out stays; metadata and tags replace all of the old ones; earlier versions are kept. Prefer it to remembering "
        "a second, contradicting memory. Comes back: the memory as it is now.",
        f"{_OPERATIONS}update", "memorywire/types/memory", _CHANGES, also={"id": MEMORY_ID},
    ),
    _tool(
        "history", "See how a memory changed",
        "Read every version of one memory, the oldest first. Use it to see what was believed before, and since when. "
        "Comes back: versions.",
        "mcp/history", f"{_OPERATIONS}history.response", _READS,
    ),
    _tool(
        "graph_assert", "State a fact in the graph",
        "State one fact as subject, predicate and object, such as 'auth-service', 'runs_version', '2.4.1'. What was "
        "stated before about the same subject and predicate ends now and stays in the past. Use it for facts with one "
        "current value that change over time; what has several values at once needs a predicate for each. Comes back: "
        "the fact with the moment it became valid, and as replaced what it ended.",
        f"{_OPERATIONS}kg.assert", f"{_OPERATIONS}kg.assert.response", _CHANGES,
    ),
    _tool(
        "graph_query", "Ask the graph",
        "Read what the graph says about a subject: every fact that holds now, or that held at as_of. Comes back: "
        "triples with subject, predicate, object, valid_from and confidence.",
        "mcp/graph_query", f"{_OPERATIONS}kg.response", _READS,
    ),
    _tool(
        "review_pending", "See what waits for approval",
        "See the writes that wait for a person's approval, and what each would change. Use it when a call answered "
        "pending_approval, or when the user asks what is waiting. Nothing is approved here: a person decides in the "
        "review page or with `commonplace reviews`. Comes back: reviews.",
        "mcp/review_pending", f"{_OPERATIONS}reviews.response", _READS, agent=False,
    ),
)  # fmt: skip

RESOURCES = (
    Resource(
        "memory://status", "status", "What is in this memory",
        "How many memories there are, of which agents, and what waits for review.",
        r"memory://status", "commonplace.serve.mcp.reading:status",
    ),
    Resource(
        "memory://{agent}/{id}", "memory", "One memory", "A memory of an agent, by its id.",
        r"memory://[^/?#]+/(?!recall(\?|\Z))[^/?#]+", "commonplace.serve.mcp.reading:memory",
    ),
    Resource(
        "memory://{agent}/recall{?q}", "recall", "What is remembered about something",
        "The memories of an agent that answer a question, as a recall response: memory://default/recall?q=deployment.",
        r"memory://[^/?#]+/recall\?[^#]+", "commonplace.serve.mcp.reading:recall",
    ),
)  # fmt: skip

PROMPTS = (
    Prompt(
        "recall_about", "What do you remember about …", "Say what is remembered about a topic, and since when.",
        (("topic", "What to look for, in plain words.", True),), "commonplace.serve.mcp.prompting:about",
    ),
    Prompt(
        "keep_this", "Keep this", "Keep something for later, in words that make sense on their own.",
        (("what", "What to keep.", True), ("tags", "Tags, parted by commas.", False)),
        "commonplace.serve.mcp.prompting:keep",
    ),
    Prompt(
        "weekly_review", "Weekly review", "Go through what was kept lately: sum up, merge, correct and forget.",
        (("days", "How many days back to look; 7 when left out.", False),), "commonplace.serve.mcp.prompting:review",
    ),
)  # fmt: skip

CAPABILITIES: Document = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
COMPLETER = "commonplace.serve.mcp.reading:complete"

SET = ToolSet(
    "commonplace", TOOLS, server_info, CAPABILITIES, INSTRUCTIONS,
    resources=RESOURCES, prompts=PROMPTS, completer=COMPLETER,
)  # fmt: skip
