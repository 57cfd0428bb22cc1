"""Approval learning: which kinds of writes reviewers always approve, so that they can be allowed without them.

Only what a policy rule sends to review is learned from, and only while every decision agrees: one rejection or one edit
begins the count anew. What was learned can be revoked; only later decisions count then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from commonplace.engine.governance.rules import Proposal
from commonplace.stores.base import Primary
from commonplace.wire.canonical import canonical, sha256_hex

REVIEW, REVOKED = "review", "policy_revoked"
_ALL = 2**31 - 1  # a page that holds every review


@dataclass(slots=True, frozen=True)
class Pattern:
    """What makes two writes of one kind: the rule that caught them, who wrote what by which protocol for whom."""

    rule: str
    operation: str
    agent: str
    principal: str
    dialect: str
    type: str
    kind: str
    source: str


@dataclass(slots=True)
class LearnedPattern:
    id: str
    pattern: Pattern
    approved: int = 0  # in a row, the last decisions

    def to_wire(self) -> dict[str, Any]:
        return {"id": self.id, "approved": self.approved, "pattern": asdict(self.pattern)}


def pattern_of(rule: str, proposal: Proposal) -> Pattern:
    return Pattern(
        rule, proposal.operation, proposal.agent, proposal.principal, proposal.dialect, proposal.type, proposal.kind,
        proposal.source or "",
    )  # fmt: skip


def pattern_id(pattern: Pattern) -> str:
    return sha256_hex(canonical(list(astuple(pattern))))[:16]


async def learned(primary: Primary, tenant: str) -> dict[str, LearnedPattern]:
    """What the decisions so far add up to, by the pattern's id."""
    revoked = {record.key: record.value["at"] for record in await primary.records(tenant, REVOKED)}
    reviews: list[dict[str, Any]] = []
    for status in ("approved", "rejected"):  # and not the thousands that may be waiting
        decided = await primary.records_page(tenant, REVIEW, {"status": status}, limit=_ALL)
        reviews += [record.value for record in decided]
    return count(reviews, revoked)


def count(reviews: list[dict[str, Any]], revoked: Mapping[str, int]) -> dict[str, LearnedPattern]:
    """Pure: approvals in a row, oldest decision first; whoever approves their own write teaches nothing."""
    found: dict[str, LearnedPattern] = {}
    decided = [r for r in reviews if r.get("pattern") and r.get("decision")]
    for review in sorted(decided, key=lambda r: (r["decision"]["reviewed_at"], r["id"])):
        pattern, decision = Pattern(**review["pattern"]), review["decision"]
        id = pattern_id(pattern)
        held = found.setdefault(id, LearnedPattern(id, pattern))
        if decision["reviewed_at"] <= revoked.get(id, -1):
            continue
        edited = review.get("edited_by") or review.get("edited")
        if not decision["approved"] or edited:
            held.approved = 0
        elif decision["reviewer"] != review["requested_by"]:
            held.approved += 1
    return found
