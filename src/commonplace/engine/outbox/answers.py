"""What a replica answers, looked at before anybody works with it: a product may give anything, and that is to
be its failure alone. Each raises Unavailable, and quotes nothing: it may be a memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from commonplace.engine.checks import check_agent_name
from commonplace.stores.base import Candidate
from commonplace.stores.documents import DamagedCopy, UnreadableCopy, is_id, shown_id
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.plain import check_json
from commonplace.wire.record import MAX_NAME_CHARS, Memory

log = logging.getLogger("commonplace.stores")

_SCORES = ("dense", "keyword", "score")
_TEXTS = ("id", "tenant", "agent_id", "content")
_TIMES = ("created_at", "expires_at")


def read_candidates(answer: Any) -> list[Candidate]:
    if not isinstance(answer, list | tuple) or not all(map(_is_candidate, answer)):
        raise Unavailable("it answered a search with something that is no list of what it found")
    # What has no id of ours is no memory of ours, and is looked up nowhere.
    return [candidate for candidate in answer if is_id(candidate.memory.id)]


def read_memories(answer: Any) -> Sequence[Memory]:
    if not isinstance(answer, list | tuple) or not all(map(_is_memory, answer)):
        raise Unavailable("it listed something that is no memory")
    return [_as_copy(memory) for memory in answer]


def read_names(answer: Any, store: str) -> Sequence[str]:
    return _read_strings(answer, store, "agent", _is_agent_name)


def read_tenants(answer: Any, store: str) -> Sequence[str]:
    return _read_strings(answer, store, "tenant", _is_tenant_name)


def _read_strings(answer: Any, store: str, what: str, is_name: Callable[[str], bool]) -> Sequence[str]:
    if not isinstance(answer, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in answer):
        raise Unavailable(f"it named something that is no {what}")
    names = [name for name in answer if is_name(name)]
    # One that nobody here can have is left out: anyone who may write there may have made it, to end a resync by it.
    if left_out := len(answer) - len(names):
        log.warning("%s named %d that cannot be the name of any %s: left out", store, left_out, what)
    return names


def _is_agent_name(name: str) -> bool:
    with suppress(ValidationError, ValueError):
        check_agent_name(name)
        check_json(name)
        return True
    return False


def _is_tenant_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME_CHARS and name.isprintable()


def _as_copy(memory: Memory) -> Memory:
    """Whatever it is called over there: what cannot be an id of ours is none that anything is looked up or written by,
    and what cannot be shown is not how an operator is told of it."""
    if not is_id(memory.id):
        theirs = shown_id(memory.store_id if isinstance(memory, DamagedCopy) else memory.id)
        return UnreadableCopy("", memory.tenant, memory.agent_id, memory.type, memory.content, store_id=theirs)
    if isinstance(memory, DamagedCopy):
        memory.store_id = shown_id(memory.store_id)
    return memory


def _is_candidate(given: Any) -> bool:
    return isinstance(given, Candidate) and _is_memory(given.memory) and all(_is_score(given, name) for name in _SCORES)


def _is_memory(given: Any) -> bool:
    return (
        isinstance(given, Memory)
        and all(isinstance(getattr(given, name), str) for name in _TEXTS)
        and all(isinstance(getattr(given, name), int | None) for name in _TIMES)
    )


def _is_score(candidate: Candidate, name: str) -> bool:
    score: Any = getattr(candidate, name)
    if score is None:
        return True
    try:
        float(score)  # NumPy's numbers are such as well
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(score, bool | str | bytes | bytearray)
