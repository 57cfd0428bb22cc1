"""The examples of the trusty-memory guide, restated: every request as it is sent, every answer as it is shown.

`DRAWER` stands for the id that a drawer gets, `SCORE` for a similarity, `NOW` for a time, `FOLDER` for a directory.
"""

from __future__ import annotations

from typing import Any

DRAWER, SCORE, NOW, FOLDER = object(), object(), object(), object()
SHOWN_SCORE = 0.91  # of the one drawer that is recalled

INITIALIZE = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05", '
    '"capabilities": {}, "clientInfo": {"name": "open-mpm", "version": "1.0.0"}}}'
)
INITIALIZED = '{"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}'
SERVER = {
    "protocolVersion": "2024-11-05",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "trusty-memory", "version": "0.1.10", "default_palace": "my-project"},
}
LIST = '{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}'

_ROOMS = "Frontend, Backend, Testing, Planning, Documentation, Research, Configuration, Meetings, General, or custom"

#: The whole of `result` of tools/list on a server without a default palace.
TOOLS: dict[str, Any] = {
    "tools": [
        {
            "name": "memory_remember",
            "description": "Store a memory (drawer) in a palace room.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {
                        "type": "string", "description": "Palace ID (optional if server started with --palace)",
                    },
                    "text": {"type": "string", "description": "Memory content"},
                    "room": {"type": "string", "description": "Room type (optional)"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["palace", "text"],
            },
        },
        {
            "name": "memory_recall",
            "description": "Recall memories using L0+L1+L2 progressive retrieval.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {"type": "string"}, "query": {"type": "string"},
                    "top_k": {"type": "integer", "default": 10},
                },
                "required": ["palace", "query"],
            },
        },
        {
            "name": "memory_recall_deep",
            "description": "Deep recall using L3 full HNSW search.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {"type": "string"}, "query": {"type": "string"},
                    "top_k": {"type": "integer", "default": 10},
                },
                "required": ["palace", "query"],
            },
        },
        {
            "name": "palace_create",
            "description": "Create a new memory palace.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
                "required": ["name"],
            },
        },
        {
            "name": "palace_list",
            "description": "List all palaces on this machine.",
            "inputSchema": {"type": "object", "properties": {}},
        },
        {
            "name": "kg_assert",
            "description": "Assert a fact in the temporal knowledge graph.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {"type": "string"}, "subject": {"type": "string"}, "predicate": {"type": "string"},
                    "object": {"type": "string"}, "confidence": {"type": "number", "default": 1.0},
                    "provenance": {"type": "string"},
                },
                "required": ["palace", "subject", "predicate", "object"],
            },
        },
        {
            "name": "kg_query",
            "description": "Query active knowledge-graph triples for a subject.",
            "inputSchema": {
                "type": "object",
                "properties": {"palace": {"type": "string"}, "subject": {"type": "string"}},
                "required": ["palace", "subject"],
            },
        },
        {
            "name": "memory_list",
            "description": "List drawers in a palace, optionally filtered by room type or tag.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {"type": "string"},
                    "room": {"type": "string", "description": f"Filter by room type ({_ROOMS})"},
                    "tag": {"type": "string", "description": "Filter by tag"},
                    "limit": {"type": "integer", "description": "Max results (default 50)"},
                },
                "required": ["palace"],
            },
        },
        {
            "name": "memory_forget",
            "description": "Delete a drawer from a palace by its UUID.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "palace": {"type": "string"},
                    "drawer_id": {"type": "string", "description": "UUID of the drawer to delete"},
                },
                "required": ["palace", "drawer_id"],
            },
        },
        {
            "name": "palace_info",
            "description": "Get metadata and stats for a single palace.",
            "inputSchema": {
                "type": "object",
                "properties": {"palace": {"type": "string"}},
                "required": ["palace"],
            },
        },
    ]
}  # fmt: skip

GATEWAY = "The API gateway validates JWT tokens using RS256."
_TAGS = ["auth", "jwt", "api-gateway"]

#: (request, the answer in `content[0].text`), in the order of the guide.
CALLS: list[tuple[str, dict[str, Any]]] = [
    (
        '{"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": "memory_remember", "arguments": '
        '{"palace": "my-project", "text": "The API gateway validates JWT tokens using RS256.", "room": "Backend", '
        '"tags": ["auth", "jwt", "api-gateway"]}}}',
        {"drawer_id": DRAWER, "palace": "my-project", "status": "stored"},
    ),
    (
        '{"jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": {"name": "memory_recall", "arguments": '
        '{"palace": "my-project", "query": "How does token validation work?", "top_k": 5}}}',
        {
            "palace": "my-project", "query": "How does token validation work?",
            "results": [{
                "drawer_id": DRAWER, "content": GATEWAY, "score": SCORE, "layer": 2, "tags": _TAGS, "importance": 0.5,
            }],
        },
    ),
    (
        '{"jsonrpc": "2.0", "id": 12, "method": "tools/call", "params": {"name": "memory_recall_deep", "arguments": '
        '{"palace": "my-project", "query": "deployment configuration details", "top_k": 20}}}',
        {"palace": "my-project", "query": "deployment configuration details", "results": []},
    ),
    (
        '{"jsonrpc": "2.0", "id": 20, "method": "tools/call", "params": {"name": "palace_create", "arguments": '
        '{"name": "client-acme", "description": "Memories for the Acme client engagement"}}}',
        {"palace_id": "client-acme", "status": "created"},
    ),
    (
        '{"jsonrpc": "2.0", "id": 21, "method": "tools/call", "params": {"name": "palace_list", "arguments": {}}}',
        {"palaces": ["agent-pm", "client-acme", "my-project"]},
    ),
    (
        '{"jsonrpc": "2.0", "id": 30, "method": "tools/call", "params": {"name": "kg_assert", "arguments": '
        '{"palace": "my-project", "subject": "auth-service", "predicate": "deployed_version", "object": "2.4.1", '
        '"confidence": 0.95, "provenance": "deploy-log-2026-05-10"}}}',
        {"status": "asserted"},
    ),
    (
        '{"jsonrpc": "2.0", "id": 31, "method": "tools/call", "params": {"name": "kg_query", "arguments": '
        '{"palace": "my-project", "subject": "auth-service"}}}',
        {
            "subject": "auth-service",
            "triples": [{
                "subject": "auth-service", "predicate": "deployed_version", "object": "2.4.1", "valid_from": NOW,
                "valid_to": None, "confidence": 0.95, "provenance": "deploy-log-2026-05-10",
            }],
        },
    ),
    (
        '{"jsonrpc": "2.0", "id": 40, "method": "tools/call", "params": {"name": "memory_list", "arguments": '
        '{"palace": "my-project", "room": "Backend", "tag": "auth", "limit": 20}}}',
        {
            "palace": "my-project",
            "drawers": [{
                "drawer_id": DRAWER, "content": GATEWAY, "importance": 0.5, "tags": _TAGS, "created_at": NOW,
            }],
        },
    ),
    (
        '{"jsonrpc": "2.0", "id": 41, "method": "tools/call", "params": {"name": "memory_forget", "arguments": '
        '{"palace": "my-project", "drawer_id": "a3f1c2d4-1234-5678-9abc-def012345678"}}}',
        {"status": "deleted", "drawer_id": "a3f1c2d4-1234-5678-9abc-def012345678", "palace": "my-project"},
    ),
    (
        '{"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": {"name": "palace_info", "arguments": '
        '{"palace": "my-project"}}}',
        {"id": "my-project", "name": "my-project", "drawer_count": 142, "data_dir": FOLDER},
    ),
]  # fmt: skip
