"""A memory as a JSON document and back, for stores that keep it in somebody else's metadata."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeGuard

from commonplace.wire.errors import Unavailable
from commonplace.wire.filters import Condition, Where
from commonplace.wire.record import EVERY_STATUS, MEMORY_TYPES, Memory

#: Under which a copy in somebody's metadata says whose it is: our id, our tenant, and everything else.
OUR_ID, OUR_TENANT, OUR_FIELDS = "commonplace_id", "commonplace_tenant", "commonplace"

#: What changes without a new version, or is the primary's alone: a copy elsewhere would only be wrong.
_NOT_COPIED = frozenset({"recalls", "last_recalled_at", "demotion", "salt", "content_hash"})
_FIELDS = {each.name: each for each in fields(Memory) if each.name not in _NOT_COPIED}
#: Ids are minted or imported as UUIDs. Whoever fills a store by its own verbs may choose others, as tests of stores do;
#: but not such as no primary could keep, or as would fill it or a log.
_ID = re.compile(r"[!-~]{1,128}\Z")
_SHOWN_CHARS = 128
_TEXTS = ("id", "tenant", "agent_id", "type", "content", "kind", "status")


@dataclass(slots=True)
class DamagedCopy(Memory):
    """What says of which memory it is a copy, and of which something cannot be read; `store_id` is how its store calls
    it, for an operator who has to delete it there."""

    store_id: str = ""


@dataclass(slots=True)
class UnreadableCopy(DamagedCopy):
    """What carries our keys and cannot be read. Nobody knows whether it is ours: where no memory of that id is to have
    a copy it is left, and named by the id that its store gave it."""


def is_id(given: object) -> TypeGuard[str]:
    """Whether a memory of ours can have it as its id: what others give as one is a key of ours from then on."""
    return isinstance(given, str) and _ID.match(given) is not None


def shown_id(given: str) -> str:
    """An id of another's, as it may be shown: it may hold anything, and be as long as they like."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in given[:_SHOWN_CHARS])
    return shown + "…" * (len(given) > _SHOWN_CHARS)


def on_copied_fields(where: Where) -> Where:
    """The conditions that a copy can be held to; the others, of which it knows nothing, are the primary's to apply."""
    return tuple(condition for condition in where if not _is_uncopied(condition))


def _is_uncopied(condition: Condition) -> bool:
    if condition.op == "any":  # what one part does not find another may, so a part that is unknown leaves all open
        return any(map(_is_uncopied, condition.value))
    return condition.path[0] in _NOT_COPIED


def to_document(memory: Memory, *, without: frozenset[str] = frozenset(), defaults: bool = False) -> dict[str, Any]:
    """Every field that is not as it is by default, but those of `without`; with `defaults` all that are not None, for
    stores that filter by them."""
    document = {}
    for name, each in _FIELDS.items():
        value = getattr(memory, name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if name not in without and value is not None and (defaults or default is MISSING or value != default):
            document[name] = value
    return document


def to_memory(document: Any, store: str) -> Memory:
    """The memory that `to_document` was given; Unavailable, in the name of the store, for anything else."""
    try:
        memory = Memory(**{name: document[name] for name in _FIELDS if name in document})
        if not all(isinstance(getattr(memory, name), str) for name in _TEXTS):
            raise TypeError
        if not is_id(memory.id) or memory.type not in MEMORY_TYPES or memory.status not in EVERY_STATUS:
            raise ValueError
        for name in ("created_at", "expires_at"):
            if not isinstance(getattr(memory, name), int | None):
                raise TypeError
    except (TypeError, ValueError, KeyError):
        raise Unavailable(f"{store} answered with something that is no memory of ours") from None
    return memory


def to_copy(document: Any, store: str, store_id: str) -> Memory:
    """As `to_memory`, where others may write beside our copies: what cannot be read is in nobody's reach, and is still
    known by its id, where it says one, so that it can be replaced and deleted."""
    with suppress(Unavailable):
        return to_memory(document, store)
    id = document.get("id") if isinstance(document, dict) else None
    if is_id(id):
        return DamagedCopy(id, "", "", "semantic", "", store_id=store_id)
    return UnreadableCopy("", "", "", "semantic", "", store_id=store_id)
