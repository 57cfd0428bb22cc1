"""What a replica answers, looked at before anybody works with it: a product may give anything, and that is to
be its failure alone. Each raises Unavailable, and quotes nothing: it may be a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commonplace.stores.base import Candidate
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory

_SCORES = ("dense", "keyword", "score")
_TEXTS = ("id", "tenant", "agent_id", "content")
_TIMES = ("created_at", "expires_at")


def read_candidates(answer: Any) -> list[Candidate]:
    if not isinstance(answer, list | tuple) or not all(map(_is_candidate, answer)):
        raise Unavailable("it answered a search with something that is no list of what it found")
    return list(answer)


def read_memories(answer: Any) -> Sequence[Memory]:
    if not isinstance(answer, list | tuple) or not all(map(_is_memory, answer)):
        raise Unavailable("it listed something that is no memory")
    return answer


def read_names(answer: Any) -> Sequence[str]:
    return _read_strings(answer, "agent")


def read_tenants(answer: Any) -> Sequence[str]:
    return _read_strings(answer, "tenant")


def _read_strings(answer: Any, what: str) -> Sequence[str]:
    if not isinstance(answer, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in answer):
        raise Unavailable(f"it named something that is no {what}")
    return list(answer)


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
