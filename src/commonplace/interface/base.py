"""How a method of a memory becomes one memorywire request: what the parts of the interface share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from commonplace.wire.errors import ValidationError

T = TypeVar("T")
Document = dict[str, Any]
Time = int | datetime  # milliseconds since 1970, or the same as a datetime
Documents = list[Document]  # by this name, because `list` is a method of a memory
#: The parameters for which False is absence.
FLAGS = frozenset({
    "all_agents", "approval_required", "cascade", "dry_run", "explain", "hard_delete", "include_shared", "keep_unknown",
    "mentions", "remove_expiry",
})  # fmt: skip
#: The parameters that say whose memories are meant.
_IDS = ("agent_id", "user_id", "session_id")


class InterfaceBase:
    agent_id: str

    async def _call(self, answer: type[T], operation: str, request: Document) -> T:
        """The answer to a request of this operation, of the type that its method promises."""
        raise NotImplementedError

    def _request(self, parameters: Mapping[str, Any]) -> Document:
        """A method's parameters (its `locals()`) as the request that they are the fields of."""
        return {"agent_id": self.agent_id, **given(parameters)}


def given(parameters: Mapping[str, Any]) -> Document:
    """What was given of a method's parameters; raises ValidationError for a value that only looks like absence."""
    check_ids(**{name: parameters[name] for name in _IDS if name in parameters})
    for name, value in parameters.items():
        if value is False and name not in FLAGS:
            raise ValidationError(f"{name} cannot be False; leave it out where nothing is meant", field=name)
    return present(parameters)


def present(parameters: Mapping[str, Any]) -> Document:
    """Without what means the same as absence: None, and the False of a flag."""
    return {
        name: _plain(value)
        for name, value in parameters.items()
        if name != "self" and value is not None and not (value is False and name in FLAGS)
    }


def check_ids(**ids: object) -> None:
    """Raises ValidationError for an id that is no text. No id means everyone's memories, and a program whose
    `user.is_authenticated and user.id` is False means nobody's; a list or an object would be taken for a condition. An
    empty text is as wrong: some operations would take it for nobody, others for the default."""
    for name, value in ids.items():
        if value is not None and not isinstance(value, str):
            raise ValidationError(f"{name} must be text, not {value!r:.80}", field=name)
        if value == "":
            raise ValidationError(f"{name} must not be empty; leave it out where nobody is meant", field=name)


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
