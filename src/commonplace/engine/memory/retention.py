"""Retention promises: when what was promised to be gone must be, and who inherits the promise. Pure.

Apart from writing, merging and expiring, because each of them keeps the promise and none may import the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from commonplace.stores.base import Record
from commonplace.wire.plain import MAX_INTEGER
from commonplace.wire.record import Memory
from commonplace.wire.times import DAY_MS


def promised_end(privacy: Mapping[str, Any], since: int, expires_at: int | None) -> int | None:
    """When something is to be gone: as its author says, but no later than the promise to retain it so long."""
    retain = privacy.get("retain")
    due = None if retain is None else min(since + int(retain) * DAY_MS, MAX_INTEGER)
    return min((at for at in (due, expires_at) if at is not None), default=None)


#: The kind of records that say which review may quote something until when. Their keys are in that order, so that of
#: thousands of reviews only those that are due are read.
PROMISE = "promise"


def retention_end(review: Mapping[str, Any]) -> int | None:
    """Until when a review may quote a draft that no memory was made of; None is without end."""
    draft = review.get("draft")
    if draft is None or review["status"] == "approved" or "retain" not in draft["privacy"]:
        return None
    return promised_end(draft["privacy"], review["created_at"], draft["expires_at"])


def promise_of(review: Mapping[str, Any]) -> Record | None:
    """The record of it, to be put with the review; it stays when the review is decided, and is dropped when due."""
    due = retention_end(review)
    if due is None:
        return None
    return Record(PROMISE, f"{due:016d} {review['id']}", {"due": due, "review_id": review["id"]})


def inherit_retention(memory: Memory, sources: Iterable[Memory]) -> Memory:
    """The memory under every retention promise of those whose content it holds: the strictest is its own."""
    promised = [m for m in sources if "retain" in m.privacy]
    if not promised:
        return memory
    strictest = min(promised, key=lambda m: MAX_INTEGER if m.expires_at is None else m.expires_at)
    ends = [at for at in (memory.expires_at, strictest.expires_at) if at is not None]
    # With whom something may be shared was said of what it said then, so that is nobody else's promise.
    promise = {name: value for name, value in strictest.privacy.items() if name != "share_with"}
    privacy = {**promise, **memory.privacy, "retain": strictest.privacy["retain"]}
    return replace(memory, privacy=privacy, expires_at=min(ends, default=None))
