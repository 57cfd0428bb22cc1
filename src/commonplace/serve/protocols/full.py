"""Every tool of ours, with the requests and answers of memorywire to the field, and its resources: for whoever wants
more than the small set, which is in `commonplace.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from commonplace.__about__ import __version__
from commonplace.serve.mcp import tools as mcp
from commonplace.serve.mcp.prompts import INSTRUCTIONS, PROMPTS
from commonplace.serve.mcp.tools import ADDS, CHANGES, ENSURES, READS, Document, McpSession, Resource, without_nulls
from commonplace.serve.protocols.memorywire import OPERATIONS, perform, perform_by_id
from commonplace.serve.routes import NOTHING
from commonplace.wire.errors import ValidationError
from commonplace.wire.validate import check

POSITION = 1  # beside the small set


def _call(operation: str, agent: bool = True, defaults: Mapping[str, Any] = NOTHING) -> mcp.Handler:
    """One operation as a tool: models seldom name the agent, which is then the session's."""

    async def call(session: McpSession, arguments: Document) -> Document:
        request = {**({"agent_id": session.agent} if agent else {}), **defaults, **without_nulls(arguments)}
        answer = await perform(await session.engine(), session.who, operation, request)
        if not isinstance(answer, dict):
            from commonplace.wire.models import dump

            answer = dump(answer)
        return without_nulls(answer)

    return call


_get, _find, _query = _call("get"), _call("recall"), _call("kg_query")


def _call_by_id(operation: str) -> mcp.Handler:
    async def call(session: McpSession, arguments: Document) -> Document:
        given = {"agent_id": session.agent, **without_nulls(arguments)}
        check(f"{OPERATIONS}history", {name: given[name] for name in ("agent_id", "id") if name in given})
        return await perform_by_id(await session.engine(), session.who, operation, given.pop("id"), given)

    return call


_update = _call_by_id("update")
_REMOVE_EXPIRY = {"description": "Keep it for good: take its expiry away.", "type": "boolean", "default": False}


async def _update_tool(session: McpSession, arguments: Document) -> Document:
    """A null of a model's means nothing, so taking an expiry away has a word of its own here."""
    given = without_nulls(arguments)
    if not given.pop("remove_expiry", False):
        return await _update(session, given)
    if "expires_at" in given:
        raise ValidationError("give expires_at or remove_expiry, not both", field="expires_at")
    request = {"agent_id": session.agent, **given, "expires_at": None}
    return await perform_by_id(await session.engine(), session.who, "update", str(request.pop("id", "")), request)


async def _query_tool(session: McpSession, arguments: Document) -> Document:
    found = await _query(session, arguments)
    return {**found, "triples": [without_nulls(triple) for triple in found["triples"]]}


def _tool(
    name: str, title: str, takes: str, hints: mcp.Hints, description: str, *, response: str = "", **more: Any
) -> mcp.Tool:
    """`takes` names the schema of the request; `more` is its handler, or what its arguments are made with."""
    handler = more.pop("handler", None) or _call(name, more.get("agent", True), more.get("defaults", {}))
    arguments = mcp.arguments_schema(f"{OPERATIONS}{takes}", **more)
    result = mcp.result_schema(f"memorywire/{response or f'operations/{takes}.response'}", nulls=False)
    return mcp.Tool(name, description, arguments, hints, handler, result, title)


_MEMORY_ID = {"description": "The memory's id, as recall, list or remember gave it.", "type": "string", "minLength": 1}

_TOOLS = (
    _tool(
        "remember", "Keep a memory", "remember", ADDS,
        "Keep something for later conversations: a fact, a preference, a decision with its reason, an event, a how-to. "
        "Use it when the user says something worth knowing next time, or asks you to remember. Write one thought per "
        "call, complete in itself: names instead of 'he' or 'it', dates instead of 'yesterday'. type: semantic for "
        "facts and preferences, episodic for what happened, procedural for how something is done, emotional for how "
        "someone felt. Put tags, title or project into metadata. Comes back: the new memory's id; pending_approval "
        "is true when a person has to agree first.",
        hidden=("embedding",), defaults={"type": "semantic"},
    ),
    _tool(
        "recall", "Find memories", "recall", READS,
        "Find what is remembered about something, by meaning and by words. Use it before answering whenever earlier "
        "conversations, preferences or decisions could matter, and before remembering something that may be known "
        "already. Ask in plain words, as you would ask a person. Comes back: results, the best first, each with id, "
        "content, created_at and relevance from 0 to 1: below about 0.1 it is probably not about what you asked. An "
        "empty list means that nothing is known, not that something failed.",
    ),
    _tool(
        "forget", "Forget memories", "forget", CHANGES,
        "Remove memories that are wrong, obsolete or unwanted. Name them by ids (from recall or list) or by a filter; "
        "a call that names nothing is refused. They are hidden at once, but their history stays; "
        "hard_delete erases them for good, history and all: only when the user asks for that. Comes back: "
        "forgotten_ids.",
    ),
    _tool(
        "merge", "Merge duplicates", "merge", CHANGES,
        "Make one memory of several that say the same. Give the id to keep as canonical and the others as duplicates; "
        "strategy says whose words stay. Comes back: the id that remains and how many were folded into it.",
    ),
    _tool(
        "expire", "Expire old memories", "expire", CHANGES,
        "Clean up by a policy: older than so many days, not recalled for so long, below some confidence, of one type; "
        "all conditions given must hold, and at least one must be given. action: forget, archive (out of recall, "
        "still readable) or demote (ranked lower). Use it when the user asks to tidy up. Comes back: how many matched.",
    ),
    _tool(
        "get", "Read one memory", "get", READS,
        "Read one memory in full by its id, with its metadata and version; as_of reads it as it stood at an earlier "
        "moment. Use it when a recall result or a reference names an id. Comes back: the memory.",
        response="types/memory", handler=_get,
    ),
    _tool(
        "list", "List memories", "list", READS,
        "Read memories page by page, the newest first, optionally of one type, tag, person or filter. Use it to see "
        "what there is when no question is asked; to find something use recall. Comes back: memories, and next_cursor "
        "when there are more.",
        defaults={"limit": 20},
    ),
    _tool(
        "update", "Change a memory", "update", CHANGES,
        "Change a memory that is no longer right: its content, tags, metadata, confidence or expiry. What you leave "
        "out stays, and so does the expiry unless remove_expiry is true; metadata and tags replace all of the old "
        "ones; earlier versions are kept. Prefer it to remembering "
        "a second, contradicting memory. Comes back: the memory as it is now; pending_approval is true when a person "
        "has to agree first, and nothing has changed yet.",
        handler=_update_tool, also={"id": _MEMORY_ID, "remove_expiry": _REMOVE_EXPIRY},
    ),
    _tool(
        "history", "See how a memory changed", "history", READS,
        "Read every version of one memory, the oldest first. Use it to see what was believed before, and since when. "
        "Comes back: versions.",
    ),
    _tool(
        "graph_assert", "State a fact in the graph", "kg.assert", CHANGES,
        "State one fact as subject, predicate and object, such as 'auth-service', 'runs_version', '2.4.1'. What was "
        "stated before about the same subject and predicate ends now and stays in the past. Use it for facts with one "
        "current value that change over time; what has several values at once needs a predicate for each. Comes back: "
        "the fact with the moment it became valid, and as replaced what it ended; pending_approval is true when a "
        "person has to agree first, and nothing is stated yet.",
        handler=_call("kg_assert"),
    ),
    _tool(
        "graph_query", "Ask the graph", "graph_query", READS,
        "Read what the graph says about a subject: every fact that holds now, or that held at as_of. Comes back: "
        "triples with subject, predicate, object, valid_from and confidence.",
        response="operations/kg.response", handler=_query_tool,
    ),
    _tool(
        "review_pending", "See what waits for approval", "review_pending", READS,
        "See the writes that wait for a person's approval, and what each would change. Use it when a call answered "
        "pending_approval, or when the user asks what is waiting. Nothing is approved here: a person decides in the "
        "review page or with `commonplace review`. Comes back: reviews.",
        response="operations/reviews.response", agent=False,
    ),
)  # fmt: skip


# resources


async def _read_status(session: McpSession, uri: str) -> Document:
    found = await perform(await session.engine(), session.who, "status", {})
    answer = {"version": found["version"], "agent": session.agent}
    answer |= {name: found[name] for name in ("agents", "memories", "pending_reviews")}
    return answer | ({"embedder": found["embedder"]["name"]} if "embedder" in found else {})


async def _read_memory(session: McpSession, uri: str) -> Document:
    agent, id = _uri_parts(uri)
    return await _get(session, {"agent_id": agent, "id": id})


async def _read_recall(session: McpSession, uri: str) -> Document:
    """The paper's resource mode: the URI carries the query, the body is the whole response."""
    known = ("q", "k", "user_id")
    given = dict(parse_qsl(urlsplit(uri).query, keep_blank_values=True))
    if unknown := sorted(given.keys() - set(known)):
        raise ValidationError(f"recall takes {', '.join(known)}, not {unknown[0]!r:.80}")
    arguments: Document = {"agent_id": _uri_parts(uri)[0], "query": given.pop("q", ""), **given}
    if given.get("k", "").isdecimal() and len(given["k"]) < 6:
        arguments["k"] = int(given["k"])
    return await _find(session, arguments)


def _uri_parts(uri: str) -> tuple[str, str]:
    """Agent and what follows it. The agent is no host name, so its letters keep their case."""
    agent, _, rest = uri.removeprefix("memory://").partition("?")[0].partition("/")
    return unquote(agent), unquote(rest)


async def _complete(session: McpSession, ref: Document, name: str, typed: str) -> list[str]:
    """Agents by name, where an address of ours wants one."""
    if ref.get("type") != "ref/resource" or not str(ref.get("uri")).startswith("memory://") or name != "agent":
        return []
    names = await (await session.engine()).agent_names(session.who)
    mine = {session.agent} if session.who.may_use(session.agent) else set()
    return sorted(agent for agent in mine.union(names) if agent.startswith(typed))


_RESOURCES = (
    Resource("memory://status", "status", "What is in this memory",
             "How many memories there are, of which agents, and what waits for review.",
             r"memory://status", _read_status),
    Resource("memory://{agent}/{id}", "memory", "One memory", "A memory of an agent, by its id.",
             r"memory://[^/?#]+/(?!recall(\?|\Z))[^/?#]+", _read_memory),
    Resource("memory://{agent}/recall{?q}", "recall", "What is remembered about something",
             "The memories of an agent that answer a question, as a recall response: "
             "memory://default/recall?q=deployment.",
             r"memory://[^/?#]+/recall\?[^#]+", _read_recall),
)  # fmt: skip


#: For those who ask for every tool of ours: each costs every conversation some of its room.
_MORE_TOOLS = (
    _tool(
        "procedure_show", "See where a procedure stands", "procedure.show", READS,
        "Read a procedure that is a state machine, by its id from recall, list or remember: where it stands and what "
        "can be fired from there. Comes back: name, state, states, version, and as possible each trigger with its "
        "dest and guards.",
        response="operations/procedure.response",
    ),
    _tool(
        "procedure_fire", "Move a procedure on", "procedure.fire", CHANGES,
        "Fire a trigger of a procedure, which moves it to its next state and keeps the state before in its history. "
        "Give a fact, true or false, for every guard of the trigger. What is not possible from here is refused with "
        "what is. Comes back: the procedure as it stands now; pending_approval is true when a person has to agree "
        "first.",
        handler=_call_by_id("procedure_fire"), also={"id": _MEMORY_ID}, response="operations/procedure.response",
    ),
    _tool(
        "procedure_reset", "Start a procedure again", "procedure.reset", CHANGES,
        "Put a procedure back to where it starts, to go through it once more. Comes back: the procedure as it stands "
        "now.",
        handler=_call_by_id("procedure_reset"), also={"id": _MEMORY_ID}, response="operations/procedure.response",
    ),
    _tool(
        "undo", "Take back what was done", "undo", ENSURES,
        "Bring memories back that were forgotten, archived, ranked lower, or merged into another, by their ids; or "
        "with run_id everything that one run of a background job did. What was erased cannot come back. Asking twice "
        "does no harm. Comes back: restored_ids, unchanged_ids (those that were there already), and errors.",
        agent=False,
    ),
    _tool(
        "procedure_draw", "Draw a procedure", "procedure.draw", READS,
        "Draw a procedure as a Mermaid state diagram or as SVG. Comes back: drawing.", defaults={"format": "mermaid"},
    ),
)  # fmt: skip

TOOLS = mcp.ToolSet(
    "full",
    (*_TOOLS, *_MORE_TOOLS),
    lambda session: {"name": "commonplace", "title": "Commonplace", "version": __version__},
    {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
    INSTRUCTIONS,
    _RESOURCES,
    PROMPTS,
    _complete,
)
