"""What every room of the engine refuses in the same words: a role too low, or a value that cannot be."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from commonplace.engine.types import Draft
from commonplace.wire.errors import Forbidden, NotFound, ValidationError
from commonplace.wire.record import (
    LOCAL_TENANT,
    MAX_ALIAS_CHARS,
    MAX_KIND_CHARS,
    MAX_NAME_CHARS,
    MAX_PAGE,
    Memory,
    Principal,
    Role,
)

RANK: dict[Role, int] = {"reader": 0, "writer": 1, "reviewer": 2, "admin": 3}

#: The least and the most characters of what a memory goes by. An empty title or source is one that was written so.
_NAMES: dict[str, tuple[int, int | None]] = {
    "user_id": (1, MAX_NAME_CHARS), "kind": (0, MAX_KIND_CHARS), "session_id": (1, None), "project": (1, None),
    "aliases": (1, MAX_ALIAS_CHARS),
}  # fmt: skip


def require_role(who: Principal, role: Role) -> None:
    if RANK[who.role] < RANK[role]:
        raise Forbidden(f"{who.name} is a {who.role}; this needs the role {role}", role=role)


def require_operator(who: Principal, what: str) -> None:
    """For what concerns the whole installation; `what` is refused to everyone else, in these words."""
    if not who.is_operator:
        raise Forbidden(
            f"{who.name} may not {what}; only an admin of the tenant {LOCAL_TENANT} who may use every agent may"
        )


def check_agent_name(agent_id: str) -> None:
    """For what is written anew: in a list or a log such a name could pass for another. Reading and erasing take any."""
    _check_length("agent_id", agent_id, 1, MAX_NAME_CHARS)
    if any(unicodedata.category(character) == "Cc" for character in agent_id):
        raise ValidationError("agent_id must not hold line breaks or other control characters", field="agent_id")


def check_name_lengths(given: Draft | Memory, before: Memory | None = None) -> None:
    """What a memory goes by, besides its agent: as long as protocols let it be, also where it comes from a file. Of
    what was there `before` only what differs, so that whatever was kept by earlier rules stays changeable."""
    for name, (least, most) in _NAMES.items():
        value = getattr(given, name)
        if before is None or value != getattr(before, name):
            for each in value if isinstance(value, list) else () if value is None else (value,):
                _check_length(name, each, least, most)


def _check_length(name: str, value: str, least: int, most: int | None) -> None:
    if least <= len(value) <= (len(value) if most is None else most):
        return
    if most is None:
        raise ValidationError(f"{name} must not be empty", field=name)
    allowed = f"{least:,} to {most:,}" if least else f"at most {most:,}"
    each = " each" if name == "aliases" else ""
    raise ValidationError(f"{name} must have {allowed} characters{each}, not {len(value):,}", field=name)


def check_page_size(limit: int) -> None:
    """Of what is listed page by page."""
    if not 1 <= limit <= MAX_PAGE:
        raise ValidationError(f"limit must be a whole number from 1 to {MAX_PAGE}, not {limit}", field="limit")


def check_one_of(name: str, value: str | None, known: Sequence[str]) -> None:
    """As a condition of a list; None is all of them."""
    if value is not None and value not in known:
        raise ValidationError(f"{name} is one of {', '.join(known)}, not {value!r:.80}", field=name)


def check_expiry(expires_at: int | None, now: int) -> None:
    if expires_at is not None and expires_at <= now:
        raise ValidationError("expires_at must be in the future (milliseconds since 1970)", field="expires_at")


def memory_not_found(agent_id: str, ref: str) -> NotFound:
    """The same sentence whether it never was, is forgotten, pending, or someone else's."""
    return NotFound(
        f"no memory {ref} for agent {agent_id}", hint=f"`commonplace list --agent {agent_id}` shows what there is"
    )
