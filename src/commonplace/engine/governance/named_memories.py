"""Which other memories a memory names, outside of its text, and what is left of it without some of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.engine.governance.rules import strings
from commonplace.wire.canonical import uuid_in
from commonplace.wire.record import Memory, replace_fields
from commonplace.wire.short_ids import expand_id

_DOCUMENTS = ("supersedes", "metadata")
_MERGED = "merged"  # of provenance: the ids and aliases of what became part of it
_ORIGINAL = "original"  # of provenance: how an imported version was called where it came from, which an export says
_SIGNED = "attestation"  # of provenance: what its author signed, of which nothing can be taken


def named_ids(memory: Memory) -> set[str]:
    """Every id that one of its fields spells, in whatever form."""
    given = [memory.aliases, memory.merged_into, _unsigned(memory), *(getattr(memory, name) for name in _DOCUMENTS)]
    return {id for text in strings(given) if (id := _spelled(text)) is not None}


def without_names(memory: Memory, others: Sequence[Memory]) -> Memory:
    """Without the ids of these others, and without the aliases that it took over from one of them."""
    ids = {other.id for other in others}
    merged = set(strings(memory.provenance.get(_MERGED)))
    taken_over = {alias for other in others for alias in other.aliases if alias in merged}

    def is_id(value: Any) -> bool:
        return isinstance(value, str) and _spelled(value) in ids

    def is_name(value: Any) -> bool:
        return is_id(value) or (isinstance(value, str) and value in taken_over)

    changed = {name: _without(getattr(memory, name), is_id) for name in _DOCUMENTS}
    provenance = _without(_unsigned(memory), is_id)
    # Aliases are looked for only where names are kept: elsewhere the same word may mean anything.
    if _MERGED in provenance:
        provenance[_MERGED] = _without(provenance[_MERGED], is_name)
    original = provenance.get(_ORIGINAL)
    if isinstance(original, dict) and "aliases" in original:
        original["aliases"] = _without(original["aliases"], is_name)  # of the copy that was made above
    if _SIGNED in memory.provenance:
        provenance[_SIGNED] = memory.provenance[_SIGNED]
    aliases = _without(memory.aliases, is_name)
    into = None if is_id(memory.merged_into) else memory.merged_into
    return replace_fields(memory, aliases=aliases, merged_into=into, provenance=provenance, **changed)


def _without(value: Any, gone: Callable[[Any], bool]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without(each, gone) for name, each in value.items() if not (gone(name) or gone(each))}
    if isinstance(value, (list, tuple)):
        return [_without(each, gone) for each in value if not gone(each)]
    return value


def _unsigned(memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in memory.provenance.items() if name != _SIGNED}


def _spelled(text: str) -> str | None:
    return uuid_in(expand_id(text))
