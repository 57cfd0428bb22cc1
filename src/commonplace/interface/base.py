"""How a method of a memory becomes one memorywire request: what the parts of the interface share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

T = TypeVar("T")
Document = dict[str, Any]
Time = int | datetime  # milliseconds since 1970, or the same as a datetime
Documents = list[Document]  # by this name, because `list` is a method of a memory


class InterfaceBase:
    agent_id: str

    async def _call(self, answer: type[T], operation: str, request: Document) -> T:
        """The answer to a request of this operation, of the type that its method promises."""
        raise NotImplementedError

    def _request(self, parameters: Mapping[str, Any]) -> Document:
        """A method's parameters (its `locals()`) as the request that they are the fields of."""
        return {"agent_id": self.agent_id, **given(parameters)}


def given(parameters: Mapping[str, Any]) -> Document:
    """What was given: None, and False where a flag may be left out, mean the same as absence."""
    return {
        name: _plain(value)
        for name, value in parameters.items()
        if name != "self" and value is not None and value is not False
    }


def _plain(value: Any) -> Any:
    """As the wire has it: tuples are lists and datetimes, wherever they stand, are milliseconds. One without a zone
    means local time, as everywhere in Python."""
    match value:
        case datetime():
            return round(value.timestamp() * 1000)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def listed(ids: Sequence[str] | str | None) -> Sequence[str] | None:
    return [ids] if isinstance(ids, str) else ids
