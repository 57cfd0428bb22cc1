"""A review as people read it: what it would do in one line, and each side of what it would change. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from commonplace.ui.templating import instant
from commonplace.ui.text_diff import Run, side_by_side

#: What a reviewer is asked about, by the operation that waits.
TITLES = {
    "remember": "A new memory",
    "update": "A change to a memory",
    "forget": "Memories to forget",
    "merge": "Memories to merge",
    "statement": "A statement for the graph",
    "attestation": "A memory from another agent",
}
#: A new memory is compared with the nearest one where that is at least so near, or contradicts or replaces it.
_COMPARED = 0.5
_TIMES = frozenset({"expires_at", "event_time", "created_at", "valid_from", "valid_to"})
_HEADING = frozenset({"id", "content", "type", "subject", "predicate", "object", "agent_id"})


@dataclass(slots=True)
class FieldChange:
    name: str
    before: str = ""
    after: str = ""

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(slots=True)
class Change:
    """One memory or statement before and after; a side that is None is not there."""

    id: str
    label: str
    known: str = ""  # what stands at the left, where that is not the same memory as it was
    before: list[Run] | None = None
    after: list[Run] | None = None
    fields: list[FieldChange] = field(default_factory=list)


def body(shown: Mapping[str, Any]) -> str:
    """What a memory or a statement says."""
    if "subject" in shown:
        return f"{shown['subject']} {shown.get('predicate', '')} {shown.get('object', '')}"
    if "content" in shown:
        content = shown["content"]
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
    return f"({shown['status']})" if "status" in shown else "(not shown to you)"


def summary(review: Mapping[str, Any]) -> str:
    """One line of what it is about."""
    diff = review.get("diff") or {}
    said = [*diff.get("added", ()), *(pair["after"] for pair in diff.get("modified", ())), *diff.get("removed", ())]
    return "; ".join(body(each) for each in said[:3]) + ("; …" if len(said) > 3 else "") or "(erased)"


def changes(review: Mapping[str, Any]) -> list[Change]:
    diff = review.get("diff") or {}
    statement = review.get("operation") == "statement"
    found = [_change(None, each, "new statement" if statement else "new") for each in diff.get("added", ())]
    if review.get("operation") in ("remember", "attestation") and len(found) == 1:
        _compare(found[0], review)
    label = "ends" if statement else "changes"
    found += [_change(pair["before"], pair["after"], label) for pair in diff.get("modified", ())]
    gone = "joins the other" if review.get("operation") == "merge" else "goes"
    found += [_change(each, None, gone) for each in diff.get("removed", ())]
    return found


def _compare(change: Change, review: Mapping[str, Any]) -> None:
    """Put what is known beside what is new: the memory that it is nearest to."""
    near = [each for each in review.get("nearest", ()) if each.get("content")]
    strong = [each for each in near if each["relation"] != "similar"]
    nearest = (strong or near or [None])[0]
    if nearest is None or (not strong and nearest["similarity"] < _COMPARED):
        return
    change.known = f"Known already · {nearest['relation']}"
    change.before, change.after = side_by_side(body(nearest), body((review["diff"]["added"])[0]))


def _change(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, label: str) -> Change:
    there = after if after is not None else before
    assert there is not None
    made = Change(str(there.get("id", "")), label)
    if before is not None and after is not None:
        made.before, made.after = side_by_side(body(before), body(after))
    elif before is not None:
        made.before = [Run(body(before), False)]
    else:
        made.after = [Run(body(there), False)]
    old, new = fields_of(before or {}), fields_of(after or {})
    made.fields = [FieldChange(name, old.get(name, ""), new.get(name, "")) for name in dict.fromkeys((*old, *new))]
    return made


def fields_of(shown: Mapping[str, Any]) -> dict[str, str]:
    """What is said beside the text, by name; metadata one entry each."""
    found: dict[str, str] = {"type": str(shown["type"])} if "type" in shown else {}
    for name, value in shown.items():
        if name in _HEADING:
            continue
        if isinstance(value, Mapping):
            # What protocols lift out of the metadata is shown once.
            found |= {f"{name}.{k}": text_of(k, each) for k, each in value.items() if shown.get(k) != each}
        else:
            found[name] = text_of(name, value)
    return found


def text_of(name: str, value: Any) -> str:
    if name in _TIMES and isinstance(value, int) and not isinstance(value, bool):
        return instant(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
