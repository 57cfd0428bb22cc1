"""What tools of ours take that are no memorywire requests; each mirrors its schema, as all messages do."""

from __future__ import annotations

from commonplace.wire.models import JsonObject, Message
from commonplace.wire.record import MemoryType


class GetArguments(Message):
    schema_name = "mcp/get"

    agent_id: str
    id: str
    as_of: int | None = None


class HistoryArguments(Message):
    schema_name = "mcp/history"

    agent_id: str
    id: str


class ListArguments(Message):
    schema_name = "mcp/list"

    agent_id: str
    type: MemoryType | None = None
    tag: str | None = None
    user_id: str | None = None
    filter: JsonObject | None = None
    limit: int = 20
    cursor: str | None = None
    as_of: int | None = None


class GraphArguments(Message):
    schema_name = "mcp/graph_query"

    agent_id: str
    subject: str
    predicate: str | None = None
    as_of: int | None = None


class ReviewArguments(Message):
    schema_name = "mcp/review_pending"

    agent_id: str | None = None
