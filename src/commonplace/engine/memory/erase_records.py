"""Erasing a memory or statement from the records that quote it: reviews, idempotency keys, answers, run outcomes.

Apart from `erase`, because the graph needs it, too, and `erase` needs the graph.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.engine.core import IDEMPOTENCY, REVIEW
from commonplace.engine.memory.write import LASTING, erased_slot
from commonplace.stores.base import Record, Transaction
from commonplace.wire.record import Principal

_QUOTING = ("request", "draft", "replacement", "diff", "reasoning", "statement")  # fields of a review


def without_quotes(review: dict[str, Any]) -> dict[str, Any]:
    """A review that says what was decided, and nothing of what it was about."""
    kept = {k: v for k, v in review.items() if k not in _QUOTING}
    if "decision" in kept:
        kept["decision"] = {k: v for k, v in kept["decision"].items() if k != "reason"}
    return {**kept, "erased": True}


def erase_records(tx: Transaction, id: str) -> None:
    """Take the content of a memory or statement out of everything the engine keeps about it."""
    for record in tx.records_about(id):
        others = tuple(other for other in record.about if other != id)
        if record.kind == IDEMPOTENCY:
            # Its author chose the key, so that goes, too; what it leads to still refuses to be used twice.
            tx.drop_record(record.kind, record.key)
            value = {"at": record.value.get("at", 0), "erased": True}
            value |= {LASTING: True} if LASTING in record.value else {}
            tx.put_record(Record(record.kind, erased_slot(record.key), value))
        elif record.kind == REVIEW:
            tx.put_record(Record(record.kind, record.key, without_quotes(record.value), others))
        else:
            tx.drop_record(record.kind, record.key)


def reject_pending(tx: Transaction, who: Principal, review_id: str) -> None:
    """A review whose words were erased can never be approved: one that still waits is rejected."""
    review = tx.record(REVIEW, review_id)
    if review is not None and review.value["status"] == "pending":
        decision = {"approved": False, "reviewer": who.name, "reviewed_at": tx.now}
        tx.put_record(replace(review, value={**review.value, "status": "rejected", "decision": decision}))
