"""A tool as a conversation can afford it: a short description, the fields that are used, and answers without internals.

What is shown is less than what is taken: a compact tool takes every argument of the whole one, whose schema checks it.
Its answers say times as people write them and ids in their short form, and leave out what only machinery reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from commonplace.serve.mcp.tools import Document, McpSession, Schema, Tool
from commonplace.wire.short_ids import expand_id, shorten_id
from commonplace.wire.times import iso, milliseconds

#: Of the machinery: how a search went, and how a row is kept.
_INTERNAL = frozenset({
    "score", "fusion_used", "stores_queried", "latency_ms", "source_store", "supporting", "stores", "stored_at",
    "provenance", "demotion", "recalls", "last_recalled_at", "content_hash", "seq", "tenant", "signature",
    "strategy_used",
})  # fmt: skip
#: What goes without saying: a field, and the value that nearly every memory has.
_USUAL: Document = {"confidence": 1.0, "status": "live", "kind": "semantic", "importance": 0.5, "version": 1}
_NEVER = object()
_IDS = frozenset({"id", "ids", "canonical", "duplicates", "forgotten_ids", "supersedes", "merged_into"})
_TIMES = frozenset({
    "created_at", "updated_at", "expires_at", "event_time", "valid_from", "valid_to", "reviewed_at", "as_of",
})  # fmt: skip
_OPTIONAL = frozenset({"metadata", "tags", "aliases", "supersedes", "errors"})  # of which none are not worth a word
#: What somebody wrote is shown as it was written.
_VERBATIM = frozenset({"metadata", "content", "request", "diff", "explain", "errors"})


def compact_tool(whole: Tool, description: str, fields: Mapping[str, str], *, reviews: bool = False) -> Tool:
    """`fields` are those shown, each with its description or "" where its name says it. Ids of `reviews` stay long."""

    async def call(session: McpSession, arguments: Document) -> Document:
        answer = await whole.handler(session, expand_arguments(arguments))
        options = _AnswerOptions(session.agent, not reviews, bool(arguments.get("explain")))
        return _compact(answer, options, nested=False)

    return whole._replace(
        description=description, input_schema=_shown(whole.input_schema, fields), handler=call, output_schema=None
    )


def _shown(schema: Schema, fields: Mapping[str, str]) -> Schema:
    def make(session: McpSession) -> Document:
        whole = schema(session)
        shown = {}
        for name, description in fields.items():
            rules = whole["properties"][name]
            shown[name] = {key: rules[key] for key in ("type", "enum") if key in rules}
            if name in _TIMES:
                shown[name]["type"] = "string"
            if "items" in rules:
                shown[name]["items"] = {key: rules["items"][key] for key in ("type",) if key in rules["items"]}
            if description:
                shown[name]["description"] = description
        required = [name for name in whole.get("required", ()) if name in shown]
        return {"type": "object", "properties": shown, **({"required": required} if required else {})}

    return make


def expand_arguments(arguments: Document) -> Document:
    """Ids and times in the forms that the whole tool takes; what is neither is left for its schema to refuse."""
    return {name: _expanded(name, value) for name, value in arguments.items()}


def _expanded(name: str, value: Any) -> Any:
    if name in _IDS:
        if isinstance(value, list):
            return [expand_id(each) if isinstance(each, str) else each for each in value]
        return expand_id(value) if isinstance(value, str) else value
    if name in _TIMES and isinstance(value, str):
        return milliseconds(value, name)
    return value


class _AnswerOptions(NamedTuple):
    """By whom and how, as far as it changes what is shown."""

    agent: str
    short_ids: bool
    explained: bool  # whoever asks to have a search explained is shown its scores


def _compact(answer: Document, options: _AnswerOptions, *, nested: bool) -> Document:
    """What goes without saying is left out of each of many, and said of one that was asked for by its id."""
    shown: Document = {}
    for name, value in answer.items():
        if name == "stores" and not options.explained and (failed := _with_errors(value)):
            shown[name] = failed
            continue
        if value is None or (name in _INTERNAL and not options.explained) or (name in _OPTIONAL and not value):
            continue
        if nested and (value == _USUAL.get(name, _NEVER) or (name == "agent_id" and value == options.agent)):
            continue
        shown[name] = _compact_value(name, value, options)
    return shown


def _with_errors(stores: Any) -> list[Document]:
    """Of what each store did what went wrong: that a copy is left of what was erased is no machinery."""
    return [each for each in stores or () if isinstance(each, dict) and each.get("error")]


def _compact_value(name: str, value: Any, options: _AnswerOptions) -> Any:
    if name in _VERBATIM:
        return value
    if name in _TIMES and isinstance(value, int):
        return iso(value)
    if name in _IDS and options.short_ids:
        return [shorten_id(each) for each in value] if isinstance(value, list) else shorten_id(value)
    if isinstance(value, dict):
        return _compact(value, options, nested=True)
    if isinstance(value, list):
        return [_compact(each, options, nested=True) if isinstance(each, dict) else each for each in value]
    return value
