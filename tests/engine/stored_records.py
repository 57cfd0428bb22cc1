"""What the engine keeps beside memories, as one text to look for traces in."""

from __future__ import annotations

from typing import Any

from commonplace.dialects.memorywire.records import entry_to_wire
from commonplace.testing.subject import WHO, Subject


def stored_records(subject: Subject, run: Any) -> str:
    """Reviews, idempotency keys and the whole audit trail."""
    kept = [run(subject.store.records("local", kind)) for kind in ("review", "idempotency")]
    return repr((kept, [entry_to_wire(e) for e in run(subject.engine.ledger.entries(WHO, limit=1000))]))
