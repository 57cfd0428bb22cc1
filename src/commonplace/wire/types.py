"""The four memory types as records, and the state machine a procedure may be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from commonplace.wire.message import Integer, JsonObject, Maybe, Message, Milliseconds, Name, Positive, Text, Unit
from commonplace.wire.record import Status

Sentiment = Literal["positive", "negative", "neutral", "mixed"]

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _TypeRecord(Message):
    id: Text
    agent_id: Name
    created_at: Milliseconds
    user_id: Maybe[Name] = None
    metadata: Maybe[JsonObject] = None
    confidence: Maybe[Unit] = None
    source: Maybe[str] = None
    updated_at: Maybe[Milliseconds] = None
    expires_at: Maybe[Milliseconds] = None
    version: Maybe[Positive] = None
    status: Maybe[Status] = None


class SemanticMemory(_TypeRecord):
    schema_name = "memorywire/types/semantic"

    type: Literal["semantic"]
    content: Text


class EpisodicMemory(_TypeRecord):
    schema_name = "memorywire/types/episodic"

    type: Literal["episodic"]
    content: Text
    event_time: Maybe[Integer] = None
    location: Maybe[str] = None
    participants: Maybe[list[Text]] = None


class EmotionalMemory(_TypeRecord):
    schema_name = "memorywire/types/emotional"

    type: Literal["emotional"]
    content: Text
    sentiment: Maybe[Sentiment] = None
    valence: Maybe[Annotated[float, Field(ge=-1, le=1)]] = None
    arousal: Maybe[Unit] = None
    emotion: Maybe[str] = None
    target: Maybe[str] = None


_Guards = Annotated[Identifier | list[Identifier], Field(union_mode="left_to_right")]


class FsmTransition(Message):
    """Callbacks (`before`, `after`, `prepare`) have no place here, and guards are bare names."""

    trigger: Text
    source: Annotated[Text | Annotated[list[Text], Field(min_length=1)], Field(union_mode="left_to_right")]
    dest: Text
    conditions: Maybe[_Guards] = None
    unless: Maybe[_Guards] = None


class Fsm(Message):
    """A procedure that can be run: `initial` defaults to `current`, else to the first state."""

    schema_name = "memorywire/types/fsm"

    name: Maybe[Text] = None
    initial: Maybe[Text] = None
    states: Annotated[list[Text], Field(min_length=1)]
    transitions: list[FsmTransition] = Field(default_factory=list)
    current: Maybe[Text] = None
    metadata: Maybe[JsonObject] = None

    @field_validator("states")
    @classmethod
    def _states_differ(cls, states: list[str]) -> list[str]:
        if len(set(states)) < len(states):
            raise ValueError("states must differ from each other")
        return states


class ProceduralMemory(_TypeRecord):
    """`content` is prose, an FSM as a JSON string, or an FSM as an object."""

    schema_name = "memorywire/types/procedural"

    type: Literal["procedural"]
    content: Annotated[Text | Fsm, Field(union_mode="left_to_right")]
