"""What tools of ours take that are no memorywire requests; each mirrors its schema, as all messages do."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from commonplace.wire.knowledge import Instant, Term
from commonplace.wire.message import JsonObject, Maybe, Message, Milliseconds, Name, Text, whole
from commonplace.wire.record import MemoryType


class GetArguments(Message):
    schema_name = "mcp/get"

    agent_id: Name
    id: Text
    as_of: Maybe[Milliseconds] = None


class HistoryArguments(Message):
    schema_name = "mcp/history"

    agent_id: Name
    id: Text


class ListArguments(Message):
    schema_name = "mcp/list"

    agent_id: Name
    type: Maybe[MemoryType] = None
    tag: Maybe[Name] = None
    user_id: Maybe[Name] = None
    filter: Maybe[JsonObject] = None
    limit: Annotated[int, Field(ge=1, le=1000), BeforeValidator(whole)] = 20
    cursor: Maybe[Name] = None
    as_of: Maybe[Milliseconds] = None


class GraphArguments(Message):
    schema_name = "mcp/graph_query"

    agent_id: Name
    subject: Term
    predicate: Maybe[Term] = None
    as_of: Maybe[Instant] = None


class ReviewArguments(Message):
    schema_name = "mcp/review_pending"

    agent_id: Maybe[Name] = None
