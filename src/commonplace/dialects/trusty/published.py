"""The tools as trusty-memory lists them: names, order, descriptions and input schemas, to the letter.

The schemas under `wire/schemas/trusty` say more about every field; clients of trusty-memory expect exactly this.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

#: What a client of trusty-memory is told it talks to: the release whose tools these are.
NAME, VERSION = "trusty-memory", "0.1.10"

_TEXT: Document = {"type": "string"}
_COUNT: Document = {"type": "integer", "default": 10}
_ROOMS = (
    "Filter by room type (Frontend, Backend, Testing, Planning, Documentation, Research, Configuration, Meetings, "
    "General, or custom)"
)


def _text(description: str) -> Document:
    return {**_TEXT, "description": description}


#: Name → description, properties, and what is required besides the palace (None where nothing is said of it).
TOOLS: dict[str, tuple[str, Document, list[str] | None]] = {
    "memory_remember": (
        "Store a memory (drawer) in a palace room.",
        {
            "palace": _text("Palace ID (optional if server started with --palace)"),
            "text": _text("Memory content"),
            "room": _text("Room type (optional)"),
            "tags": {"type": "array", "items": _TEXT},
        },
        ["text"],
    ),
    "memory_recall": (
        "Recall memories using L0+L1+L2 progressive retrieval.",
        {"palace": _TEXT, "query": _TEXT, "top_k": _COUNT},
        ["query"],
    ),
    "memory_recall_deep": (
        "Deep recall using L3 full HNSW search.",
        {"palace": _TEXT, "query": _TEXT, "top_k": _COUNT},
        ["query"],
    ),
    "palace_create": ("Create a new memory palace.", {"name": _TEXT, "description": _TEXT}, ["name"]),
    "palace_list": ("List all palaces on this machine.", {}, None),
    "kg_assert": (
        "Assert a fact in the temporal knowledge graph.",
        {
            "palace": _TEXT, "subject": _TEXT, "predicate": _TEXT, "object": _TEXT,
            "confidence": {"type": "number", "default": 1.0}, "provenance": _TEXT,
        },
        ["subject", "predicate", "object"],
    ),
    "kg_query": (
        "Query active knowledge-graph triples for a subject.", {"palace": _TEXT, "subject": _TEXT}, ["subject"],
    ),
    "memory_list": (
        "List drawers in a palace, optionally filtered by room type or tag.",
        {
            "palace": _TEXT, "room": _text(_ROOMS), "tag": _text("Filter by tag"),
            "limit": {"type": "integer", "description": "Max results (default 50)"},
        },
        [],
    ),
    "memory_forget": (
        "Delete a drawer from a palace by its UUID.",
        {"palace": _TEXT, "drawer_id": _text("UUID of the drawer to delete")},
        ["drawer_id"],
    ),
    "palace_info": ("Get metadata and stats for a single palace.", {"palace": _TEXT}, []),
}  # fmt: skip


def published(name: str, *, palace: bool) -> Document:
    """A tool's input schema; with `palace`, its palace must be named because there is no default one."""
    _, properties, required = TOOLS[name]
    document: Document = {"type": "object", "properties": dict(properties)}
    if required is not None:
        named = ["palace"] if palace and "palace" in properties else []
        document["required"] = named + required
    return document
