"""What a memory says of others by name, and what is left of it without some of them."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.governance.named_memories import named_ids, without_names
from commonplace.wire.canonical import mint_id
from commonplace.wire.record import Memory
from commonplace.wire.short_ids import shorten_id

GONE, KEPT = mint_id(1_700_000_000_000), mint_id(1_700_000_000_001)
OTHER = Memory(GONE, "local", "agent", "semantic", "x", aliases=["its own name"])

#: A field, what stands in it, and what is left.
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "aliases": ({"aliases": [GONE, KEPT]}, {"aliases": [KEPT]}),
    "supersedes": ({"supersedes": [KEPT, GONE]}, {"supersedes": [KEPT]}),
    "as AMP spells it": ({"supersedes": [f"lesson_{GONE}"]}, {"supersedes": []}),
    "in capitals": ({"supersedes": [GONE.upper()]}, {"supersedes": []}),
    "in its short form": ({"metadata": {"refs": [shorten_id(GONE)]}}, {"metadata": {"refs": []}}),
    "merged_into": ({"merged_into": GONE}, {"merged_into": None}),
    "merged_into of another": ({"merged_into": KEPT}, {"merged_into": KEPT}),
    "metadata": ({"metadata": {"a": [{"b": GONE, "c": KEPT}]}}, {"metadata": {"a": [{"c": KEPT}]}}),
    "a key of metadata": ({"metadata": {GONE: 1, "n": None}}, {"metadata": {"n": None}}),
    "chain": ({"provenance": {"chain": [GONE, KEPT]}}, {"provenance": {"chain": [KEPT]}}),
    "unmerged_from": ({"provenance": {"unmerged_from": GONE, "dialect": "amp"}}, {"provenance": {"dialect": "amp"}}),
    "signed": ({"provenance": {"attestation": {"id": GONE}}}, {"provenance": {"attestation": {"id": GONE}}}),
    "an alias that was taken over": (
        {"aliases": ["its own name", "mine"], "provenance": {"merged": ["its own name", GONE]}},
        {"aliases": ["mine"], "provenance": {"merged": []}},
    ),
    "an alias that was taken over where it was imported from": (
        {"provenance": {"merged": ["its own name"], "original": {"version": 1, "aliases": ["its own name", "mine"]}}},
        {"provenance": {"merged": [], "original": {"version": 1, "aliases": ["mine"]}}},
    ),
    "an original that no engine wrote": ({"provenance": {"original": 7}}, {"provenance": {"original": 7}}),
    "an alias of its own that is spelled alike": ({"aliases": ["its own name"]}, {"aliases": ["its own name"]}),
    "a word that is spelled like an alias": (
        {"metadata": {"a": "its own name"}, "provenance": {"merged": ["its own name"]}},
        {"metadata": {"a": "its own name"}, "provenance": {"merged": []}},
    ),
    "a provenance that no engine wrote": ({"provenance": {"merged": 7}}, {"provenance": {"merged": 7}}),
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_memory_without_the_names_of_another(field: str) -> None:
    given, left = FIELDS[field]
    memory = Memory("m", "local", "agent", "semantic", f"as {GONE} says", **given)
    before = repr(memory)
    assert without_names(memory, [OTHER]) == Memory("m", "local", "agent", "semantic", f"as {GONE} says", **left)
    assert repr(memory) == before, "the memory itself is not touched: it may be the store's own"
    named = GONE in repr(given).lower() or shorten_id(GONE) in repr(given)
    assert (GONE in named_ids(memory)) is (named and field != "signed")
