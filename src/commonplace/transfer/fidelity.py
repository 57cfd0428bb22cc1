"""What a migration keeps, thing by thing, said before it starts. Pure."""

from __future__ import annotations

from typing import Any

from commonplace.stores.base import EmbedderInfo, Primary
from commonplace.stores.optional import RecordKinds, SecondEmbedderInfo

Row = dict[str, str]
_EXACT = "the same"


def fidelity(
    source: Primary, target: Primary | None, embedder: EmbedderInfo | None, has_embedder: bool,
    second: SecondEmbedderInfo | None,
) -> list[Row]:  # fmt: skip
    """Rows of {what, kept, remark}; `target` is None while it is not there yet."""
    rows = [
        _row("id, aliases, agent, tenant", _EXACT),
        _row("text, title, tags, metadata, type, kind, user, project, source, speaker, session", _EXACT),
        _row("confidence, importance, demotion, recalls", _EXACT),
        _row("created_at, updated_at, expires_at, event_time", _EXACT, "each version is written at the time it had"),
        _row("every version, forgotten and archived memories", _EXACT),
        _row(
            "sequence and version numbers", _EXACT, "places of what was erased are kept, so that as_of reads the same"
        ),
        _row("salts and hashes of texts", _EXACT),
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
