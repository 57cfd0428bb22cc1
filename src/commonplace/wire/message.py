"""What every message is made of: closed, strict, and built from the scalars JSON Schema knows."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from commonplace.wire.plain import MAX_INTEGER, check_json

T = TypeVar("T")


class _NeverNull:
    """Keeps `| None` for readers and type checkers while a null in the document is refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable = handler(source)
        assert nullable["type"] == "nullable"
        return cast(CoreSchema, nullable["schema"])


def whole(value: Any) -> Any:
    """5.0 is an integer to JSON Schema, so it is one here."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain_json(value: dict[str, Any]) -> dict[str, Any]:
    check_json(value)
    return value


Maybe = Annotated[T | None, _NeverNull()]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
#: What a 32-bit float can hold, so that a stored score or vector never overflows.
Number = Annotated[float, Field(ge=-3.4e38, le=3.4e38)]
Unit = Annotated[float, Field(ge=0, le=1)]
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER), BeforeValidator(whole)]
Milliseconds = Annotated[int, Field(ge=0, le=MAX_INTEGER), BeforeValidator(whole)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER), BeforeValidator(whole)]
Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER), BeforeValidator(whole)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_plain_json)]


class Message(BaseModel):
    """Closed and strict: an unknown key is refused, and nothing is coerced."""

    # Deferred: a process pays for the messages it uses, not for all of them.
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    #: The schema this mirrors, for messages that have a file of their own.
    schema_name: ClassVar[str] = ""

    def __init__(self, /, **fields: Any) -> None:
        super().__init__(**{name: value for name, value in fields.items() if value is not None})

    # Without this mark pydantic would send parsed documents through __init__ too, and nulls would vanish.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]
