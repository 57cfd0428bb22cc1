"""What a migration keeps, thing by thing, said before it starts. Pure.

`MEMORY_FIELDS` names every field of a memory once. All are the same afterwards: a migration that finds one that is not
(`engine.transfer.store_digest` compares them all) does not end well.
"""

from __future__ import annotations

from typing import Any

from commonplace.stores.base import EmbedderInfo, Primary
from commonplace.stores.optional import RecordKinds, SecondEmbedderInfo

Row = dict[str, str]
_EXACT = "the same"
#: The fields of a row of the report, and its remark.
MEMORY_FIELDS = {
    ("id", "aliases", "tenant", "agent_id", "user_id", "project"): "",
    ("type", "kind", "content", "title", "entity_name", "tags", "metadata", "source", "speaker", "session_id"): "",
    ("confidence", "importance", "demotion", "recalls", "last_recalled_at"): "",
    ("created_at", "updated_at", "expires_at", "event_time"): "each version is written at the time it had",
    ("status", "supersedes", "merged_into"): "",
    ("privacy", "provenance"): "with whom it is shared, where it is from, and what its author signed",
    ("seq", "version"): "places of what was erased are kept, so that as_of reads the same",
    ("salt", "content_hash"): "so that the ledger's hash of every row holds",
}


def fidelity(
    source: Primary, target: Primary | None, embedder: EmbedderInfo | None, has_embedder: bool,
    second: SecondEmbedderInfo | None,
) -> list[Row]:  # fmt: skip
    """Rows of {what, kept, remark}; `target` is None while it is not there yet."""
    rows = [
        *(_row(", ".join(names), _EXACT, remark) for names, remark in MEMORY_FIELDS.items()),
        _row("every version, forgotten and archived memories", _EXACT),
        _row("statements", _EXACT, "with their intervals, authors and ids"),
        _records(source),
        _row("the ledger", _EXACT, "entry by entry: it verifies with the same head"),
        _vectors(embedder, has_embedder),
    ]
    if second is not None:
        rows.append(_row("vectors of the second model", "not carried", "`commonplace model add` makes them again"))
    missing = sorted(source.capabilities - target.capabilities) if target is not None else []
    if missing:
        rows.append(_row("what the target cannot do", "lost", ", ".join(missing)))
    rows.append(_row("what was erased", "not carried", "nothing of it is left"))
    rows.append(
        _row("keys, commonplace.toml, backups", "not carried", "files of the data directory: copy them yourself")
    )
    return rows


def _row(what: str, kept: str, remark: str = "") -> Row:
    return {"what": what, "kept": kept, "remark": remark}


def _records(source: Any) -> Row:
    what = "reviews, rules, tokens, trust, palaces, runs, idempotency keys"
    if isinstance(source, RecordKinds):
        return _row(what, _EXACT)
    return _row(what, "not carried", "this kind of source cannot list them")


def _vectors(embedder: EmbedderInfo | None, has_embedder: bool) -> Row:
    if embedder is None:
        return _row("vectors", "none", "the source has none")
    if has_embedder:
        return _row("vectors, keyword indexes", "made anew", f"by {embedder.name}, which made those of the source")
    said = f"{embedder.name} made them and is not installed here; `commonplace reindex` makes others"
    return _row("vectors", "not carried", said)
