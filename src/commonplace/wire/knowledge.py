"""The messages of the knowledge graph; they mirror their schemas exactly as `models` does."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from commonplace.wire.message import Maybe, Message, Name, Positive, Text, Unit, whole

#: The last instant that can be written with a year of four digits.
LAST_INSTANT = 253_402_300_799_999
MAX_CHARS = 1024  # of a subject, predicate, object or provenance

Instant = Annotated[int, Field(ge=0, le=LAST_INSTANT), BeforeValidator(whole)]
Term = Annotated[str, Field(min_length=1, max_length=MAX_CHARS)]


class TripleDocument(Message):
    schema_name = "memorywire/types/triple"

    id: Text
    agent_id: Name
    subject: Term
    predicate: Term
    object: Term
    valid_from: Instant
    valid_to: Instant | None = None
    confidence: Unit
    provenance: Maybe[Term] = None
    asserted_by: Text


class AssertResponse(TripleDocument):
    schema_name = "memorywire/operations/kg.assert.response"

    replaced: Maybe[TripleDocument] = None


class AssertRequest(Message):
    """The body of POST /v0/kg/assert."""

    schema_name = "memorywire/operations/kg.assert"

    agent_id: Name
    subject: Term
    predicate: Term
    object: Term
    confidence: Unit = 1.0
    provenance: Maybe[Term] = None
    valid_from: Maybe[Instant] = None


class KnowledgeResponse(Message):
    schema_name = "memorywire/operations/kg.response"

    subject: Term
    triples: list[TripleDocument]


class PathResponse(Message):
    schema_name = "memorywire/operations/kg.path.response"

    start: Term
    end: Term
    triples: list[TripleDocument]


class RetractRequest(Message):
    """The body of POST /v0/kg/retract."""

    schema_name = "memorywire/operations/kg.retract"

    agent_id: Name
    subject: Term
    predicate: Term


class EraseRequest(Message):
    """The body of POST /v0/kg/erase."""

    schema_name = "memorywire/operations/kg.erase"

    agent_id: Name
    subject: Term
    mentions: bool = False


class EraseResponse(Message):
    schema_name = "memorywire/operations/kg.erase.response"

    subject: Term
    erased: list[Text]
    backups: Maybe[list[Text]] = None
    backup_count: Maybe[Positive] = None


class Neighbor(Message):
    id: Text
    distance: Annotated[int, Field(ge=1, le=3), BeforeValidator(whole)]


class NeighborsResponse(Message):
    schema_name = "memorywire/operations/kg.neighbors.response"

    id: Text
    neighbors: list[Neighbor]
